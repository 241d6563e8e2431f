#!/bin/sh
# Rules that change while something is mounted.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs python3

# rules FILE NAME...: a policy that refuses to change what is in NAME.
rules() {
  file=$1
  shift
  echo 'schema = 1' >"$file"
  for name in "$@"; do
    cat >>"$file" <<END
[[fs]]
id = "no-$name"
path = "$name"
ops = ["content"]
reason = "$name is to stay"
suggest = "leave it"
END
  done
}

mkdir ws mnt
for name in a b c d; do echo "$name" >ws/$name; done
rules given.toml a
rules ws/inside.toml d
txfs mount ws mnt --no-default-policy --policy given.toml --policy ws/inside.toml

# held FILE COMMAND...: stores "x" through a descriptor, and through a mapping
# that were there before COMMAND was run; says how that went. Only another
# process can run it: whoever is forked closes the file, which writes it back.
held() {
  file=$1
  shift
  rm -f stored go
  mkfifo stored go
  timeout 60 python3 -c "
import errno, mmap, sys
def attempt(what):
    try:
        what()
        print('ok', end=' ')
    except OSError as e:
        print(errno.errorcode[e.errno], end=' ')
with open(sys.argv[1], 'r+b', buffering=0) as f, mmap.mmap(f.fileno(), 0) as m:
    m[:1] = b'x'
    open('stored', 'w').close()
    open('go').close()
    attempt(lambda: m.flush())
    attempt(lambda: f.write(b'x'))
    attempt(lambda: f.truncate(0))" "$file" >outcome &
  holder=$!
  : <stored
  "$@" >said
  : >go
  wait $holder
  cat outcome
}

equal "2 rules in force at $PWD/mnt" "$(cd / && txfs policy reload "$OLDPWD/mnt")" "reload"
rules given.toml a b
echo x >mnt/b
txfs -C mnt discard
equal "EPERM EPERM EPERM " "$(held mnt/b txfs -C mnt policy reload)" "a descriptor"
# The kernel is told to forget a refused page by a thread of its own.
until [ "$(cat mnt/b)" = b ]; do :; done
contains "$(txfs -C mnt log --denied)" "by no-b"

# What is wrong is said, and the rules stay.
rules given.toml c
echo 'nonsense = 1' >>given.toml
refuses 1 "given.toml:8: unknown key" txfs -C mnt policy reload
rules given.toml c
chmod g+w given.toml
refuses_with_hint 1 "is writable by other users" txfs -C mnt policy reload
mv given.toml away.toml
refuses_with_hint 1 "cannot read the policy $PWD/given.toml" txfs -C mnt policy reload
for name in a b; do
  { echo x >>mnt/$name; } 2>/dev/null && fail "$name is not protected any more"
done
echo x >>mnt/c
txfs -C mnt discard

# Fewer rules hold, too; so do those of the next transaction.
chmod g-w away.toml
mv away.toml given.toml
txfs -C mnt policy reload
echo x >>mnt/b
{ echo x >>mnt/c; } 2>/dev/null && fail "c is not protected"
txfs -C mnt commit
{ echo x >>mnt/c; } 2>/dev/null && fail "c is not protected after a commit"

# The workspace's own come into being; what the mount shows of a file is not it.
rules mnt/inside.toml a
mkdir ws/.txfs
rules ws/.txfs/policy.toml b
contains "$(txfs policy reload mnt)" "3 rules"
for name in b c d; do
  { echo x >>mnt/$name; } 2>/dev/null && fail "$name is not protected"
done
echo x >>mnt/a
txfs umount mnt
refuses_with_hint 1 "is not mounted" txfs -C ws policy reload
