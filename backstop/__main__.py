"""``python -m backstop`` is the command ``backstop``."""

from backstop.cli import main

main()
