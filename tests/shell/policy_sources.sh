#!/bin/sh
# Where rules come from: each file that is there holds, and is out of reach.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse

# rule FILE NAME: a policy that refuses all that is done to NAME.
rule() {
  cat >"$1" <<END
schema = 1
[[fs]]
id = "no-$2"
path = "$2"
reason = "$2 is to stay"
suggest = "leave it"
match = "write $2"
END
}

# protects DIR NAME...: each of them, and nothing else of what is in it.
protects() {
  dir=$1
  shift
  for file in user workspace first second free; do
    case " $* " in
      *" $file "*)
        { echo x >>"$dir/$file"; } 2>/dev/null && fail "$file was written"
        contains "$(txfs -C "$dir" log --denied -n 1)" "by no-$file"
        ;;
      *) echo x >>"$dir/$file" ;;
    esac
  done
}

mkdir -p ws mnt store "$HOME/.config/txfs"
for file in user workspace first second free; do echo "$file" >ws/$file; done
rule first.toml first
rule second.toml second

# Missing ones are skipped. The workspace's holds before there is a store.
mkdir ws/.txfs
rule ws/.txfs/policy.toml workspace
txfs mount ws mnt
protects mnt workspace
[ ! -e mnt/.txfs/policy.toml ] || fail "the workspace's rules are visible"
[ "$(find mnt -name .txfs)" = "" ] || fail "the workspace's rules are listed"
mkdir mnt/.txfs 2>/dev/null && fail "rules were made in the mount"
mv mnt/free mnt/.txfs 2>/dev/null && fail "rules were moved into the mount"
txfs -C mnt discard
txfs -C mnt fsck
txfs umount mnt

# All hold at once, also by way of mount(8).
rule "$HOME/.config/txfs/policy.toml" user
txfs mount ws mnt --policy first.toml -o policy=second.toml
protects mnt user workspace first second
txfs -C mnt discard
txfs umount mnt
mkdir -p config/txfs
rule config/txfs/policy.toml free
XDG_CONFIG_HOME=$PWD/config txfs mount ws mnt
{ echo x >>mnt/free; } 2>/dev/null && fail "XDG_CONFIG_HOME was not asked"
echo x >>mnt/user
txfs -C mnt discard
txfs umount mnt

# The same with a store elsewhere.
mkdir other
cp ws/* other
mkdir other/.txfs
rule other/.txfs/policy.toml workspace
txfs --store store mount other mnt
protects mnt user workspace
[ ! -e mnt/.txfs/policy.toml ] || fail "the workspace's rules are visible"
mkdir mnt/.txfs 2>/dev/null && fail "rules were made in the mount"
txfs -C mnt commit
[ -f other/.txfs/policy.toml ] || fail "a commit took the rules away"
txfs -C mnt fsck
txfs umount mnt

# What is wrong stops the mount.
for file in "$HOME/.config/txfs/policy.toml" other/.txfs/policy.toml; do
  cp "$file" saved
  echo 'nonsense = 1' >"$file"
  refuses 1 "policy.toml:1: unknown key" txfs mount other mnt
  rule "$file" user
  chmod o+w "$file"
  refuses_with_hint 1 "is writable by other users" txfs mount other mnt
  chmod o-w "$file"
  rm "$file"
  mkdir "$file"
  refuses_with_hint 1 "is not a regular file" txfs mount other mnt
  rmdir "$file"
  cp saved "$file"
done
rule first.toml user
refuses 1 'id "no-user" is already used in' txfs mount other mnt --policy first.toml
refuses_with_hint 1 "cannot read the policy $PWD/none" \
  txfs mount other mnt --policy none
if [ "$(id -u)" -eq 0 ]; then
  chown 12 other/.txfs/policy.toml
  refuses_with_hint 1 "belongs to another user" txfs mount other mnt
  chown 0 other/.txfs/policy.toml
  # The machine's, in a namespace in which it is another one.
  cp -a /etc etc
  mkdir -p etc/txfs
  echo broken >etc/txfs/policy.toml
  refuses_with_hint 1 "/etc/txfs/policy.toml:1: not valid TOML" unshare -m sh -c \
    "mount --bind '$PWD/etc' /etc && exec txfs mount other mnt"
fi

# A file of the workspace is read beneath its mount, one of another mount not.
rule other/mine.toml first
txfs --store store mount other
rm other/mine.toml
txfs mount other mnt --name second --policy other/mine.toml
protects mnt user workspace first
mkdir third at
refuses_with_hint 1 "lies in the mount at" \
  txfs mount third at --policy mnt/mine.toml
cp first.toml at/inside.toml
refuses_with_hint 1 "lies in the mount at" \
  txfs mount third at --policy at/inside.toml
# Nor one to which a symbolic link leads that came later.
rule swapped.toml swapped
txfs mount third at --policy swapped.toml
ln -sf "$PWD/mnt/mine.toml" swapped.toml
refuses_with_hint 1 "lies in the mount at" txfs -C at policy reload
txfs umount at
txfs umount mnt
txfs umount other

# The user's own cannot lie in what is mounted, nor be reached by a link there:
# who works in it would change the rules of every later mount by a commit.
mkdir -p dotfiles/txfs away
rule dotfiles/txfs/policy.toml user
for mountpoint in mnt dotfiles; do
  mv "$HOME/.config/txfs" "$HOME/.config/txfs.saved"
  ln -s "$PWD/dotfiles/txfs" "$HOME/.config/txfs"
  refuses_with_hint 1 "lies inside the workspace" txfs mount dotfiles $mountpoint
  rm "$HOME/.config/txfs"
  mkdir "$HOME/.config/txfs"
  ln -s "$PWD/dotfiles/txfs/policy.toml" "$HOME/.config/txfs/policy.toml"
  refuses_with_hint 1 "lies in the workspace" txfs mount dotfiles $mountpoint
  rm -r "$HOME/.config/txfs"
  mv "$HOME/.config/txfs.saved" "$HOME/.config/txfs"
done
mv dotfiles/txfs/policy.toml away/policy.toml
ln -s "$PWD/away/policy.toml" dotfiles/link.toml
refuses_with_hint 1 "lies in the workspace" txfs mount dotfiles mnt --policy dotfiles/link.toml
