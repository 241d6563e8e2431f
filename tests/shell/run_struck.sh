#!/bin/sh
# txfs run: one of its processes is killed at a random moment, from before the
# begin until after the commit. The base is exactly as before or as after, the
# exit code and the report say which, and nothing is left. As root and as an
# ordinary user; 60 runs, times TXFS_TEST_SCALE.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs bwrap fusermount3 python3 setpriv unshare
needs_fuse
needs_root
alone
mknod -m 666 "$TMPDIR/fuse" c 10 229 || skip "no device nodes here"
mount --bind "$TMPDIR/fuse" /dev/fuse
install -m 755 "$TXFS" txfs-program
TXFS=$PWD/txfs-program

cat >struck.py <<'END'
"""struck.py SEED RUNS: in the workspace at ws, below the home."""
import collections, json, os, random, signal, subprocess, sys, time

seed, runs = int(sys.argv[1]), int(sys.argv[2])
txfs, home = os.environ["TXFS"], os.environ["HOME"]
REPORT = home + "/report"
SCRIPT = "rm gone; echo new >file; mkdir made; echo x >made/x; mv dir moved; echo more >>~/kept"
VICTIMS = ["supervisor", "daemon of the workspace", "daemon of the home", "bwrap", "sandbox", "command"]
if subprocess.run(["sh", "-c", "command -v tinyproxy"], stdout=subprocess.DEVNULL).returncode == 0:
    VICTIMS.append("proxy")
else:
    print("LEFT OUT: the proxy of a run, for tinyproxy is not installed")
counts = collections.Counter()

def check(what, condition, *more):
    if not condition:
        raise SystemExit(f"{what}: {' '.join(map(str, more))}")

def tree(top):
    found = {}
    for at, directories, files in os.walk(top):
        for name in directories:
            found[os.path.relpath(os.path.join(at, name), top)] = None
        for name in files:
            with open(os.path.join(at, name)) as file:
                found[os.path.relpath(os.path.join(at, name), top)] = file.read()
    return found

def read(path):
    try:
        with open(path, errors="replace") as file:
            return file.read()
    except OSError:
        return ""

def children(pid):
    return [int(child) for child in read(f"/proc/{pid}/task/{pid}/children").split()]

def find(victim, supervisor):
    """The process of that kind, if it is there now."""
    below = [(pid, read(f"/proc/{pid}/cmdline").split("\0")) for pid in children(supervisor)]
    leads = [pid for pid, _ in below if read(f"/proc/{pid}/stat").rsplit(")", 1)[-1].split()[3:4] == [str(pid)]]
    if victim == "supervisor":
        return supervisor
    # The home's is started first.
    if victim == "daemon of the home":
        return leads[0] if leads else None
    if victim == "daemon of the workspace":
        return leads[1] if len(leads) > 1 else None
    if victim == "proxy":
        for pid, words in below:
            for process in [pid, *children(pid)]:
                if any("tinyproxy" in word for word in read(f"/proc/{process}/cmdline").split("\0")[:1]):
                    return process
        return None
    outer = [pid for pid, words in below if words[0].endswith("bwrap")]
    inner = [child for pid in outer for child in children(pid)]
    if victim == "bwrap":
        return outer[0] if outer else None
    if victim == "sandbox":
        return inner[0] if inner else None
    commands = [child for pid in inner for child in children(pid)]
    return commands[0] if commands else None

def left():
    """What may still be on its way out."""
    found = []
    for process in filter(str.isdigit, os.listdir("/proc")):
        words = read(f"/proc/{process}/cmdline").split("\0")
        is_own = f"HOME={home}\0" in read(f"/proc/{process}/environ")
        if is_own and (words[0].endswith(("bwrap", "tinyproxy")) or words[0] == txfs):
            found.append(" ".join(words))
    found += [line for line in open("/proc/mounts") if " fuse.txfs " in line]
    found += [line for line in os.popen(f"{txfs} -C ws list 2>/dev/null").read().splitlines() if " active " in line]
    for top in (os.environ["XDG_STATE_HOME"] + "/txfs/runs", "/run/txfs", f"/run/user/{os.geteuid()}/txfs"):
        for at, directories, files in os.walk(top):
            found += [os.path.join(at, name) for name in directories + files if name.startswith("run-")]
    return found

def make():
    subprocess.run("rm -rf ws; mkdir -p ws/dir; echo old >ws/file; echo old >ws/gone; echo old >ws/dir/file", shell=True, check=True)

make()
before = tree("ws")
subprocess.run(["sh", "-c", f"cd ws; {SCRIPT}"], check=True)
after = tree("ws")
# How long a run takes here.
make()
begun = time.monotonic()
subprocess.run([txfs, "-C", "ws", "run", "--on-success=discard", "--", "sh", "-c", SCRIPT], check=True, stderr=subprocess.DEVNULL)
whole = time.monotonic() - begun

for number in range(runs):
    chance = random.Random(f"{seed} {number}")
    victim = chance.choice(VICTIMS)
    what = f"run {number}, the {victim} killed (TXFS_TEST_SEED={seed})"
    make()
    options = ["--network=example.test"] if victim == "proxy" else []
    if os.path.exists(REPORT):
        os.remove(REPORT)
    run = subprocess.Popen([txfs, "-C", "ws", "run", "--json", REPORT, *options, "--", "sh", "-c", SCRIPT],
                           stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    time.sleep(chance.random() * whole * (3 if options else 1.2))
    # One that does not live all the time is waited for.
    while not (process := find(victim, run.pid)) and run.poll() is None:
        pass
    if process:
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            process = None
    error = run.communicate()[1]
    if victim == "supervisor":
        # What it had just made, the next run removes.
        subprocess.run([txfs, "-C", "ws", "run", "--", "true"], check=True, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while (found := left()) and time.monotonic() < deadline:
        time.sleep(0.02)
    check(what, not found, "left are", found, error, read(REPORT))
    code = run.returncode
    report = json.loads(read(REPORT) or "null") if victim != "supervisor" or code >= 0 else None
    if report and report["outcome"] == "not settled":
        subprocess.run([txfs, "-C", "ws", "list"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    now = tree("ws")
    check(what, now in (before, after), "torn:", now, error)
    if report:
        outcome = report["outcome"]
        counts[f"{victim if process else 'nobody'}: {outcome} {code}"] += 1
        check(what, report["exit_code"] == code, code, report["exit_code"])
        check(what, (code == 0) == (outcome == "committed"), code, outcome, error)
        check(what, code in (0, 125, 137), "exit code", code, error)
        check(what, code == 0 or report["why"], "the report does not say why", error)
        check(what, outcome in ("committed", "rolled back", "not begun", "not settled"), outcome, error)
        if outcome != "not settled":
            check(what, now == (after if outcome == "committed" else before), outcome, now, error)
    else:
        check(what, victim == "supervisor" and code == -signal.SIGKILL, "no report", code, error)
        counts[f"{victim}: {'after' if now == after else 'before'}"] += 1
    # The next run is not in its way.
    subprocess.run([txfs, "-C", "ws", "run", "--", "true"], check=True, stderr=subprocess.DEVNULL)
    check(what, tree("ws") == now, "changed by the next run")
subprocess.run([txfs, "-C", "ws", "fsck"], check=True, stdout=subprocess.DEVNULL)
for what, count in sorted(counts.items()):
    print(f"{count:4} {what}")
END

runs=$(python3 -c 'import os; print(max(8, int(60 * float(os.environ.get("TXFS_TEST_SCALE", "1")))))')
for uid in $(some 0 65534); do
  HOME=$PWD/home-$uid XDG_STATE_HOME=$PWD/home-$uid/.local/state
  mkdir -p "$XDG_STATE_HOME"
  # The one in /tmp, other tests have, too.
  mkdir -p "/run/user/$uid"
  chown -R "$uid:$uid" "$HOME" "/run/user/$uid"
  echo "as user $uid"
  (
    cd "$HOME"
    setpriv --reuid="$uid" --regid="$uid" --clear-groups \
      env TXFS="$TXFS" python3 ../struck.py "${TXFS_TEST_SEED:-1}" "$runs"
  ) || fail "as user $uid"
done
