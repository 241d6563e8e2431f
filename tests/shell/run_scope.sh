#!/bin/sh
# txfs run with limits: an ordinary user who can make no control groups gets a scope
# of systemd, if it gives one; here a script stands for systemd-run.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs bwrap fusermount3 python3 setpriv
needs_fuse
needs_root
alone
[ -e /usr/bin/systemd-run ] || { echo "LEFT OUT: systemd-run is not installed" && exit 0; }
mknod -m 666 "$TMPDIR/fuse" c 10 229 || skip "no device nodes here"
mount --bind "$TMPDIR/fuse" /dev/fuse
install -m 755 "$TXFS" txfs-program
TXFS=$PWD/txfs-program
mkdir -p home ws runtime/systemd
uid=65534

# The groups of version 1 that the scope stands for; none where there are none.
groups=
tear_down() {
  for group in $groups; do rmdir "$group"/* "$group" 2>/dev/null || :; done
}
trap tear_down EXIT
trap 'exit 143' TERM INT
for controller in memory pids cpuacct; do
  top=/sys/fs/cgroup/$controller
  [ -w "$top/cgroup.procs" ] && [ -e "$top/cgroup.clone_children" ] || continue
  group=$top/txfs-scope-$$
  mkdir "$group"
  chown -R $uid "$group"
  groups="$groups $group"
done
cat >systemd-run <<END
#!/bin/sh
echo "\$*" >>"$PWD/asked"
[ ! -e "$PWD/refuses" ] || exit 1
while [ "\$1" != -- ]; do shift; done
shift
for group in $groups; do echo \$\$ >"\$group/cgroup.procs"; done
exec "\$@"
END
chmod 755 systemd-run
mount --bind systemd-run /usr/bin/systemd-run
: >runtime/systemd/private
: >asked
chmod 666 asked
chown -R $uid home ws runtime

# run OPTION...: as the user, in the workspace.
run() {
  status=0
  setpriv --reuid=$uid --regid=$uid --clear-groups env "HOME=$PWD/home" "XDG_STATE_HOME=$PWD/home/state" \
    "XDG_RUNTIME_DIR=$PWD/runtime" "$TXFS" -C ws run --json "$PWD/home/report" "$@" >out 2>err || status=$?
}
by() { json 'str(d["limits_by"])' <home/report; }

run --memory 200M --pids 50 -- sh -c 'echo "$1"; env | grep -c TXFS_RUN_SCOPE; exit 7' sh 'two words'
equal 7 "$status" "exit code in a scope ($(cat err))"
equal "two words 0" "$(xargs <out)" "output in a scope"
equal 2 "$(wc -l <asked)" "how often systemd-run was called: $(cat asked)"
contains "$(tail -n 1 asked)" "--user --scope"
contains "$(tail -n 1 asked)" "two words"
if [ -n "$groups" ]; then
  equal "cgroup v1" "$(by)" "what enforces the limits in a scope"
  run --memory 50M -- python3 -c 'x = bytearray(200 << 20)'
  equal 123 "$status" "exit code of what needs too much memory ($(cat err))"
fi

# Without limits nobody is asked; where systemd gives no scope, processes are counted.
: >asked
run -- true
equal "0 0" "$status $(wc -l <asked)" "without limits ($(cat err))"
: >refuses
run --pids 50 -- true
equal "0 counted 1" "$status $(by) $(wc -l <asked)" "where systemd gives no scope ($(cat err))"
rm refuses runtime/systemd/private
: >asked
run --pids 50 -- true
equal "0 counted 0" "$status $(by) $(wc -l <asked)" "without a systemd of the user ($(cat err))"
