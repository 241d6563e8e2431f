#!/bin/sh
# Ordinary work in a plain directory and in a run, at the same path: what is
# printed, the exit code and the tree afterwards are the same.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs bwrap git cmake ninja g++ python3 sqlite3 rsync
needs_fuse
alone
export GIT_CONFIG_GLOBAL="$HOME/.gitconfig" GIT_AUTHOR_DATE='1700000000 +0000' GIT_COMMITTER_DATE='1700000000 +0000'
git config --global init.defaultBranch main
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=gc.auto GIT_CONFIG_VALUE_0=0
mkdir works

# has PROGRAM: whether it is installed. What is left out is said.
has() {
  command -v "$1" >/dev/null || { echo "LEFT OUT: $1 is not installed" && false; }
}

# What has times, inode numbers or random names in it: the contents are left out.
volatile='(^|/)(\.git/index|CMakeFiles/CMake(Output|Error)\.log|CMakeFiles/CMakeConfigureLog\.yaml|\.ninja_log|\.ninja_deps|Testing/Temporary/[^/]*|[^/]*\.db-(wal|shm)|node_modules/\.package-lock\.json)$'

# seen DIR: what is compared of a tree: names, types, modes, owners, links, sizes,
# contents.
seen() {
  manifest "$1" | VOLATILE=$volatile python3 -c '
import os, re, sys
volatile = re.compile(os.environ["VOLATILE"])
for line in sys.stdin:
    fields = line.rstrip("\n").split("\t")
    if len(fields) > 1 and volatile.search(fields[0]):
        fields[5] = "-"
    if len(fields) > 1 or not volatile.search(line.split("  ", 1)[1].rstrip("\n")):
        print(*fields, sep="\t")'
}

# same WORK COMMAND...: runs the command in a copy of before/ and, in another, by
# `txfs run`, both at the path ws, and compares.
same() {
  work=$1
  shift
  rm -rf ws plain
  cp -a before ws
  code=0
  (cd ws && "$@") >plain.out 2>plain.err </dev/null || code=$?
  mv ws plain
  cp -a before ws
  run_code=0
  (cd ws && txfs run --on-failure commit -- "$@") >run.out 2>run.err </dev/null || run_code=$?
  equal "$code" "$run_code" "exit code of $work ($(cat plain.err run.err))"
  diff -u plain.out run.out >&2 || fail "$work printed something else"
  contains "$(cat run.err)" "committed "
  ! grep 'refused' run.err || fail "something of $work was refused"
  same_tree plain ws seen
}

# The script of a work is on stdin.
script() {
  cat >"works/$1"
  chmod 755 "works/$1"
  mkdir -p before
  cp "works/$1" "before/.$1"
}

works=$(some "git npm" "files python home" "build sqlite")
is_chosen() { case " $works " in *" $1 "*) ;; *) false ;; esac }

# git: clones, commits, a rebase with a conflict, a stash, a worktree, gc.
if is_chosen git; then
rm -rf before
mkdir before
git init -q before/upstream
(
  cd before/upstream
  for i in 1 2 3 4 5; do
    seq "$i" 100 >"file$i"
    mkdir -p "dir$i/deep"
    echo "$i" >"dir$i/deep/file"
    git add .
    git commit -qm "commit $i"
  done
  ln -s file1 link
  chmod 755 file2
  git add .
  git commit -qm "a link and a mode"
)
script git <<'END'
#!/bin/sh
set -eu
git clone -q upstream clone
cd clone
git checkout -q -b topic HEAD~3
sed -i 's/^50$/fifty/' file1
git mv file2 moved
git commit -qam "on a topic"
seq 1000 >large
git add large
git commit -qm "more"
git checkout -q main
sed -i 's/^50$/FIFTY/' file1
git commit -qam "on main"
git checkout -q topic
! git rebase -q main >/dev/null 2>&1
sed -i '/^[<=>]/d; /^FIFTY$/d' file1
git add file1
GIT_EDITOR=true git rebase --continue >/dev/null 2>&1
echo dirty >>file3
git stash -q
git stash pop -q
git commit -qam "dirty"
git worktree add -q ../tree main
echo tree >../tree/new
git -C ../tree add new
git -C ../tree commit -qm "in a worktree"
git worktree remove ../tree
git checkout -q main
git merge -q --no-edit topic
git rm -rq dir1
git commit -qm "removed"
git tag -a -m "a tag" v1
git gc -q --prune=now
git fsck --no-progress
git log --all --format='%H %s' --graph
git ls-files -s
git status --short
git push -q origin HEAD:refs/heads/pushed
git -C ../upstream rev-parse pushed
exit 3
END
same git ./.git
fi

# Files of every kind, and what the shell and the usual tools do with them.
if is_chosen files; then
rm -rf before
mkdir -p before/tree/deep
seq 100000 >before/tree/numbers
echo x >before/tree/deep/x
ln before/tree/deep/x before/tree/hard
ln -s deep/x before/tree/link
printf 'name\n' >"$(printf 'before/tree/odd \377\tname')"
setfattr -n user.kind -v test before/tree/deep/x 2>/dev/null || :
script files <<'END'
#!/bin/bash
set -eu
umask 027
cp -a tree copy
rsync -aH tree/ synced/
tar -cf tree.tar --sort=name tree
mkdir unpacked
tar -xf tree.tar -C unpacked
sed -i 's/^5$/five/' tree/numbers
truncate -s 1M sparse
printf end | dd of=sparse bs=1 seek=2000000 conv=notrunc status=none
mkfifo fifo
(cat fifo >from-fifo) & echo through >fifo; wait
ln tree/deep/x another
echo more >>another
cat tree/hard
mv tree/deep tree/moved
ln -sfn moved tree/current
cat tree/current/x
chmod 2750 synced
mkdir synced/below
chmod 1755 copy/deep
rm -r unpacked/tree/deep
find . -name 'odd*' -print0 | xargs -0 wc -c | tail -n 1
: >empty
exec 3<>scratch
echo gone >&3
rm scratch
cat /dev/fd/3
echo "$PWD $(umask) $0 $# $(id -u)"
test -w . && test ! -e scratch && test copy/numbers -ot empty
sort -r tree/numbers -o tree/numbers
split -n 4 tree/numbers part.
cat part.* | sha256sum
mkdir locked
flock locked/lock sh -c 'echo locked; flock -n locked/lock echo twice' || echo busy
find tree copy | LC_ALL=C sort | sha256sum
kill -USR1 $$
END
same files bash ./.files
fi

# A build with tests, changed and built again.
if is_chosen build; then
rm -rf before
mkdir -p before/src
cat >before/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.20)
project(work CXX)
enable_testing()
add_library(part STATIC src/part.cc)
add_executable(work src/main.cc)
target_link_libraries(work part)
add_test(NAME works COMMAND work)
add_test(NAME fails COMMAND work 1)
install(TARGETS work)
END
printf 'int part() { return 0; }\n' >before/src/part.cc
printf 'int part();\nint main(int n, char**) { return part() + n - 1; }\n' >before/src/main.cc
script build <<'END'
#!/bin/sh
set -eu
cmake -S . -B build -G Ninja >cmake.log
cmake --build build --parallel 2 | grep -c Building
echo '// more' >>src/part.cc
cmake --build build | grep -c Building
cmake --build build | tail -n 1
cmake --install build --prefix "$PWD/installed" >/dev/null
code=0
ctest --test-dir build --output-on-failure >/dev/null 2>&1 || code=$?
installed/bin/work
rm cmake.log
exit $code
END
same build ./.build
fi

# Python: an environment of its own, modules compiled, a package imported.
if is_chosen python; then
rm -rf before
mkdir -p before/package
for i in 1 2 3; do
  echo "value = $i" >"before/package/module$i.py"
done
echo 'from . import module1, module2, module3' >before/package/__init__.py
script python <<'END'
#!/bin/sh
set -eu
python3 -m venv --without-pip venv
venv/bin/python -c 'import sys; print(sys.prefix, sys.prefix != sys.base_prefix)'
python3 -m compileall -q --invalidation-mode checked-hash package
venv/bin/python -c 'import package; print(package.module3.value, package.module3.__cached__)'
venv/bin/python -m unittest package.module9 2>/dev/null || echo "no such test"
exec venv/bin/python -c 'import os; os.kill(os.getpid(), 15)'
END
same python ./.python
fi

# SQLite: a write-ahead log in shared memory, several processes, one that dies.
if is_chosen sqlite; then
rm -rf before
mkdir before
sqlite3 before/old.db 'CREATE TABLE t(a); INSERT INTO t VALUES (1);'
script sqlite <<'END'
#!/usr/bin/env python3
import os, sqlite3, subprocess, sys

def connect(name="new.db"):
    database = sqlite3.connect(name, isolation_level=None, timeout=30)
    database.execute("PRAGMA journal_mode=WAL")
    return database

if len(sys.argv) > 1:
    database = connect()
    for i in range(50):
        database.execute("BEGIN IMMEDIATE")
        database.execute("UPDATE t SET n = n + 1")
        database.execute("COMMIT")
    sys.exit()

database = connect()
print(database.execute("PRAGMA journal_mode").fetchone())
database.execute("CREATE TABLE t(n)")
database.execute("INSERT INTO t VALUES (0)")
reader = connect()
reader.execute("BEGIN")
print("before", reader.execute("SELECT n FROM t").fetchone())
writers = [subprocess.Popen([sys.executable, sys.argv[0], "write"]) for _ in range(3)]
print([writer.wait() for writer in writers])
print("snapshot", reader.execute("SELECT n FROM t").fetchone())
reader.execute("COMMIT")
print("after", reader.execute("SELECT n FROM t").fetchone())
print(database.execute("PRAGMA integrity_check").fetchone())
old = connect("old.db")
old.executemany("INSERT INTO t VALUES (?)", [(i,) for i in range(1000)])
old.execute("VACUUM")
old.execute("PRAGMA journal_mode=DELETE")
old.close()
sys.stdout.flush()
os._exit(6)  # the log stays
END
same sqlite python3 ./.sqlite
for tree in plain ws; do
  (cd "$tree" && sqlite3 new.db .dump && sqlite3 old.db .dump) >"$tree.dump"
  grep -q '150' "$tree.dump" || fail "the log of $tree/new.db is lost"
done
diff -u plain.dump ws.dump >&2 || fail "the databases differ"
fi

# npm: a package that is linked, one that is copied, and scripts.
if is_chosen npm && has npm; then
  rm -rf before
  mkdir -p before/dependency/bin before/app
  printf '{"name": "dependency", "version": "1.0.0", "bin": {"tool": "bin/tool.js"}}\n' >before/dependency/package.json
  printf '#!/usr/bin/env node\nconsole.log("the tool runs in " + process.cwd());\n' >before/dependency/bin/tool.js
  chmod 755 before/dependency/bin/tool.js
  cat >before/app/package.json <<'END'
{"name": "app", "version": "1.0.0",
 "scripts": {"build": "tool && node -e \"require('fs').writeFileSync('made', 'by a script')\"",
             "postinstall": "echo installed >installed", "broken": "exit 9"},
 "dependencies": {"dependency": "file:../dependency"}}
END
  script npm <<'END'
#!/bin/sh
set -eu
export npm_config_offline=true npm_config_audit=false npm_config_fund=false npm_config_update_notifier=false
(cd dependency && npm pack --silent)
cd app
npm install --silent
npm run --silent build
npm install --silent ../dependency/dependency-1.0.0.tgz
npm run --silent build
npm ci --silent
npm run --silent broken
END
  same npm ./.npm
fi

# What programs keep in the home.
if is_chosen home; then
  rm -rf before
  mkdir before
  cat >before/make_wheel.py <<'END'
import zipfile
with zipfile.ZipFile("one-1.0-py3-none-any.whl", "w") as wheel:
    for name, text in {
        "one.py": "value = 1\n",
        "one-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: one\nVersion: 1.0\n",
        "one-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "one-1.0.dist-info/RECORD": "one.py,,\none-1.0.dist-info/METADATA,,\none-1.0.dist-info/WHEEL,,\none-1.0.dist-info/RECORD,,\n",
    }.items():
        wheel.writestr(zipfile.ZipInfo(name), text)
END
  mkdir -p before/crate/src
  printf '[package]\nname = "crate"\nversion = "0.1.0"\nedition = "2021"\n' >before/crate/Cargo.toml
  printf 'fn main() { println!("built"); }\n#[test] fn works() {}\n' >before/crate/src/main.rs
  has_pip='' has_cargo=''
  if "$PYTHON" -m pip --version >/dev/null 2>&1; then has_pip=1; else echo "LEFT OUT: pip is not installed"; fi
  # One of a version manager needs what that keeps in the real home.
  if cargo --version >/dev/null 2>&1; then has_cargo=1; else echo "LEFT OUT: cargo is not installed"; fi
  export HAS_PIP="$has_pip" HAS_CARGO="$has_cargo"
  script home <<'END'
#!/bin/sh
set -eu
rm -rf "$HOME/.local/lib" "$HOME/.cargo" "$HOME/.cache" "$HOME/.config/tool"
git config --global alias.st 'status --short'
git config --global alias.st
mkdir -p "$HOME/.config/tool"
echo setting >"$HOME/.config/tool/settings"
if [ -n "$HAS_PIP" ]; then
  python3 make_wheel.py
  python3 -m pip install -q --user --no-index --break-system-packages --root-user-action=ignore ./one-1.0-py3-none-any.whl
  (cd / && python3 -c 'import one, os; print(one.value, one.__file__.startswith(os.environ["HOME"]))')
  rm one-1.0-py3-none-any.whl
fi
if [ -n "$HAS_CARGO" ]; then
  (cd crate && cargo test -q --offline && cargo run -q --offline)
  rm -rf crate/target
  ls "$HOME/.cargo"
fi
cat "$HOME/.config/tool/settings" >settings
END
  same home sh ./.home
  contains "$(cat run.err)" "changed under ~, not kept"
fi

# A terminal: an editor, its size, and job control.
cat >works/terminal.py <<'END'
"""terminal.py COMMAND...: in a terminal of 90x33. Reads pairs from stdin: a text to wait for, what to type then, or the new size."""
import ast, fcntl, os, pty, signal, struct, sys, termios
pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 90, 0, 0))
    os.environ["TERM"] = "xterm"
    os.execvp(sys.argv[1], sys.argv[1:])
steps = [ast.literal_eval(line) for line in sys.stdin]
data, at = b"", 0
def give_up(*_):
    os.kill(pid, signal.SIGKILL)
    print(data, "nothing came after that; next were", steps)
    sys.stdout.flush()
    os._exit(99)
signal.signal(signal.SIGALRM, give_up)
signal.alarm(60)
while True:
    while steps and (found := data.find(steps[0][0], at)) >= 0:
        at = found + len(steps[0][0])
        answer = steps.pop(0)[1]
        if isinstance(answer, bytes):
            os.write(fd, answer)
        else:
            fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", *answer, 0, 0))
    try:
        piece = os.read(fd, 4096)
    except OSError:
        break
    if not piece:
        break
    data += piece
sys.stdout.buffer.write(data)
if steps:
    give_up()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) % 256)
END

# in_terminal WORK COMMAND...: in both ways, with the steps of works/WORK; only the
# tree and the exit code are compared.
in_terminal() {
  work=$1
  shift
  rm -rf ws plain
  cp -a before ws
  for way in "" "txfs run --on-failure commit --"; do
    code=0
    # The shell around the run is the same in both ways.
    before=$way
    [ "$work" != stopped ] || before=
    # shellcheck disable=SC2086 # words
    (cd ws && WAY=$way python3 ../works/terminal.py $before "$@" <"../works/$work") >terminal.out 2>&1 ||
      code=$?
    [ "$code" -ne 99 ] || fail "$work: ${way:-plain}: $(cat terminal.out)"
    [ -n "$way" ] || { mv ws plain && cp -a before ws && plain_code=$code; }
  done
  equal "$plain_code" "$code" "exit code of $work ($(cat -v terminal.out))"
  same_tree plain ws seen
}
rm -rf before
mkdir before
seq 20 >before/text
cat >works/shell <<'END'
(b"ready", b"typed\r")
(b"got typed", b"\x04")
END
in_terminal shell sh -c 'stty size >size; tty >/dev/null && echo ready; read -r x; echo "got $x"; cat; echo $x >file; exit 5'
equal "33 90" "$(cat ws/size)" "size of the terminal"
if has vim; then
  cat >works/vim <<'END'
(b'"text" 20L', b"5Ginew \x1b:%s/^1/one/\r")
(b"one9", b":w other\r")
(b'"other"', b":!echo shell >by-shell; stty size >size\r")
(b"Press ENTER", b"\r:wq\r")
END
  in_terminal vim vim -u NONE -N text
  equal "33 90" "$(cat ws/size)" "size of the terminal"
  grep -q '^new 5' ws/text || fail "vim did not write"
fi
# Programs that draw the whole screen all the time.
echo '(b"load average", b"q")' >works/top
in_terminal top top
if has htop; then
  echo '(b"Load average", b"q")' >works/htop
  in_terminal htop htop
fi
# The size changes.
cat >before/resized.py <<'END'
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGWINCH])
print("ready", flush=True)
signal.sigwait([signal.SIGWINCH])
open("size", "w").write(str(os.get_terminal_size(0)))
END
echo '(b"ready", (20, 70))' >works/resized
in_terminal resized python3 resized.py
equal "os.terminal_size(columns=70, lines=20)" "$(cat ws/size)" "size of the terminal"
# An interrupt ends the command, or does not.
cat >works/interrupted <<'END'
(b"ready", b"\x03")
END
in_terminal interrupted sh -c 'trap "echo caught >file; exit 9" INT; echo ready; while :; do sleep 1; done'
equal caught "$(cat ws/file)" "what the handler wrote"
# Job control: of the shell around the run, and of one in it.
cat >before/stopped.py <<'END'
import signal, sys
# It may be stopped right before the next system call.
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCONT})
print("ready", flush=True)
signal.sigwait({signal.SIGCONT})
print("continued", flush=True)
open("file", "w").write(input() + "\n")
sys.exit(6)
END
cat >works/stopped <<'END'
(b"bash-", b"$WAY python3 stopped.py\r")
(b"ready", b"\x1a")
(b"Stopped", b"")
(b"bash-", b"jobs | grep -c Stopped >stopped; fg\r")
(b"continued", b"word\r")
(b"bash-", b"exit $?\r")
END
in_terminal stopped bash --norc -i
equal "1 word" "$(cat ws/stopped ws/file | xargs)" "after a stop"
cat >works/jobs <<'END'
(b"bash-", b"python3 stopped.py; echo left $? >left\r")
(b"ready", b"\x1a")
(b"Stopped", b"")
(b"bash-", b"jobs >jobs; fg\r")
(b"continued", b"word\r")
(b"bash-", b"exit 7\r")
END
in_terminal jobs bash --norc -i
equal "word left 148" "$(cat ws/file ws/left | xargs)" "after a job that was stopped"
# A terminal that is closed.
rm -rf ws
cp -a before ws
python3 - <<'END' || fail "a run whose terminal was closed: $?"
import os, pty, signal, sys
pid, fd = pty.fork()
if pid == 0:
    os.execvp("txfs", ["txfs", "-C", "ws", "run", "--", "sh", "-c", "echo torn >file; echo ready; exec sleep 1000"])
signal.alarm(60)
data = b""
while b"ready" not in data:
    data += os.read(fd, 4096)
os.close(fd)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 128 + signal.SIGHUP)
END
same_tree before ws
cd ws
txfs fsck >/dev/null || fail "the store is not sound"
has_left=$(txfs list | grep ' active ' || :)
equal "" "$has_left" "open transactions"
