#!/bin/bash
# A careless agent: whatever it tries to destroy is refused by the rule that is
# about it, with its errno and a record, or held at the commit, or is undone by a
# discard.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs python3 git perl

export GIT_CONFIG_GLOBAL=/dev/null
cat >policy.toml <<'END'
schema = 1

[[fs]]
id = "data"
path = "/data/"
nocase = true
errno = "EROFS"
reason = "what was measured cannot be measured again"
suggest = "write what you make of it to results"

[[fs]]
id = "ledger"
path = "*.ledger"
ops = ["content", "remove"]
layer = "base"
reason = "there is no other copy"
suggest = "add a file beside it"
END

mkdir -p ws/data/raw ws/src/deep ws/docs ws/deploy ws/.vscode ws/.claude mnt empty
git init -q --template= ws
(
  cd ws
  seq 5000 >data/db
  seq 10 >data/tied
  seq 100 >data/raw/a.csv
  echo one >sums.ledger
  echo 'int main(void) { return 0; }' >src/main.c
  echo '// deep' >src/deep/deep.c
  echo 'read me' >docs/README
  echo '/.env' >.gitignore
  echo '/data' >>.gitignore
  git add .
  git commit -qm one
  echo two >>sums.ledger
  echo '// two' >>src/main.c
  git commit -qam two
  ln data/tied src/tied
  mkdir .git/hooks
  printf '#!/bin/sh\nexit 0\n' >.git/hooks/pre-commit
  chmod 755 .git/hooks/pre-commit
  echo SECRET=1 >.env
  echo machine example.org password 1 >.netrc
  echo key >deploy/tls.key
  echo '{}' >.vscode/settings.json
  echo '{}' >.claude/settings.json
  find . -exec touch -hd '2020-02-02 02:02:02.123456789' {} +
)
attributes=
if command -v setfattr >/dev/null && setfattr -n user.kept -v 1 ws/data/db 2>/dev/null; then
  attributes=1
fi

# What takes more than a line.
cat >agent.py <<'END'
import ctypes, mmap, os, sys

def mapping(path):
    with open(path, "r+b") as f, mmap.mmap(f.fileno(), 0) as m:
        m[:4] = b"evil"
        m.flush()

def exchange(one, other):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(-100, one.encode(), -100, other.encode(), 2) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

def copy_range(source, target):
    with open(source, "rb") as one, open(target, "r+b") as other:
        os.copy_file_range(one.fileno(), other.fileno(), 4)

globals()[sys.argv[1]](*sys.argv[2:])
END

# state DIR [PATH...]: all there is to see of a tree, or of these parts of it.
state() {
  (
    cd "$1"
    shift
    [ $# -gt 0 ] || set -- .
    find "$@" -path . -o \
      -printf '%p\t%y\t%m\t%U:%G\t%T@\t%l\n' | LC_ALL=C sort
    find "$@" -type f -print0 | LC_ALL=C sort -z >"$TMPDIR/files"
    xargs -0r stat -c '%n %s %h' <"$TMPDIR/files"
    xargs -0r sha256sum <"$TMPDIR/files"
    [ -z "$attributes" ] || xargs -0r getfattr -d <"$TMPDIR/files"
  )
}

protected="data sums.ledger .git/HEAD .git/objects"
# What is changed in the mount, and held at the commit.
reviewed=".git/hooks .git/config .env .netrc deploy/tls.key .vscode/settings.json .claude/settings.json"

# same FILE DIR WHAT [PATH...]: the tree is as it was when FILE was made.
same() {
  was=$1 tree=$2 what=$3
  shift 3
  state "$tree" "$@" >now
  diff -u "$was" now >&2 || fail "changed: $what"
}

# denials RULE OP PATH ERRNO: how many such operations the log has. RULE and
# PATH are patterns: what is below .git is judged in no order, and a file of
# two names is refused by either.
denials() {
  txfs -C mnt log --denied --json | python3 -c '
import fnmatch, json, sys
rule, op, path, error = sys.argv[1:]
print(sum(d["count"] for d in map(json.loads, sys.stdin)
          if fnmatch.fnmatch(d["rule"], rule) and (d["op"], d["result"]) == (op, error)
          and fnmatch.filter([d["path"], d["new_path"] or ""], path) and d["reason"] and d["suggest"]))' "$@"
}

# attempt COMMAND: what the agent does. It never gives up because one fails.
attempt() {
  attempts=$((attempts + 1))
  (cd mnt && timeout 60 bash -c "$1") >"$TMPDIR/out" 2>"$TMPDIR/err"
}

# misses PROGRAM: said once, for the line that needs it.
misses() {
  command -v "$1" >/dev/null && return 1
  [ "$mode" != each ] || echo "LEFT OUT: $1 is not installed"
}

# refused RULE OP PATH COMMAND: the command fails with the rule's errno, and has
# a record.
refused() {
  error=EPERM text="Operation not permitted"
  [ "$1" != data ] || error=EROFS text="Read-only file system"
  before=$(denials "$1" "$2" "$3" "$error")
  attempt "$4" && fail "not refused: $4"
  contains "$(cat "$TMPDIR/err")" "$text"
  [ "$(denials "$1" "$2" "$3" "$error")" -gt "$before" ] ||
    fail "$4: no record of $1, $2, $3, $error in: $(txfs -C mnt log --denied)"
  same kept mnt "$4" $protected
}

# stopped RULE OP PATH COMMAND: the same, and it has changed nothing at all.
stopped() {
  [ "$mode" = each ] || { attempt "$4" || :; return 0; }
  refused "$@"
  same all mnt "$4"
}

# partly RULE OP PATH COMMAND: what it did besides is undone.
partly() {
  [ "$mode" = each ] || { attempt "$4" || :; return 0; }
  refused "$@"
  discarded "$4"
}

# held RULE PATH COMMAND: it works, and a commit stops for it.
held() {
  [ "$mode" = each ] || { attempt "$3" || :; return 0; }
  attempt "$3" || fail "refused: $3: $(cat "$TMPDIR/err")"
  txfs -C mnt commit --dry-run --json 2>"$TMPDIR/err" >"$TMPDIR/plan" && fail "not held: $3"
  python3 -c 'import json, sys
held = [(x["rule"], x["path"]) for x in json.load(open(sys.argv[1]))["held"]]
sys.exit(held != [tuple(sys.argv[2:])] and str(held))' "$TMPDIR/plan" "$1" "$2" || fail "$3: $1 does not hold $2"
  discarded "$3"
}

discarded() {
  [ -n "$(txfs -C mnt diff --name-status)" ] || fail "nothing was changed: $1"
  txfs -C mnt discard >/dev/null
  same all mnt "discarded: $1"
}

# undone COMMAND: changes something, though nothing that is protected, and
# a discard takes it back.
undone() {
  attempt "$1" || :
  [ "$mode" = each ] || return 0
  same kept mnt "$1" $protected
  discarded "$1"
}

table() {
  # Shell.
  stopped data unlink data/db "rm -rf data"
  stopped data truncate data/db ": >data/db"
  stopped data write "*/tied" "echo evil >>src/tied"
  stopped data unlink src/tied "rm -f src/tied"
  stopped data create data/new "echo evil >data/new"
  stopped data mkdir DATA "mkdir DATA"
  stopped data mknod data/fifo "mkfifo data/fifo"
  stopped data rename data/db "mv src/main.c data/db"
  stopped data rename data "mv data old"
  stopped data unlink data/db "cp --remove-destination src/main.c data/db"
  stopped data link data/db "ln data/db mine"
  stopped data write data/db "cat data/raw/a.csv | tee -a data/db"
  stopped ledger truncate sums.ledger "cp src/main.c sums.ledger"
  stopped ledger unlink sums.ledger "rm -f sums.ledger"
  held txfs-env-files .env "ln -sf /dev/null .env"
  held txfs-env-files .env "sed -i s/SECRET/PUBLIC/ .env"
  held txfs-keys deploy/tls.key "truncate -s 0 deploy/tls.key"
  stopped txfs-keys-kept rename deploy "mv deploy build"
  held txfs-git-hooks .git/hooks/pre-commit "echo exit 1 >>.git/hooks/pre-commit"
  held txfs-git-hooks .git/hooks/pre-commit "chmod 777 .git/hooks/pre-commit"
  stopped 'txfs-git*-kept' rename .git "mv .git git"
  held txfs-git-config .git/config "echo '[core] pager = x' >>.git/config"
  held txfs-editor-tasks .vscode/settings.json "echo evil >.vscode/settings.json"
  held txfs-agent-settings .claude/settings.json "rm -r .claude"
  stopped data chmod data/raw "chmod -R 777 data/raw"
  stopped data utimens data/db "touch -d 1970-01-02 data/db"
  [ "$(id -u)" -ne 0 ] ||
    stopped data chown data/db "chown 12:34 data/db"
  if [ -n "$attributes" ]; then
    stopped data setxattr data/db "setfattr -n user.evil -v 1 data/db"
    stopped data removexattr data/db "setfattr -x user.kept data/db"
  fi

  # Python and perl.
  stopped data unlink data/db "python3 -c 'import os; os.remove(\"data/db\")'"
  stopped data unlink data/raw/a.csv "python3 -c 'import shutil; shutil.rmtree(\"data/raw\")'"
  held txfs-env-files .env "python3 -c 'open(\".env\", \"w\")'"
  held txfs-credentials .netrc "python3 -c 'import os; os.truncate(\".netrc\", 0)'"
  stopped data write data/db "python3 ../agent.py mapping data/db"
  stopped data exchange data/db "python3 ../agent.py exchange src/main.c data/db"
  stopped data exchange data "python3 ../agent.py exchange data src"
  stopped data write data/db "python3 ../agent.py copy_range src/main.c data/db"
  stopped data unlink data/db "perl -e 'unlink(\"data/db\") or die \"\$!\\n\"'"
  stopped ledger rename sums.ledger "perl -e 'rename(\"sums.ledger\", \"x\") or die \"\$!\\n\"'"

  # find, git, rsync, dd and the like.
  stopped data unlink data/raw/a.csv "find data -name '*.csv' -delete"
  stopped ledger unlink sums.ledger "find . -name '*.ledger' -exec rm -f {} +"
  stopped txfs-untracked-kept unlink .env "git clean -fdxq .env"
  partly ledger unlink sums.ledger "git checkout -q HEAD~1 -- sums.ledger"
  misses rsync || stopped data unlink data/db "rsync -a --delete ../empty/ data/"
  stopped data write data/db "dd if=/dev/zero of=data/db bs=1 count=4 conv=notrunc"
  held txfs-env-files .env "dd if=/dev/zero of=.env bs=1 count=4"
  stopped data allocate data/db "fallocate -p -o 0 -l 4096 data/db"
  stopped ledger write sums.ledger "shred -u sums.ledger"
  stopped data truncate data/db "tar -c -C data db | tar -x --overwrite -C data"

  # What is not protected.
  undone "rm -rf src"
  undone ": >src/main.c"
  undone "mv src/main.c docs/README"
  undone "sed -i s/main/niam/ src/main.c"
  undone "chmod -R 700 src/deep"
  undone "python3 -c 'import shutil; shutil.rmtree(\"docs\")'"
  undone "python3 ../agent.py mapping src/main.c"
  undone "python3 ../agent.py exchange src docs"
  undone "perl -e 'unlink glob \"docs/*\"'"
  undone "find . -name '*.c' -delete"
  misses rsync || undone "rsync -a --delete ../empty/ docs/"
  undone "dd if=/dev/zero of=src/main.c bs=1 count=4 conv=notrunc"
  undone "git rm -rqf src docs"
  stopped 'txfs-git*-kept' unlink '.git/*' "rm -rf .git/objects .git/refs"
  partly data unlink data/db "rm -rf -- * .[!.]*"
}

state ws $protected >kept
state ws $reviewed >looked_at
state ws >all
txfs mount ws mnt --policy policy.toml
same all mnt "mounted"

# Each attempt by itself.
mode=each attempts=0
table
same all ws "the base"

# All of them, one after the other, and thrown away.
mode=together attempts=0
table
same kept mnt "after all" $protected
same all ws "the base after all"
[ ! -e mnt/docs ] || fail "the agent was not careless"
txfs -C mnt discard
same all mnt "after a discard"
same all ws "the base after a discard"

# Once more, and committed. Then that is taken back.
attempts=0
table
same kept mnt "after all again" $protected
txfs -C mnt commit -m careless >said 2>&1 && fail "what is held was committed"
txfs -C mnt commit --without-held -m careless 2>said
contains "$(cat said)" "refused"
contains "$(cat said)" "held for review and in the transaction"
same kept ws "the base after a commit" $protected
same looked_at ws "what was held, after a commit" $reviewed
same kept mnt "after a commit" $protected
[ ! -e ws/docs ] || fail "the commit was none"
txfs -C mnt fsck
txfs umount mnt
txfs -C ws undo
same all ws "the base after an undo"
echo "$attempts attempts"
