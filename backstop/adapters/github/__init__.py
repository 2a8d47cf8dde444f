"""GitHub: what happened, the commit to compare with, the comment, and the runner's log."""
