#!/bin/sh
# No command runs what the repository of a workspace names in its configuration or
# attributes. Each attack leaves a marker if it is run, as it is by git itself.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs git python3

export GIT_CONFIG_GLOBAL=/dev/null GIT_TERMINAL_PROMPT=0 GIT_SSH_VARIANT=ssh
MARKERS=$TMPDIR/markers
mkdir "$MARKERS"

# A program that an attack names, with its own name: it leaves a marker, and hands
# on what it reads.
evil=$TMPDIR/evil
cat >"$evil" <<CODE
#!/bin/sh
: >"$MARKERS/\$1"
exec cat
CODE
chmod 755 "$evil"

# on_terminal COMMAND...: runs it on one.
on_terminal() {
  python3 -c '
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
while True:
    try:
        data = os.read(terminal, 65536)
    except OSError:
        break
    if not data: break
    sys.stdout.buffer.write(data)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))' "$@"
}

# hook_of ATTACK FILE
hook_of() {
  printf '#!/bin/sh\n%s %s </dev/null\n' "$evil" "$1" >"$2"
  chmod 755 "$2"
}

# For each attack NAME: attack_NAME prepares the repository in the working
# directory; git_NAME lets git run into it there.
attack_clean() {
  git config filter.evil.clean "$evil clean"
  echo '*.txt filter=evil' >>.gitattributes
}
git_clean() {
  echo more >>tracked.txt
  git add tracked.txt
}

attack_smudge() {
  git config filter.evil.smudge "$evil smudge"
  echo '*.txt filter=evil' >>.gitattributes
}
git_smudge() {
  rm tracked.txt
  git checkout tracked.txt
}

attack_process() {
  git config filter.evil.process "$evil process"
  git config filter.evil.required true
  echo '*.txt filter=evil' >>.gitattributes
}
git_process() {
  echo more >>tracked.txt
  git add tracked.txt || true # it does not speak the protocol
}

attack_textconv() {
  git config diff.evil.textconv "$evil textconv"
  echo '*.txt diff=evil' >.git/info/attributes
}
git_textconv() {
  echo more >>tracked.txt
  git diff
}

attack_diff_driver() {
  git config diff.evil.command "$evil diff_driver"
  echo '*.txt diff=evil' >>.gitattributes
}
git_diff_driver() { git_textconv; }

attack_external_diff() { git config diff.external "$evil external_diff"; }
git_external_diff() { git_textconv; }

attack_merge_driver() {
  git config merge.evil.driver "$evil merge_driver"
  echo '*.txt merge=evil' >>.gitattributes
}
git_merge_driver() {
  git checkout -q -b other
  echo theirs >tracked.txt
  git commit -qam theirs
  git checkout -q -
  echo ours >tracked.txt
  git commit -qam ours
  git merge other || true
}

attack_fsmonitor() { git config core.fsmonitor "$evil fsmonitor"; }
git_fsmonitor() { git status; }

attack_hooks() {
  for hook in pre-commit post-commit post-checkout post-index-change \
    pre-auto-gc reference-transaction fsmonitor-watchman prepare-commit-msg; do
    hook_of hooks .git/hooks/$hook
  done
}
git_hooks() { git commit -q --allow-empty -m x; }

attack_hooks_path() {
  mkdir hooks
  hook_of hooks_path hooks/pre-commit
  hook_of hooks_path hooks/reference-transaction
  git config core.hooksPath hooks
}
git_hooks_path() { git_hooks; }

attack_ssh_command() {
  git config core.sshCommand "$evil ssh_command </dev/null; true"
  git config remote.origin.url ssh://localhost/x
  git config remote.origin.promisor true
  git config extensions.partialClone origin
}
git_ssh_command() { git ls-remote origin || true; }

attack_include() {
  printf '[core]\n\tfsmonitor = %s include\n' "$evil" >settings_include
  git config include.path ../settings_include
}
git_include() { git status; }

attack_include_if() {
  printf '[core]\n\tfsmonitor = %s include_if\n' "$evil" >settings_include_if
  git config 'includeIf.gitdir:**.path' ../settings_include_if
}
git_include_if() { git status; }

attack_pager() {
  git config core.pager "$evil pager"
  git config pager.diff "$evil pager"
  git config pager.log "$evil pager"
}
git_pager() { on_terminal git log; }

attack_editor() {
  git config core.editor "$evil editor"
  git config sequence.editor "$evil editor"
}
git_editor() { git commit --allow-empty || true; }

attack_credentials() { git config credential.helper "!$evil credentials"; }
git_credentials() {
  printf 'protocol=https\nhost=example.org\n\n' | git credential fill || true
}

# Another tree, whose attributes name the program.
attack_worktree() {
  git config filter.evil.clean "$evil worktree"
  git config core.worktree "$TMPDIR/elsewhere"
}
git_worktree() { git add -A; }

# Another object database, without which git finds nothing.
attack_alternates() {
  rm -rf "$TMPDIR/objects"
  mv .git/objects "$TMPDIR/objects"
  mkdir -p .git/objects/info .git/objects/pack
  echo "$TMPDIR/objects" >.git/objects/info/alternates
}
git_alternates() {
  git cat-file -e HEAD
  mv "$TMPDIR/objects" "$TMPDIR/objects.away"
  git cat-file -e HEAD || : >"$MARKERS/alternates"
}

# The repository in a file, and its whole configuration elsewhere.
attack_git_file() {
  rm -rf "$TMPDIR/repository"
  mv .git "$TMPDIR/repository"
  echo "gitdir: $TMPDIR/repository" >.git
  git config core.fsmonitor "$evil git_file"
}
git_git_file() { git status; }

# runs WHAT COMMAND...: it succeeds, and no marker is left.
runs() {
  what=$1
  shift
  "$@" >"$TMPDIR/out" 2>"$TMPDIR/err" || fail "$what failed ($attacks): $(cat "$TMPDIR/err")"
  [ -z "$(ls "$MARKERS")" ] || fail "$what ran what the repository names: $(ls "$MARKERS")"
}
# says PART: what ran last wrote PART.
says() { contains "$(cat "$TMPDIR/out")" "$1"; }

# Every command that compares, merges, or only looks at what changed.
commands() {
  runs mount txfs mount ws mnt
  cd mnt # the repository is also that of the working directory
  runs "a mark" txfs savepoint --call one --host test
  printf 'line\nmore\n' >tracked.txt
  mv moved.txt renamed.txt
  rm removed.txt
  chmod 755 mode.txt
  printf '\0binary' >new.bin
  runs "the end of a call" txfs savepoint --call one --host test --end
  runs "a savepoint" txfs savepoint before
  runs "a second mark" txfs savepoint --call two --host test
  echo call >of_call.txt
  mkdir -p .vscode
  echo '{"run": "evil"}' >.vscode/tasks.json
  ! rm -f .env 2>/dev/null || fail "$attacks: .env was removed"

  runs status txfs status
  says "changes      8"
  runs "status --json" txfs status --json
  runs diff txfs diff
  says "+more"
  says "rename to renamed.txt"
  says "GIT binary patch"
  runs "diff on a terminal" on_terminal env PAGER=cat txfs diff
  says more
  runs "diff --stat" txfs diff --stat
  says "tracked.txt"
  says "7 files changed"
  runs "diff --name-status" txfs diff --name-status
  says "D	removed.txt"
  runs "diff --since" txfs diff --since before --stat
  says of_call.txt
  runs "diff --call" txfs diff --call one
  says "+more"
  runs "diff --held" txfs diff --held
  says '+{"run": "evil"}'
  runs log txfs log
  says tracked.txt
  runs "log --denied" txfs log --denied
  says .env
  runs "log --calls" txfs log --calls
  says "6 changes"
  runs why txfs why .env
  says txfs-env-kept
  runs revert txfs revert --call two
  says "reverted call 2"
  [ ! -e of_call.txt ] || fail "$attacks: the call was not reverted"
  runs rollback txfs rollback before
  mkdir -p .vscode
  echo '{"run": "evil"}' >.vscode/tasks.json
  runs "policy explain" txfs policy explain -- 'git push --force; git diff'
  says txfs-cmd-git-push-force

  runs "commit --dry-run" txfs commit --dry-run --without-held
  says tracked.txt
  runs "commit of a part" txfs commit mode.txt
  [ -x ../ws/mode.txt ] || fail "$attacks: the part was not committed"
  # A merge.
  printf 'theirs\nline\n' >../ws/tracked.txt
  cd ..
  runs "commit --on-conflict=merge" txfs -C mnt commit --on-conflict=merge --accept txfs-editor-tasks
  says "committed"
  commit=$(grep -o '[0-9a-f]\{12\}' "$TMPDIR/out" | head -n 1)
  equal "theirs
line
more" "$(cat ws/tracked.txt)" "$attacks: the merged file"
  [ -e ws/renamed.txt ] && [ ! -e ws/moved.txt ] && [ ! -e ws/removed.txt ] ||
    fail "$attacks: not all was committed"
  runs list txfs -C mnt list
  runs show txfs -C mnt show "$commit"
  says tracked.txt
  runs undo txfs -C mnt undo
  [ -e ws/moved.txt ] && [ -e ws/removed.txt ] || fail "$attacks: the commit was not undone"
  echo last >>mnt/tracked.txt
  runs umount txfs umount mnt

  # Without a daemon.
  runs "status without a mount" txfs -C ws status
  runs "diff without a mount" txfs -C ws diff
  says "+last"
  runs "commit without a mount" txfs -C ws commit
  runs fsck txfs -C ws fsck
  contains "$(cat ws/tracked.txt)" last
}

# repository DIRECTORY: makes a workspace that is one.
repository() {
  mkdir "$1" "$1/src"
  (
    cd "$1"
    git init -q --template= .
    mkdir .git/hooks .git/info
    echo line >tracked.txt
    for name in moved removed mode; do seq 9 >$name.txt; done
    echo SECRET=1 >.env
    echo x >src/x.txt
    git add -A
    git commit -q -m first
  )
}

# fresh: what a group begins with.
fresh() {
  rm -rf ws copy mnt "$TMPDIR/elsewhere" "$TMPDIR/repository" "$TMPDIR"/objects*
  mkdir mnt "$TMPDIR/elsewhere"
  echo '* filter=evil' >"$TMPDIR/elsewhere/.gitattributes"
  echo elsewhere >"$TMPDIR/elsewhere/file.txt"
}

# Each attack by itself can succeed: git does what the repository names.
tried=0
for attack in $(sed -n 's/^attack_\([a-z_]*\)() {.*/\1/p' "$0"); do
  fresh
  repository copy
  (cd copy && "attack_$attack")
  rm -f "$MARKERS"/*
  (cd copy && "git_$attack") </dev/null >/dev/null 2>&1 || true
  [ -e "$MARKERS/$attack" ] || fail "$attack: git does not run it"
  rm "$MARKERS"/*
  tried=$((tried + 1))
done
equal 19 "$tried" "attacks"

# All that one repository can have at once, and each of the others.
for attacks in "clean smudge process textconv diff_driver external_diff merge_driver fsmonitor\
 hooks hooks_path ssh_command include include_if pager editor credentials" worktree alternates git_file; do
  fresh
  repository ws
  for attack in $attacks; do (cd ws && "attack_$attack"); done
  rm -f "$MARKERS"/*
  [ "$attacks" != alternates ] || mv "$TMPDIR/objects" "$TMPDIR/objects.away"
  manifest "$TMPDIR/elsewhere" >"$TMPDIR/before"
  commands
  manifest "$TMPDIR/elsewhere" | cmp - "$TMPDIR/before" || fail "$attacks: another tree was changed"
done

# A file of the workspace that is called as git's index is none: not with the
# attributes of a repository, and not if it is damaged.
fresh
repository ws
cp -r ws attributes
(cd attributes && echo '*.txt -diff' >.gitattributes && git add -A)
runs "mount over an index" txfs mount ws mnt
cd mnt
chmod 755 mode.txt
seq 8 >mode.txt
for index in ../attributes/.git/index /bin/sh; do
  cp "$index" index
  runs "diff beside the index $index" txfs diff mode.txt
  says "new mode 100755"
  says "-9"
  runs "diff --stat beside the index $index" txfs diff --stat
done
cd ..
runs "umount beside an index" txfs umount mnt
