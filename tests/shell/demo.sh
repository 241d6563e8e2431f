#!/bin/sh
# The demo's steps, on a small tree: `./dev demo` shows what works.
mkdir tree
cp -a "$TXFS_SOURCE_DIR"/journal "$TXFS_SOURCE_DIR"/fs \
  "$TXFS_SOURCE_DIR"/policy "$TXFS_SOURCE_DIR"/docs "$TXFS_SOURCE_DIR"/cli tree
ln tree/docs/design.md tree/docs/hard-link.md
ln -s ../docs/design.md tree/fs/symbolic-link.md
printf 'x' >"tree/docs/$(printf 'a name\twith\nodd bytes \377')"
# So many objects of git that their refused removals are not all kept.
mkdir tree/fs/many
seq 500 | split -l 1 -a 3 - tree/fs/many/
{ "$TXFS_SOURCE_DIR/tests/demo" --tree tree || touch failed; } 2>&1 | tee out
[ ! -e failed ]
grep -q 'older refused operations are not listed' out || {
  echo "FAILED: too few refusals" >&2
  exit 1
}
