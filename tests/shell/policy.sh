#!/bin/sh
# A policy: what it refuses, by whichever way, and what it says of it.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs python3

mkdir -p ws/.git/hooks ws/src mnt
echo '#!/bin/sh' >ws/.git/hooks/pre-commit
echo SECRET=1 >ws/.env
echo hello >ws/src/main.c
cat >policy.toml <<'END'
schema = 1

[[fs]]
id = "git-hooks"
path = "**/.git/hooks/**"
reason = "git runs what is in this directory"
suggest = "put the script into the repository and ask for it to be installed"
match = ["create .git/hooks/post-commit", "unlink sub/.git/hooks/x"]
not_match = ["write src/hooks/x"]

[[fs]]
id = "secrets"
path = ".env"
nocase = true
errno = "EROFS"
reason = "secrets are not for agents to change"
suggest = "write to .env.example"
END

equal "policy.toml: 2 rules, and their examples hold" "$(txfs policy check policy.toml)" check
chmod g+w policy.toml
refuses_with_hint 1 "is writable by other users" txfs policy check policy.toml
refuses_with_hint 1 "is writable by other users" txfs mount ws mnt --policy policy.toml
chmod g-w policy.toml
sed 's/id = "secrets"/id = "txfs-env-files"/' policy.toml >same.toml
txfs policy check same.toml 2>err
contains "$(cat err)" "note: it cannot be combined with the default policy: "
contains "$(cat err)" "txfs-env-files"
txfs policy check policy.toml 2>err
equal "" "$(cat err)" "what the check of a good file says"
sed 's/nocase = true/nocas = true/' policy.toml >wrong.toml
refuses 1 'wrong.toml:14: unknown key "nocas"' txfs policy check wrong.toml
refuses 1 'wrong.toml:14: unknown key "nocas"' txfs mount ws mnt --policy wrong.toml

cp -a ws before
txfs mount ws mnt --no-default-policy --policy policy.toml

# attempt ERRNO NAME CODE: python's CODE fails with ERRNO and changes nothing.
attempt() {
  got=$(cd mnt && python3 -c "
import os, errno
try:
    $3
    print('ok')
except OSError as e:
    print(errno.errorcode[e.errno])")
  equal "$1" "$got" "$2"
}
hook=.git/hooks/pre-commit
attempt EPERM unlink "os.unlink('$hook')"
attempt EPERM write "os.open('$hook', os.O_RDWR | os.O_TRUNC)"
attempt EPERM truncate "os.truncate('$hook', 0)"
attempt EPERM chmod "os.chmod('$hook', 0o755)"
attempt EPERM utimens "os.utime('$hook')"
attempt EPERM setxattr "os.setxattr('$hook', 'user.x', b'1')"
attempt EPERM create "open('.git/hooks/post-commit', 'w')"
attempt EPERM mkdir "os.mkdir('.git/hooks/d')"
attempt EPERM symlink "os.symlink('x', '.git/hooks/s')"
attempt EPERM link "os.link('$hook', 'src/link')"
attempt EPERM "link to" "os.link('src/main.c', '.git/hooks/l')"
attempt EPERM "rename from" "os.rename('$hook', 'src/hook')"
attempt EPERM "rename to" "os.rename('src/main.c', '$hook')"
attempt EPERM "rename of a parent" "os.rename('.git', 'git')"
attempt EPERM "rename of its directory" "os.rename('.git/hooks', 'hooks')"
attempt EROFS "another errno" "os.unlink('.env')"
attempt EROFS "another case" "open('src/.ENV', 'w')"
attempt ok "what is not meant" "os.rename('src/main.c', 'src/other.c')"
attempt ok "back" "os.rename('src/other.c', 'src/main.c')"

# What was stored through a mapping is refused when it is written back, and
# then the kernel has to forget it, which it is told by a thread of its own.
equal "EPERM True" "$(cd mnt && timeout 60 python3 -c "
import mmap, os, errno
before = open('$hook', 'rb').read()
with open('$hook', 'r+b') as f, mmap.mmap(f.fileno(), 0) as m:
    m[:4] = b'evil'
    try:
        m.flush()
        print('ok', end=' ')
    except OSError as e:
        print(errno.errorcode[e.errno], end=' ')
    while m[:] != before: pass
print(open('$hook', 'rb').read() == before)")" "a mapping"
same_tree before mnt

contains "$(txfs -C mnt log --denied)" "unlink  $hook  EPERM by git-hooks"
contains "$(txfs -C mnt log --denied)" "unlink  .env  EROFS by secrets"
equal 18 "$(txfs -C mnt log --denied --json | python3 -c '
import json, sys; print(sum(json.loads(line)["count"] for line in sys.stdin))')" "denials"
contains "$(txfs -C mnt log --denied --op write)" "write  $hook  EPERM by git-hooks"
equal '"git-hooks"' "$(txfs -C mnt log --denied --json | head -1 | python3 -c '
import json, sys; print(json.dumps(json.loads(sys.stdin.readline())["rule"]))')" json
txfs -C mnt fsck
txfs umount mnt

# A daemon that is to end while refused pages keep coming ends, too.
head -c 65536 /dev/zero >ws/.env
txfs mount ws mnt --no-default-policy --policy policy.toml
storms=
for flushes in 0 1; do
  timeout 120 python3 -c "
import mmap
with open('mnt/.env', 'r+b') as f:
    m = mmap.mmap(f.fileno(), 0)
    while True:
        for page in range(0, len(m), 4096): m[page] = 65
        try:
            if $flushes: m.flush()
        except OSError: pass" &
  storms="$storms $!"
done
until txfs -C mnt log --denied --op write | grep -q .env; do :; done
daemon=$(txfs -C mnt status --json | json 'd["pid"]')
kill -TERM "$daemon"
ended "$daemon" || fail "the daemon does not end"
# They may have died of the mapping, which is gone.
kill $storms 2>/dev/null || :
wait
[ "$(head -c 100 ws/.env | tr -d '\0')" = "" ] || fail "a refused page reached the base"
