#!/bin/sh
# Work in a mount sends no more requests, and makes no more system calls, than is
# recorded. If they must be more, `bench/counts --write bench/counts.json` records
# them.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs python3 strace
alone

python3 "$TXFS_SOURCE_DIR/bench/counts" --check "$TXFS_SOURCE_DIR/bench/counts.json"
