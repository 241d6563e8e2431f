#!/bin/sh
# What a run must not see is hidden under each name that the mount table gives it.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs bwrap unshare setpriv fusermount3
needs_root
alone
[ -d /srv ] && [ -d /mnt ] || skip "no /srv or /mnt"
mknod -m 666 "$TMPDIR/fuse" c 10 229 || skip "no device nodes here"
mount --bind "$TMPDIR/fuse" /dev/fuse
cp "$TXFS" txfs-program
chmod 755 txfs-program
TXFS=$PWD/txfs-program

# Not below /tmp, which is private in each run.
mkdir place names
mount --bind place /srv
mount --bind names /mnt
cd /srv

# tests WHO: as root or as nobody, in a directory of that name.
tests() {
  who=$1
  as() { "$@"; }
  [ "$who" = root ] || as() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
  mkdir "/srv/$who" "/mnt/$who"
  HOME=/srv/$who/home XDG_STATE_HOME=/srv/$who/home/.local/state
  mkdir -p "$HOME/.ssh" "$HOME/.local/state" "/srv/$who/projects/ws/src" "/srv/$who/projects/other" \
    "/srv/$who/second" "/srv/$who/ws2" "/srv/$who/m2"
  echo key >"$HOME/.ssh/id"
  echo text >"$HOME/plain"
  echo base >"/srv/$who/projects/ws/src/file"
  echo other >"/srv/$who/projects/other/file"
  for name in projects home src covered store other; do
    mkdir "/mnt/$who/$name"
  done
  [ "$who" = root ] || chown -R 65534:65534 "/srv/$who" "/mnt/$who"
  cd "/srv/$who"
  ws=/srv/$who/projects/ws

  as "$TXFS" --store "/srv/$who/store" mount ws2 m2 >/dev/null
  as sh -c 'echo secret >m2/secret'
  as "$TXFS" mount --name second "$ws" second >/dev/null
  as sh -c 'echo mine >second/mine'

  mount --bind projects "/mnt/$who/projects"
  mount --bind home "/mnt/$who/home"
  mount --bind "$ws/src" "/mnt/$who/src"
  mount --bind store "/mnt/$who/store"
  mount --bind second "/mnt/$who/other"
  # Its place is taken by something that the run may see.
  mount --bind projects "/mnt/$who/covered"
  mount -t tmpfs none "/mnt/$who/covered/ws"
  echo seen >"/mnt/$who/covered/ws/seen"
  chmod 777 "/mnt/$who/covered/ws"

  hidden="$HOME/.ssh $XDG_STATE_HOME/txfs /srv/$who/store /srv/$who/second /srv/$who/m2
    /mnt/$who/projects/ws /mnt/$who/src /mnt/$who/home/.ssh /mnt/$who/home/.local/state/txfs
    /mnt/$who/store /mnt/$who/other"
  for at in elsewhere over; do
    case $at in
      elsewhere) ;;
      over) as "$TXFS" mount "$ws" >/dev/null ;;
    esac
    for path in $hidden; do
      as ls -A "$path" >ls.out
      [ -s ls.out ] || fail "nothing to hide at $path"
    done
    as env HIDDEN="$hidden" WHO="$who" AT="$at" "$TXFS" -C "$ws" run --on-success=commit --rw "/mnt/$who" \
      -- sh -c '
        for path in $HIDDEN; do
          [ -d "$path" ] || { echo "$path is not there"; continue; }
          left=$(ls -A "$path" 2>&1)
          [ -z "$left" ] || echo "$path has $left"
          (echo bad >"$path/written") 2>/dev/null && echo "wrote to $path"
          rmdir "$path" 2>/dev/null && echo "removed $path"
          mv "$path" "$path.moved" 2>/dev/null && echo "moved $path"
        done
        [ "$(cat "$HOME/plain" "/mnt/$WHO/home/plain" "/mnt/$WHO/projects/other/file" "/mnt/$WHO/covered/ws/seen" \
          "/mnt/$WHO/covered/other/file" | tr "\n" " ")" = "text text other seen other " ] || echo "too much is hidden"
        echo "$AT" >"/mnt/$WHO/covered/ws/written" || echo "cannot write where it may"
        [ "$(pwd -P)" = "/srv/$WHO/projects/ws" ] || echo "in $(pwd -P)"
        cat src/file
        echo "$AT" >src/new || echo "cannot write to the workspace"
      ' >out 2>err || fail "$who, $at: exit $?: $(cat out err)"
    equal base "$(cat out)" "what $who saw, $at"
    [ "$at" = elsewhere ] || as "$TXFS" umount "$ws" >/dev/null
    equal "$at" "$(cat "$ws/src/new")" "what was committed"
    equal "$at" "$(cat "/mnt/$who/covered/ws/written")" "what was written"
  done
  equal "file new" "$(ls "$ws/src" | tr '\n' ' ' | sed 's/ $//')" "the base"
  equal "mine" "$(as cat second/mine)" "the other transaction"
  umount "/mnt/$who/other"
  as "$TXFS" umount second >/dev/null
  as "$TXFS" umount m2 >/dev/null
  cd /srv
}

tests root
tests nobody
HOME=/srv/root/home XDG_STATE_HOME=/srv/root/home/.local/state

# What is hidden cannot be moved to where the next process of the run, or the next
# run, sees it.
mkdir "$HOME/.docker" "$HOME/kept"
echo secret >"$HOME/.docker/config.json"
mkdir -p /srv/root/home/code/ws
cd /srv/root/home/code/ws
equal "" "$("$TXFS" run --rw "$HOME/kept" --validate 'grep -rs secret ~; ls -d ~/moved*/ws 2>/dev/null; :' -- sh -c '
  mv ~/.docker ~/kept/moved; mv ~/.docker ~/moved; mv ~/code ~/moved-code; mv ~/code/ws ~/moved-ws; :
' 2>/dev/null)" "what was moved"
equal "" "$(grep -rs secret "$HOME/kept" || :)" "what was kept"
equal secret "$(cat "$HOME/.docker/config.json")" "what was hidden"
cd /srv

# A workspace that lies in what is hidden is seen, and nothing beside it.
mkdir -p "$HOME/.config/txfs/ws" "$HOME/.config/txfs/profiles"
cd "$HOME/.config/txfs/ws"
equal "ws" "$("$TXFS" run -- sh -c 'ls ..; echo new >new' 2>/dev/null)" "what is beside the workspace"
equal new "$(cat new)" "what was committed"

# Credentials are hidden in a workspace that has the home in it.
mkdir -p /srv/root/whole/home/.ssh
echo secret >/srv/root/whole/home/.ssh/id
cd /srv/root/whole
equal ".ssh" "$(HOME=$PWD/home XDG_CONFIG_HOME=/srv/root/home/.config "$TXFS" run -- sh -c 'ls -A home; ls -A home/.ssh; mv home moved 2>/dev/null; ls -A ~/.ssh' \
  2>/dev/null)" "a home in the workspace"
equal secret "$(cat home/.ssh/id)" "a credential in the workspace"

# What is hidden by its name in the mount is hidden in the workspace.
cd /srv/root
"$TXFS" mount projects/ws second >/dev/null
mkdir second/made
echo secret >second/made/secret
cd second
equal "" "$("$TXFS" run --hide made -- sh -c 'ls made; ls /srv/root/second/made' 2>/dev/null)" "what is hidden"
cd /srv
"$TXFS" umount /srv/root/second >/dev/null

# Nothing can be mounted where a daemon hangs: there is no run, and no hang.
mkdir /srv/root/hung /srv/root/empty
"$TXFS" mount --name hung /srv/root/projects/ws /srv/root/hung >/dev/null 2>&1
pid=$("$TXFS" -C /srv/root/hung status --json | json 'd["pid"]')
kill -STOP "$pid"
status=0
timeout -k 1 100 "$TXFS" -C /srv/root/empty run -- touch made >/dev/null 2>err || status=$?
kill -CONT "$pid"
case $status in
  125) ;;
  *) fail "exit code $status where a daemon hangs: $(cat err)" ;;
esac
contains "$(cat err)" "process $pid, does not answer"
[ ! -e /srv/root/empty/made ] || fail "it ran"
"$TXFS" umount /srv/root/hung >/dev/null
