"""What the action's container starts."""

import backstop.action

raise SystemExit(backstop.action.main())
