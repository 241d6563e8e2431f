#!/bin/bash
# This project is built, tested, checked and committed to git in a mount, under
# the default policy: not one operation is refused.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs python3 git cmake ninja g++ tar
built=$(dirname "$TXFS")
for suite in policy conformance; do
  [ -x "$built/tests/${suite}_test" ] || skip "${suite}_test is not built"
done

export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_COUNT=1
export GIT_CONFIG_KEY_0=gc.auto GIT_CONFIG_VALUE_0=0
mkdir ws mnt
tar -C "$TXFS_SOURCE_DIR" --exclude=./build --exclude=./.git -cf - . |
  tar -C ws -xf -
git init -q ws
(
  cd ws
  printf '#!/bin/sh\nexit 0\n' >.git/hooks/pre-commit
  chmod 755 .git/hooks/pre-commit
  echo '/build' >.git/info/exclude
  git add -A
  git commit -qm "As it came"
)
txfs mount ws mnt
cd mnt

# quietly COMMAND...: its output is shown only when it fails.
quietly() {
  "$@" >"$TMPDIR/quiet" 2>&1 || fail "$*: $(cat "$TMPDIR/quiet")"
}

# Configured, and a part of it built; the rest as if it had been.
quietly cmake --preset test
part=CMakeFiles/support.dir/journal/support/checksum.cc.o
! is_full_scale || part=support
quietly cmake --build build/test --target $part
cp "$TXFS" build/test
cp "$built"/tests/*_test build/test/tests

# Their temporary files are outside, as everywhere: a store cannot be in a mount.
# suite NAME [FILTER]
suite() {
  TXFS_TEST_SCALE=0.1 TXFS_BINARY=$PWD/build/test/txfs quietly \
    "build/test/tests/$1_test" --gtest_filter="${2:-*}" \
    --gtest_output="xml:build/test/Testing/$1.xml"
  [ -s "build/test/Testing/$1.xml" ] || fail "$1_test left no report"
}
if is_full_scale; then
  suite policy
  suite conformance 'Drivers/FilesTest.*/Core:Drivers/FilesTest.*/Mount'
else
  suite policy 'GlobTest.*'
  suite conformance 'Drivers/FilesTest.*/Core'
fi
quietly tests/shell/run build/test/txfs tests/shell/lifecycle.sh
quietly tests/check_includes

# And goes on, as a developer does.
echo '// more' >>policy/glob.cc
quietly git add -A
quietly git commit -m "More"
equal "" "$(git status --porcelain)" "git status"
quietly cmake --build build/test --target clean
rm -rf build
quietly git checkout -q HEAD~1
cd ..

equal "" "$(txfs -C mnt log --denied)" "what was refused"
[ "$(txfs -C mnt status --json | json 'd["operations"]')" -gt 300 ] ||
  fail "hardly anything was done"

# It would have been seen.
object=$(cd ws && find .git/objects -type f | head -n 1)
rm -f "mnt/$object" 2>/dev/null && fail "the policy is not in force"
contains "$(txfs -C mnt log --denied)" "by txfs-git-kept"
txfs -C mnt fsck
txfs umount mnt
