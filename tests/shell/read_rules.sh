#!/bin/sh
# Rules about reading: a file cannot be opened for reading, mapping or execution,
# whatever the page cache has of it.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs python3

mkdir -p ws/sub ws/bin mnt
echo SECRET=1 >ws/.env
echo SECRET=2 >ws/sub/.env
echo free >ws/free
ln ws/.env ws/linked
printf '#!/bin/sh\necho ran\n' >ws/bin/tool
chmod 755 ws/bin/tool
cat >policy.toml <<'END'
schema = 1

[[fs]]
id = "env-unread"
path = [".env", "/bin/tool"]
ops = ["read"]
unless = { exe = "/usr/bin/head" }
reason = "it has secrets"
suggest = "ask for the name of the setting"
match = ["read .env", "read sub/.env"]
not_match = ["write .env", "read env"]
END

equal "policy.toml: 1 rule, and their examples hold" "$(txfs policy check policy.toml)" check
for line in 'errno = "EPERM"' 'action = "audit"' 'at = "commit"'; do
  sed "s/^ops = .*/&\n$line/" policy.toml >wrong.toml
  refuses 1 "expected" txfs policy check wrong.toml
done
sed 's/\["read"\]/["read", "content"]/' policy.toml >wrong.toml
refuses 1 'expected a rule of its own with ops = ["read"]' txfs policy check wrong.toml

# By default everything can be read.
txfs mount ws mnt
equal SECRET=1 "$(cat mnt/.env)" "by default"
txfs umount mnt

txfs mount ws mnt --no-default-policy --policy policy.toml
# The page cache has it: head may read.
head=$(realpath "$(command -v head)")
[ "$head" != /usr/bin/head ] || equal SECRET=1 "$(head -n 1 mnt/.env)" "an exception"
# refused NAME CODE: python's CODE fails with EACCES.
refused() {
  got=$(cd mnt && python3 -c "
import os, errno, mmap, subprocess
try:
    $2
    print('ok')
except OSError as e:
    print(errno.errorcode[e.errno])")
  equal EACCES "$got" "$1"
}
for file in .env sub/.env linked; do
  refused "open of $file" "os.open('$file', os.O_RDONLY)"
  refused "open of $file for both" "os.open('$file', os.O_RDWR)"
done
refused "a link" "os.symlink('.env', 's'); open('s')"
refused "a way round" "os.open('/proc/self/fd/%d' % os.open('.env', os.O_PATH), os.O_RDONLY)"
refused "execution" "subprocess.run(['bin/tool'])"
refused "a copy" "open('sub/.env', 'rb').read()"
cp mnt/.env mnt/copy 2>/dev/null && fail "it was copied"
rm -f mnt/copy
# What moves it away does not help.
(cd mnt && ln .env hard && mv sub/.env moved && mv sub sub2)
for file in hard moved; do
  refused "open of $file" "os.open('$file', os.O_RDONLY)"
done
# Writing and looking is something else.
echo more >>mnt/.env
equal free "$(cat mnt/free)" "another file"
stat mnt/.env >/dev/null
contains "$(txfs -C mnt log --denied)" "EACCES by env-unread"
contains "$(txfs -C mnt log --denied --op read)" ".env"
contains "$(txfs -C mnt why .env)" "it has secrets"
contains "$(txfs -C mnt policy show)" "ops    read"
contains "$(txfs -C mnt policy explain read .env)" "* deny env-unread"
contains "$(cat mnt/.txfs/policy.md)" "EACCES, permission denied"
txfs -C mnt discard >/dev/null
txfs -C mnt fsck
# An exception may go, a page cache does not outlive it.
sed -i '/^unless/d' policy.toml
txfs -C mnt policy reload >/dev/null
head -n 1 mnt/.env 2>/dev/null && fail "read from the page cache"
txfs umount mnt

# A mount that does not ask at each open cannot begin to.
printf 'schema = 1\n' >later.toml
txfs mount ws mnt --no-default-policy --policy later.toml
cp policy.toml later.toml
refuses 1 "the rules about reading take effect only at a mount" txfs -C mnt policy reload
equal SECRET=1 "$(head -n 1 mnt/.env)" "the rules as they were"
txfs umount mnt
