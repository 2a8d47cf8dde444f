#!/bin/sh
# Writes requirements-action.txt, the action image's packages with their hashes, from uv.lock.
set -eu
cd "$(dirname "$0")/.."
{
    echo "# Written by .github/requirements-action.sh from uv.lock; a test holds the two in step."
    .venv/bin/uv export --quiet --frozen --offline --no-dev --no-emit-project --no-header --no-annotate \
        --extra docker --extra firestore --extra github --extra zst --format requirements-txt
} > "${1:-requirements-action.txt}"
