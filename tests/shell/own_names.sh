#!/bin/sh
# Names that decide something for txfs: who works in a mount makes none, changes
# none, takes none away, and a commit brings none to the base.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs python3

rules() {
  printf 'schema = 1\n[[fs]]\nid = "%s"\npath = "kept"\nreason = "r"\nsuggest = "s"\n' "$1"
}
make_it() {
  mkdir -p ws/sub ws/ruled/.txfs ws/spare
  echo kept >ws/sub/kept
  echo kept >ws/ruled/kept
  echo plain >ws/plain
  rules own >ws/ruled/.txfs/policy.toml
}
mkdir mnt
make_it
manifest ws >before

# denied CODE: python's CODE fails with EPERM.
denied() {
  got=$(cd mnt && python3 -c "
import os, errno, socket, shutil
try:
    $1
    print('ok')
except OSError as e:
    print(errno.errorcode[e.errno])")
  equal EPERM "$got" "$1"
}

for option in --no-default-policy ""; do
  # shellcheck disable=SC2086 # none or one
  txfs mount ws mnt $option
  # The agent, who would have rules of its own hold in `sub`, or none in `ruled`.
  for name in sub/.txfs sub/.txfs-vault .txfs-vault-00ff ruled/.txfs/more; do
    denied "os.mkdir('$name')"
    denied "open('$name', 'w')"
    denied "os.mknod('$name')"
    denied "os.mkfifo('$name')"
    denied "os.symlink('/', '$name')"
    denied "os.link('plain', '$name')"
    denied "os.rename('plain', '$name')"
    denied "os.rename('spare', '$name')"
  done
  python3 - <<'CODE'
import os
os.makedirs("mnt/made/deep")
open("mnt/made/deep/policy.toml", "w").close()
CODE
  denied "os.rename('made/deep', 'made/.txfs')"
  denied "os.rename('made/deep', 'sub/.txfs')"
  rules=ruled/.txfs/policy.toml
  denied "open('$rules', 'w')"
  denied "os.write(os.open('$rules', os.O_WRONLY | os.O_APPEND), b'x')"
  denied "os.truncate('$rules', 3)"
  denied "os.unlink('$rules')"
  denied "os.rename('$rules', 'away')"
  denied "os.rename('plain', '$rules')"
  denied "os.link('$rules', 'other')"
  denied "os.chmod('$rules', 0o666)"
  denied "os.setxattr('$rules', 'user.x', b'1')"
  denied "os.rename('ruled/.txfs', 'away')"
  rm -rf mnt/ruled 2>/dev/null && fail "a directory went with its rules"
  equal "$(cat ws/ruled/.txfs/policy.toml)" "$(cat mnt/$rules)" "rules in the mount"
  contains "$(txfs -C mnt log --denied)" "mkdir  sub/.txfs  EPERM by txfs-own-names"
  contains "$(txfs why mnt/ruled/.txfs)" "txfs-own-names"
  contains "$(txfs -C mnt status)" "txfs-own-names"
  # What has them goes along with what is above it.
  mv mnt/ruled mnt/elsewhere
  denied "open('elsewhere/.txfs/policy.toml', 'w')"
  mv mnt/elsewhere mnt/ruled
  # Other names decide nothing.
  echo x >mnt/sub/.TXFS
  echo x >mnt/sub/.txfs2
  rm mnt/sub/.TXFS mnt/sub/.txfs2
  rm -r mnt/made
  [ -e mnt/ruled/kept ] || echo kept >mnt/ruled/kept
  txfs -C mnt commit >/dev/null
  txfs -C mnt fsck
  txfs umount mnt
  equal "" "$(find ws/sub ws/spare -name '.txfs*')" "names that a commit brought"
done
equal "$(rules own)" "$(cat ws/ruled/.txfs/policy.toml)" "the rules"
refuses 1 '"txfs-own-names" is reserved by txfs' sh -c "$(cat <<'CODE'
printf 'schema = 1\n[[fs]]\nid = "txfs-own-names"\npath = "x"\nreason = "r"\nsuggest = "s"\n' >own.toml
exec txfs policy check own.toml
CODE
)"
