#!/bin/bash
# examples/hello.c, built and run by the commands in its comment, makes a trace. The README's C compiles, and so does
# the first daemon of doc/library.md. Its two servers make one trace.
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/lib.sh"

private_begin
mkdir "$WORK/own" && cd "$WORK/own" && cp "$SRC/examples/hello.c" . || exit 1
sed "s|@LIBDIR@|$BUILD/lib|; s|@INCLUDEDIR@|$BUILD/include|; s|@PREFIX@||; s|@VERSION@|0|" \
    "$SRC/libblkin/blkin.pc.in" >blkin.pc
export PKG_CONFIG_PATH=$WORK/own LD_LIBRARY_PATH=$BUILD/lib PATH=$BUILD/bin:$PATH BABELTRACE_PLUGIN_PATH=$BUILD/plugins

# command_of START: prints the line of the comment that begins with START
command_of() {
    sed -n "s,^ \*     \($1[^#]*\).*,\1,p" hello.c | grep .
}

# the README's lines, in a function with the declarations that they need
{
    echo '#include <blkin/blkin.h>
static int write_journal(uint64_t offset) { return offset == 0; }
static void serve_write(const struct blkin_context *received, uint64_t offset) {'
    sed -n '/^```c$/,/^```$/{/^```/d;p}' "$SRC/README.md"
    echo '}
int main(void) { blkin_init(); serve_write(NULL, 4096); return 0; }'
} >readme.c
sed 's/hello/readme/g' <<<"$(command_of cc) -Wall -Wextra -Werror" >build
bash build && ./readme || fail "the README's C: $(<build)"

# the page's program, by the page's command
sed -n '/^```c$/,/^```$/{/^```/d;p}' "$SRC/doc/library.md" >daemon.c
bash -c "$(sed -n 's/^    \$ \(cc -o daemon .*\)/\1/p' "$SRC/doc/library.md") -Wall -Wextra -Werror" ||
    fail "the daemon of doc/library.md does not compile"

[ "$(wc -l <hello.c)" -le 45 ] || fail "hello.c has $(wc -l <hello.c) lines"
bash -c "$(command_of cc) -Wall -Wextra -Werror" || fail "hello.c does not compile by: $(command_of cc)"
export BLKIN_RUNTIME_DIR=$WORK/run
start_blkin_agent http://127.0.0.1:9 || exit 1

# A busy agent may give a program no rings before its first span.
recorded() {
    rm -rf rings
    bash -c "$(command_of ./hello)" && ./daemon && bash -c "$(command_of 'blkin agent')" >dumped 2>&1 &&
        blkin show --list rings >list && grep -q 'hello: write$' list && grep -q 'gateway: write$' list &&
        blkin stat --once rings >stat && grep -q '^store: journal ' stat
}
wait_for 20 agent "the spans of hello and daemon, and the forked child's step" recorded || fail "$(<dumped)"
id=$(awk '/hello: write$/ { print $1; exit }' list) # the daemon's may be slower
bash -c "$(command_of 'blkin show') $id" >shown || fail "blkin show: status $?"
grep -q '─hello: journal ' shown && grep -q '^longest self time: hello: ' shown || fail "blkin show says: $(<shown)"
blkin graph rings >graph || fail "blkin graph: status $?"
grep -A 1 '^gateway' graph | grep -q '^└─ store ' || fail "the daemon's servers are not one trace: $(<graph)"
