#!/bin/sh
# txfs run: no credential of the list in docs/run.md can be read, whether it is a
# file, a directory or a link, nor a socket of the list be reached; as root and as
# an ordinary user.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs bwrap python3 setpriv
needs_fuse
alone
service=''
tear_down() {
  # shellcheck disable=SC2086
  kill $service 2>/dev/null || :
}
trap tear_down EXIT
trap 'exit 143' TERM INT

# names_of LIST: in the source.
names_of() {
  sed -n "/ $1 = {/,/};/s/^ *\"\(.*\)\",\$/\1/p" "$TXFS_SOURCE_DIR/cli/run/hidden_paths.cc"
}
names_of kCredentials >credentials
names_of kSockets >sockets
[ "$(wc -l <credentials)" -ge 38 ] && [ "$(wc -l <sockets)" -ge 9 ] || fail "the lists were not found"
# The documentation names the same.
sed -n '/^Credentials are, below the home:/,/^$/p' "$TXFS_SOURCE_DIR/docs/run.md" | tr '\n' ' ' |
  awk -F'`' '{ for (i = 2; i < NF; i += 2) if ($i !~ /^--/) print $i }' >documented
equal "$(sort credentials sockets)" "$(sort documented)" "the list in docs/run.md"

cat >listen.py <<'END'
"""listen.py LIST: a socket at each path, or at `socket` in the directory of that name."""
import os, signal, socket, sys
listeners = []
for name in open(sys.argv[1]).read().split():
    path = name if name.endswith(".sock") else name + "/socket"
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    listeners.append(socket.socket(socket.AF_UNIX))
    listeners[-1].bind(path)
    os.chmod(path, 0o777)
    listeners[-1].listen(100)
os.write(3, b"x")
os.close(3)
signal.pause()
END
cat >probe <<'END'
# What can be read or reached, then what should be.
while read -r name; do
  for path in "$HOME/$name" "$HOME/$name/secret" "$HOME/$name/below/secret" "/proc/self/root$HOME/$name"; do
    if grep -qs credential-text "$path"; then echo "read $path"; fi
  done
  if [ "$1" = run ] && [ ! -L "$HOME/$name" ] && mv "$HOME/$name" "$HOME/moved" 2>/dev/null; then echo "moved $name"; fi
done <credentials
grep -rs credential-text "$HOME"
python3 - <<'PYTHON'
import os, socket
os.chdir(os.environ["HOME"])
for name in open(os.environ["WS"] + "/sockets").read().split():
    try:
        socket.socket(socket.AF_UNIX).connect(name if name.endswith(".sock") else name + "/socket")
        print("reached", name)
    except OSError:
        pass
PYTHON
cat "$HOME/plain"
END

# hidden UID FORM
hidden() {
  uid=$1 form=$2
  if [ "$uid" -eq "$(id -u)" ]; then
    as() { "$@"; }
  else
    as() { setpriv --reuid="$uid" --regid="$uid" --clear-groups "$@"; }
  fi
  mkdir "$form-$uid"
  cd "$form-$uid"
  export HOME="$PWD/home" XDG_STATE_HOME="$PWD/state"
  mkdir -p home/elsewhere state ws
  cp ../credentials ../sockets ../probe ws
  echo plain >home/plain
  count=0
  while read -r name; do
    count=$((count + 1))
    mkdir -p "home/$(dirname "$name")"
    case $form in
      file) echo credential-text >"home/$name" ;;
      directory)
        mkdir -p "home/$name/below"
        echo credential-text >"home/$name/secret"
        echo credential-text >"home/$name/below/secret"
        ;;
      link)
        echo credential-text >"home/elsewhere/$count"
        ln -s "$HOME/elsewhere/$count" "home/$name"
        ;;
    esac
  done <../credentials
  [ "$uid" -eq "$(id -u)" ] || chown -R "$uid:$uid" .
  (cd home && exec python3 ../../listen.py ../../sockets) 3>ready &
  service=$!
  until [ -s ready ]; do kill -0 $service || fail "no sockets"; done
  WS=$PWD/ws
  export WS
  # Outside it is all there.
  as sh -c 'cd ws && sh probe outside' >out
  while read -r name; do
    grep -qxF -e "read $HOME/$name" -e "read $HOME/$name/secret" out || fail "$name has no secret"
  done <../credentials
  while read -r name; do
    grep -qxF "reached $name" out || fail "$name is no service"
  done <../sockets
  for home in $(some cow ro rw); do
    as txfs -C ws run --home="$home" --env WS -- sh probe run >out 2>err || fail "the probe: $(cat out err)"
    equal plain "$(cat out)" "what user $uid reads with --home=$home, each credential a $form"
  done
  while read -r name; do
    [ -e "home/$name" ] || fail "$name is gone"
  done <../credentials
  equal "$(wc -l <../credentials)" "$(grep -rl --exclude-dir=below credential-text home | wc -l)" "secrets that are left"
  kill $service
  wait $service 2>/dev/null || :
  service=''
  cd ..
}

users=$(id -u)
if [ "$users" -eq 0 ] && command -v fusermount3 >/dev/null && mknod -m 666 "$TMPDIR/fuse" c 10 229; then
  mount --bind "$TMPDIR/fuse" /dev/fuse
  install -m 755 "$TXFS" txfs
  PATH=$PWD:$PATH
  users=$(some 0 65534)
fi
for user in $users; do
  for form in $(some file directory link); do
    hidden "$user" "$form"
  done
done

# Where a variable of the caller names another place.
sed -n '/ kCredentialVariables = {{/,/}};/s/^ *{"\([A-Za-z_]*\)"\(, "\(.*\)"\)\{0,1\}},$/\1 \3/p' \
  "$TXFS_SOURCE_DIR/cli/run/hidden_paths.cc" >variables
printf 'XDG_CONFIG_HOME gh/hosts.yml\nXDG_DATA_HOME keyrings/login\n' >>variables
[ "$(wc -l <variables)" -ge 20 ] || fail "the variables were not found"
sed -n '/^Credentials named by a variable/,/^$/p' "$TXFS_SOURCE_DIR/docs/run.md" | tr '\n' ' ' |
  awk -F'`' '{ for (i = 2; i < NF; i += 2) if ($i ~ /^[A-Za-z_]+$/) print $i }' >documented
equal "$(cut -d' ' -f1 variables | sort -u)" "$(sort -u documented)" "the variables in docs/run.md"
export HOME="$PWD/home-of-variables" XDG_STATE_HOME="$PWD/state-of-variables"
mkdir -p "$HOME/elsewhere" "$XDG_STATE_HOME" ws
while read -r variable below; do
  place=$HOME/elsewhere/$variable
  file=$place${below:+/$below}
  mkdir -p "$(dirname "$file")"
  echo credential-text >"$file"
  (
    export "$variable=$place"
    txfs -C ws run -- cat "$file" >out 2>err
  ) || :
  equal "" "$(cat out)" "what a run reads where $variable is"
  (
    export "$variable=$place"
    txfs -C ws run --show "$file" --show "$place" --show "$(dirname "$file")" -- cat "$file"
  ) >out 2>err || fail "--show of what $variable names: $(cat err)"
  rm -r "$place"
done <variables
echo credential-text >"$HOME/elsewhere/second"
KUBECONFIG=$HOME/elsewhere/first:$HOME/elsewhere/second txfs -C ws run -- cat "$HOME/elsewhere/second" >out 2>err || :
equal "" "$(cat out)" "what a run reads of a list of files"
txfs -C ws run -- cat "$HOME/elsewhere/second" >out 2>err
equal credential-text "$(cat out)" "a file that no variable names"
# None of these takes away what is not a credential.
AWS_CONFIG_FILE=/dev/null GNUPGHOME=/ AZURE_CONFIG_DIR=$HOME KUBECONFIG=relative NETRC='' \
  txfs -C ws run -- sh -c 'echo x >/dev/null && ls / >/dev/null && echo new >made'
equal new "$(cat ws/made)" "a run with variables that name no credential"
