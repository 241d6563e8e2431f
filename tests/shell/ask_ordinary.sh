#!/bin/sh
# Rules that ask somebody or a program, in mounts of a user who is not root.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs fusermount3 setpriv unshare
needs_root
if [ -z "${IN_NAMESPACE-}" ]; then
  # /dev/fuse is only for root on some machines: in a mount namespace of its own
  # the test has one that is for all.
  IN_NAMESPACE=1 exec unshare --mount sh -eu "$0"
fi
mknod -m 666 "$TMPDIR/fuse" c 10 229 2>/dev/null &&
  mount --bind "$TMPDIR/fuse" /dev/fuse || skip "no device nodes here"
mkdir bin
cp "$TXFS" bin/txfs
chmod -R a+rX . "$HOME"
export PATH="$PWD/bin:/usr/bin:/bin"
as_user() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
as_user test -r "$TXFS_SOURCE_DIR/tests/shell/ask.sh" ||
  skip "ordinary users cannot read the tests"

for script in ask hook; do
  own=$PWD/$script
  mkdir "$own" "$own/home" "$own/work"
  chown -R 65534:65534 "$own"
  (
    cd "$own/work"
    HOME=$own/home XDG_STATE_HOME=$own/home/state TMPDIR=$own \
      as_user sh -eu "$TXFS_SOURCE_DIR/tests/shell/$script.sh"
  )
done
