#!/bin/bash
# Tools do in the mount what they do in a plain directory.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
mkdir ws mnt plain
mkdir ws/project plain/project
for i in 1 2 3; do
  printf 'int f%d(void) { return %d; }\n' "$i" "$i" >"ws/project/f$i.c"
done
cat >ws/project/main.c <<'END'
#include <stdio.h>
int f1(void), f2(void), f3(void);
int main(void) { printf("%d\n", f1() + f2() + f3()); return 0; }
END
printf 'objects = main.o f1.o f2.o f3.o\nprogram: $(objects)\n\t$(CC) -o $@ $^\n' \
  >ws/project/Makefile
cp -a ws/project plain/
txfs mount ws mnt

# in_both NAME SCRIPT: runs it in a directory NAME of each, which must then be
# the same, and have said the same.
in_both() {
  local name=$1 script=$2 where
  for where in plain mnt; do
    mkdir -p "$where/$name"
    (cd "$where/$name" && bash -euo pipefail -c "$script") >"$where.out" 2>&1 ||
      fail "$name in $where: $(cat "$where.out")"
  done
  diff -u plain.out mnt.out >&2 || fail "$name said something else in the mount"
  same_tree "plain/$name" "mnt/$name" "${3:-manifest}"
  echo "ok: $name"
}
has() { command -v "$1" >/dev/null || { echo "SKIPPED: $1 is not installed"; false; }; }

# What git makes is the same but for the order in packs and the index's times.
git_manifest() {
  (
    cd "$1"
    git fsck --strict 2>&1
    git log --all --format='%H %an %at %s'
    git status --porcelain
    git ls-files -s
    find . -path ./.git -prune -o -type f -print0 | LC_ALL=C sort -z | xargs -0r sha256sum
  )
}
export GIT_AUTHOR_DATE='2020-01-01T00:00:00Z' GIT_COMMITTER_DATE='2020-01-01T00:00:00Z'
if has git; then
  in_both git '
    git init -q -b main .
    seq 100 >a; seq 200 >b; mkdir d; seq 300 >d/c
    git add .; git commit -qm one
    git checkout -qb topic
    sed -i s/^50$/fifty/ a; git mv d e; git commit -qam two
    git checkout -q main
    sed -i s/^150$/more/ b; git commit -qam three
    git rebase -q main topic
    git checkout -q main; git merge -q topic
    git gc -q --prune=now
    git stash list
    echo dirty >>a; git stash -q; git stash pop -q; git checkout -q -- a
    git clone -q . ../git-clone-"$(basename "$(dirname "$PWD")")"
    git worktree list | wc -l
    git status --porcelain' git_manifest
fi
if has make && has gcc; then
  in_both project '
    make -s; ./program
    make -s -q
    touch -d "+2 seconds" f1.c
    if make -s -q; then echo "the change was not seen"; exit 1; fi
    make -s -j4; ./program'
fi
if has tar; then
  in_both tar '
    mkdir in; seq 1000 >in/a; ln in/a in/hard; ln -s a in/soft; mkfifo in/p
    touch -d "2001-02-03 04:05:06.123456789" in/a
    tar -cf t.tar --sort=name --mtime=@0 --owner="$(id -u)" --group="$(id -g)" in
    mkdir out; tar -xf t.tar -C out; tar -df t.tar -C out
    stat -c "%n %Y %h" out/in/*
    rm -r in; ls -R'
fi
if has rsync; then
  in_both rsync '
    mkdir src; seq 5000 >src/a; seq 10 >src/b; mkdir src/d; seq 20 >src/d/c
    rsync -a src/ dst/; seq 5001 >src/a; rm src/b
    rsync -a --delete src/ dst/; rsync -ain --delete src/ dst/
    rsync -a --inplace --no-whole-file src/a dst/a; ls -R'
fi
# Databases differ in counters of their headers: compare what they say.
no_manifest() { :; }
if has sqlite3; then
  in_both sqlite '
    sqlite3 t.db "create table t(a); begin; insert into t values(1),(2); commit;"
    sqlite3 t.db "begin; insert into t values(3); rollback; select sum(a) from t;"
    sqlite3 t.db "pragma journal_mode=wal; insert into t values(4);
      select count(*) from t; pragma wal_checkpoint; pragma integrity_check;"
    for i in $(seq 20); do sqlite3 t.db "insert into t values($i)"; done
    sqlite3 t.db "vacuum; select sum(a) from t; pragma integrity_check;"' no_manifest
fi
if has npm; then
  in_both npm '
    mkdir lib app
    printf "{\"name\":\"lib\",\"version\":\"1.0.0\",\"main\":\"i.js\",\"bin\":{\"lib\":\"b.js\"}}" >lib/package.json
    echo "module.exports = 42" >lib/i.js
    printf "#!/usr/bin/env node\nconsole.log(42)\n" >lib/b.js
    (cd lib && npm pack --silent >/dev/null)
    cd app
    printf "{\"name\":\"app\",\"version\":\"1.0.0\"}" >package.json
    npm install --offline --no-audit --no-fund --silent ../lib/lib-1.0.0.tgz
    node -e "console.log(require(\"lib\"))"
    node_modules/.bin/lib' no_manifest
fi
if has vim; then
  in_both vim '
    seq 10 >f; chmod 640 f; ln f hard
    vim -Nu NONE -n -es -c "%s/5/five/" -c wq f </dev/null
    vim -Nu NONE -n -es -c "set backup writebackup backupdir=." -c "\$s/10/ten/" -c wq f </dev/null
    cat f; ls'
fi
if has ed; then
  in_both ed 'seq 10 >f; printf "5s/5/five/\nw\nq\n" | ed -s f; cat f'
fi
in_both sed 'seq 10 >f; chmod 600 f; sed -i.bak s/3/three/ f; cat f f.bak; stat -c %a f'
if has python3; then
  in_both python '
    python3 - <<"END"
import mmap, os, shutil, tempfile
with open("f", "wb") as f: f.write(b"x" * 10000)
with open("f", "r+b") as f:
    with mmap.mmap(f.fileno(), 0) as m: m[5000:5005] = b"mmap!"
os.makedirs("a/b/c"); shutil.copytree("a", "z"); shutil.move("z/b", "moved")
with tempfile.NamedTemporaryFile(dir=".", delete=False) as t: t.write(b"temp")
os.replace(t.name, "replaced"); os.chmod("replaced", 0o644)
os.truncate("f", 7000); os.link("f", "hard"); os.symlink("f", "soft")
fd = os.open("f", os.O_RDWR); os.unlink("f"); os.write(fd, b"gone"); os.close(fd)
print(sorted(os.listdir(".")), open("hard", "rb").read(4), os.stat("hard").st_nlink)
END
    python3 -c "import os; print(os.path.exists(\"soft\"))"'
fi
in_both shell '
  for i in $(seq 300); do echo $i >f$i; done
  cat f* | sort -n | tail -1; rm f1* ; ls | wc -l
  dd if=/dev/zero of=big bs=64k count=40 status=none; truncate -s 1M big; stat -c %s big
  cp --sparse=always big sparse; cmp big sparse; install -m 755 f2 g; mkdir -p x/y/z; cp -a x w; mv x/y v
  find . -type d | sort; flock big echo locked'
txfs umount mnt
