#!/bin/sh
# `git apply` of `txfs diff` onto a copy of the workspace makes the mount's tree.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs git
make_workspace
rm ws/docs/fifo # git knows no FIFOs
head -c 5000 /dev/urandom >ws/binary
printf 'no newline at the end' >ws/no-newline
for i in 1 2 3; do seq $((i * 100)) >"ws/docs/n$i"; done
mkdir mnt
cp -a ws copy
txfs mount ws mnt
equal "" "$(txfs -C mnt diff)" "diff of nothing"

echo added >mnt/added
: >mnt/empty
sed -i 's/^500$/five hundred/' mnt/src/deep/numbers
mv mnt/docs mnt/documents
echo more >>mnt/documents/n1
rm mnt/zeros
chmod 644 mnt/run.sh
chmod 755 mnt/documents/n2
ln -sfn src mnt/link
ln -s /nowhere mnt/new-link
printf '\0\1\2' >>mnt/binary
head -c 3000 /dev/urandom >mnt/new-binary
printf ' now' >>mnt/no-newline
printf 'x\n' >"mnt/$(printf 'odd name\twith\n"bytes" \377')"
mkdir mnt/nested
echo y >mnt/nested/y
rm mnt/src/main.c
mkdir mnt/src/main.c
echo z >mnt/src/main.c/z
touch mnt/documents/n3          # touched but equal
cat mnt/documents/n3 >same
cat same >mnt/documents/n3

for mounted in yes no; do
  [ "$mounted" = yes ] || { cp -a mnt wanted; txfs umount mnt; }
  where=$([ "$mounted" = yes ] && echo mnt || echo ws)
  txfs -C "$where" diff >patch
  txfs -C "$where" diff --stat >stat
  txfs -C "$where" diff --name-status >names
  txfs -C "$where" diff --name-status -z | tr '\0' '\n' >names-z
  txfs -C "$where" diff --json | json 'len(d) > 0' >/dev/null
  ! grep -q "$(printf '\033')" patch || fail "colours without a terminal"
  contains "$(cat stat)" added
  contains "$(cat names)" added
  grep -qx documents/n3 names-z || fail "the new name of a rename"
  rm -rf applied
  cp -a copy applied
  git -C applied init -q
  git -C applied apply --whitespace=nowarn ../patch
  rm -rf applied/.git
done
# Git keeps no directories, no hard links, no modes but the x bit.
git_view() {
  (
    cd "$1"
    find . -type l -printf '%P l %l\n' -o -type f -perm -u+x \
      -printf '%P x\n' -o -type f -printf '%P f\n' | LC_ALL=C sort
    find . -type f -print0 | LC_ALL=C sort -z | xargs -0r sha256sum
  )
}
same_tree wanted applied git_view
contains "$(cat patch)" "rename from docs/n2"
contains "$(cat patch)" "GIT binary patch"
contains "$(cat patch)" "old mode 100755"

# Only the paths that were asked for.
txfs -C ws diff -- src >part
contains "$(cat part)" "five hundred"
! grep -q added part || fail "diff of a path shows others"
(cd ws/src && txfs diff deep) >part
contains "$(cat part)" "five hundred"
