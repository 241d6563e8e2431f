#!/bin/sh
# Many runs with random outcomes on one workspace, in a row and 8 at a time, with
# and without a mount: each ends as it should, and nothing is left of any.
# 100 runs, times TXFS_TEST_SCALE.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs bwrap python3
needs_fuse
alone
mkdir ws mnt ws/shared ws/own
for i in 0 1 2; do
  echo begin >"ws/shared/$i"
done
cat >soak.py <<'END'
"""soak.py SEED RUNS AT-A-TIME DIRECTORY: runs in the workspace at ws, from the directory."""
import collections, concurrent.futures, os, random, re, signal, subprocess, sys, threading, time

seed, runs, at_a_time, directory = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
own = "mkdir own/$i; echo $i >own/$i/a; echo $i >own/$i/b; "
stray = "(setsid sh -c 'trap \"\" TERM HUP; sleep 7654321' >/dev/null 2>&1 &) ; "
# name: script, options, exit code, whether it is committed; None: both are possible
kinds = {
    "disjoint": (own, [], 0, True),
    "overlapping": ("echo $i >>shared/$k; sleep 0.0$k; ", [], None, None),
    "overlapping in part": (own + "echo $i >>shared/$k; ", [], None, None),
    "fails": (own + "rm shared/$k; exit $((i % 90 + 10)); ", [], -1, False),
    "kills itself": (own + "kill -9 $$; ", [], 137, False),
    "is not valid": (own, ["--validate", "test -e own/none"], 5, False),
    "is valid": (own, ["--validate", "test -e own/$i/b; rm own/$i/b"], 0, True),
    "too late": (own + "exec sleep 600", ["--timeout", "50ms"], 124, False),
    "too many": (own + "for n in 1 2 3 4 5 6 7 8 9; do sleep 600 & done; wait", ["--pids", "7"], 123, False),
    "leaves a process": (own + stray, [], 0, True),
    "fails and leaves one": (own + stray + "exit 9; ", ["--home", "ro"], 9, False),
    "writes nothing": (":", ["--network", "none"], 0, False),
    "not found": (None, [], 127, False),
    "supervisor killed": (own + stray + "sleep 0.$k; ", [], None, None),
    "supervisor ended": (own + "exec sleep 600", [], 143, False),
}
# In a mount, what a conflict has kept stays there until the end.
kept_in_mount = threading.Event()
counts = collections.Counter()
lock = threading.Lock()

def content(path):
    with open(os.path.join("ws", path)) as file:
        return file.read().split()

def check(what, condition, *more):
    if not condition:
        raise SystemExit(f"{what}: {' '.join(map(str, more))}")

def one(number):
    chance = random.Random(f"{seed} {at_a_time} {directory} {number}")
    kind = chance.choice(list(kinds))
    script, options, code, committed = kinds[kind]
    i = f"{directory}{at_a_time}x{number}"
    k = chance.randrange(3)
    if code == -1:
        script, code = script.replace("$((i % 90 + 10))", str(10 + number % 90)), 10 + number % 90
    command = ["sh", "-c", script] if script else ["no-such-program"]
    run = subprocess.Popen(["txfs", "-C", directory, "run", "--env", f"i={i}", "--env", f"k={k}", *options, "--", *command],
                           stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if kind == "supervisor killed":
        time.sleep(chance.random() * 0.4)
        run.kill()
    if kind == "supervisor ended":
        begun = time.monotonic()
        while not os.path.exists(f"/proc/{run.pid}/task/{run.pid}/children") or time.monotonic() - begun < chance.random() * 0.4:
            time.sleep(0.01)
        run.terminate()
    error = run.communicate()[1]
    what = f"run {i} ({kind}, seed {seed})"
    result = run.returncode
    # Validators would see what a conflict has kept in the mount.
    if result == 125 and "--validate" in options and "the validators would see changes" in error:
        check(what, directory == "mnt" and kept_in_mount.wait(10), error)
        with lock:
            counts[kind + " in a mount with changes"] += 1
        return what, i, False
    if kind == "supervisor ended":
        # Before the command begins, the signal ends the supervisor.
        check(what, result in (143, -signal.SIGTERM), result, error)
    elif code is not None:
        check(what, result == code, "exit code", result, error)
    elif kind != "supervisor killed":
        check(what, result in (0, 3), "exit code", result, error)
    there = os.path.exists(f"ws/own/{i}")
    lines = content(f"shared/{k}").count(i)
    if kind == "supervisor killed":
        # The daemon ends it, perhaps later.
        with lock:
            counts[kind] += 1
        return what, i, None
    if kind.startswith("overlapping"):
        committed = result == 0
        check(what, lines == (1 if committed else 0), "lines", lines, error)
        if kind != "overlapping":
            check(what, there == committed, "committed in part", error)
        if result == 3:
            check(what, re.search(r"^kept \d change", error, re.M), error)
            name = re.search(r"txfs -t (\S+) diff", error)
            if name:
                subprocess.run(["txfs", "-C", "ws", "-t", name[1], "discard"], check=True, stdout=subprocess.DEVNULL)
            else:
                kept_in_mount.set()
    with lock:
        counts[kind + (" in conflict" if result == 3 else "")] += 1
    return what, i, committed if "own/$i" in (script or "") else None

with concurrent.futures.ThreadPoolExecutor(at_a_time) as pool:
    results = list(pool.map(one, range(runs)))
if directory == "mnt" and kept_in_mount.is_set():
    subprocess.run(["txfs", "-C", "mnt", "discard"], check=True, stdout=subprocess.DEVNULL)

# What a supervisor had just made when it was killed, the next run removes.
subprocess.run(["txfs", "-C", "ws", "run", "--", "true"], check=True, stderr=subprocess.DEVNULL)

def left():
    """What may still be on its way out."""
    found = [name for name in os.popen("txfs -C ws list").read().splitlines() if " active " in name and "run-" in name]
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = open(f"/proc/{process}/cmdline", errors="replace").read().split("\0")
            home = f"HOME={os.environ['HOME']}\0" in open(f"/proc/{process}/environ", errors="replace").read()
        except OSError:
            continue
        if home and (words[:2] == ["sleep", "7654321"] or words[0].endswith("bwrap") or words[1:2] == ["run"]):
            found.append(str(words))
    mounts = [line.split()[1] for line in open("/proc/mounts") if "fuse.txfs" in line or line.startswith("txfs")]
    found += [mount for mount in mounts if not mount.endswith("/mnt")]
    found += os.listdir(os.environ["XDG_STATE_HOME"] + "/txfs/runs")
    for top, directories, files in os.walk("/run/txfs"):
        found += [os.path.join(top, name) for name in directories + files if name.startswith("run-")]
    return found

deadline = time.monotonic() + 60
while (found := left()) and time.monotonic() < deadline:
    time.sleep(0.05)
check("left after the runs", not found, found)
for what, i, committed in results:
    there = sorted(os.listdir(f"ws/own/{i}")) if os.path.exists(f"ws/own/{i}") else []
    if committed is not None:
        check(what, bool(there) == committed, "committed:", there)
    check(what, there in ([], ["a", "b"]), "torn:", there)
for k in range(3):
    lines = content(f"shared/{k}")
    check("shared", lines[0] == "begin" and len(set(lines)) == len(lines), lines)
print(at_a_time, "at a time in", directory, dict(sorted(counts.items())))
END

runs=$(python3 -c 'import os; print(max(5, int(25 * float(os.environ.get("TXFS_TEST_SCALE", "1")))))')
seed=${TXFS_TEST_SEED:-1}
soak() {
  python3 soak.py "$seed" "$@"
  txfs -C ws fsck >/dev/null || fail "the store is not sound"
}
groups() {
  find /sys/fs/cgroup -type d -name 'txfs-run-*' 2>/dev/null | LC_ALL=C sort
}
groups >groups.before
txfs -C ws run --json "$TMPDIR/report" --pids 50 -- true 2>/dev/null
echo "processes are limited by: $(json 'd["limits_by"]' <"$TMPDIR/report")"
soak "$runs" 1 ws
soak "$runs" 8 ws

txfs mount ws mnt >/dev/null
daemon=$(txfs -C mnt status --json | json 'd["pid"]')
# usage: what the daemon has: descriptors, threads, KiB of memory.
usage() {
  find "/proc/$daemon/fd" -mindepth 1 | wc -l
  awk '/^Threads/ { print $2 } /^VmRSS/ { print $2 }' "/proc/$daemon/status"
}
soak 5 4 mnt
usage | xargs >usage.before
soak "$runs" 1 mnt
soak "$runs" 8 mnt
usage | xargs >usage.after
echo "the daemon's descriptors, memory and threads: $(cat usage.before), then $(cat usage.after)"
equal "" "$(txfs -C mnt diff --name-status)" "changes that are left in the mount"
[ "$(txfs -C mnt status --json | json 'len(d["savepoints"])')" -le 1 ] || fail "savepoints are left in the mount"
read -r before memory_before _ <usage.before
read -r after memory_after _ <usage.after
# Those of the last run are closed when the next begins.
[ "$after" -le $((before + 4)) ] || fail "the daemon has descriptors of runs: $(ls -l "/proc/$daemon/fd")"
[ "$memory_after" -le $((memory_before + 32768)) ] || fail "the daemon has memory of runs"
txfs umount mnt >/dev/null
# A group that another test made has processes, or goes.
groups | LC_ALL=C comm -13 groups.before - >groups.after
python3 - groups.after <<'END'
import os, sys, time

def processes(group):
    """Of the group and of those in it; None: it is gone."""
    if not os.path.isdir(group):
        return None
    found = []
    for top, _, _ in os.walk(group):
        try:
            found += open(top + "/cgroup.procs").read().split()
        except OSError:
            pass
    return found

def is_own(process):
    try:
        return f"HOME={os.environ['HOME']}\0" in open(f"/proc/{process}/environ", errors="replace").read()
    except OSError:
        return False

def is_left(group):
    found = processes(group)
    return found is not None and (not found or any(map(is_own, found)))

groups = open(sys.argv[1]).read().split("\n")[:-1]
deadline = time.monotonic() + 60
while (groups := list(filter(is_left, groups))) and time.monotonic() < deadline:
    time.sleep(0.05)
for group in groups:
    for top, _, _ in os.walk(group, topdown=False):
        try:
            os.rmdir(top)
        except OSError:
            pass
if groups:
    raise SystemExit(f"control groups were left: {groups}")
END
