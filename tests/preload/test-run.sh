#!/usr/bin/env bash
# blkin run: the given program runs in the right environment. A program that cannot be traced is reported.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/lib.sh"
blkin=$BUILD/bin/blkin
library=$(realpath "$BUILD/lib/libblkin-preload.so")
work=$(mktemp -d "$TMPDIR/run.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
unset BLKIN_RUN BLKIN_RUN_FILE LD_PRELOAD
cd "$work" || exit 1

# says STATUS PATTERN ARGUMENT...: checks status and messages of blkin run.
says() {
    local status=$1 pattern=$2 said got
    shift 2
    said=$("$blkin" run "$@" 2>&1)
    got=$?
    [ $got -eq "$status" ] || fail "run $*: status $got, expected $status: $said"
    # shellcheck disable=SC2053 # a pattern
    [[ $said == $pattern ]] || fail "run $*: expected $pattern, got: $said"
}

# ---- the program's arguments, status, signals and process

says 0 'a  b' printf %s 'a  b'
says 0 '-x' -- printf %s -x
says 3 '' sh -c 'exit 3'
"$blkin" run -- sh -c 'kill -KILL $$'
[ $? -eq 137 ] || fail "a killed program's status"
says 0 "$library" sh -c 'echo $LD_PRELOAD'
[ "$(sh -c 'echo $$; exec "$0" run sh -c "echo \$\$"' "$blkin" | uniq | wc -l)" = 1 ] || fail "the program is another process"
"$blkin" run sh -c 'grep -c libblkin-preload /proc/self/maps' >maps || fail "a child is not preloaded"

# ---- the program's environment

says 0 'ports=1-2?usage=2' --ports=1-2 --usage=2 sh -c 'echo "$BLKIN_RUN"'
[ "$(BLKIN_RUN=min-us=7 "$blkin" run --usage=1 sh -c 'echo $BLKIN_RUN')" = "min-us=7 usage=1" ] || fail "options are not added to BLKIN_RUN"
says 0 "$work/file" --run-file=file sh -c 'echo $BLKIN_RUN_FILE'
says 0 '/a' --run-file=/a sh -c 'echo $BLKIN_RUN_FILE'
[ "$(LD_PRELOAD=libm.so.6 "$blkin" run sh -c 'echo $LD_PRELOAD')" = "libm.so.6:$library" ] || fail "the library is not behind other preloaded ones"
[ "$("$blkin" run "$blkin" run sh -c 'echo $LD_PRELOAD')" = "$library" ] || fail "the library is preloaded twice"

# ---- as a drop-in for a unit

expected='[Service]
Environment="LD_PRELOAD='$library'"
Environment="BLKIN_RUN=files=/a\\b%%\"c,usage=1"
Environment="BLKIN_RUN_FILE=/f"'
[ "$("$blkin" run '--files=/a\b%"c' --usage=1 --run-file=/f --print)" = "$expected" ] || fail "--print"

# ---- wrong usage

says 2 '*expected a PROGRAM to run*'
says 2 '*expected one UNIT at most with --print*' --print true true
says 2 '*"ports=x": expected up to 64 ports*' --ports=x true
says 2 '*"usage=4": expected usage=0, 1, 2 or 3*' --usage=4 true
says 2 '*"usage=": expected usage=0, 1, 2 or 3*' --usage= true
[ "$(BLKIN_RUN=ports=7 "$blkin" run --ports= sh -c 'echo $BLKIN_RUN')" = "ports=7 ports=" ] || fail "--ports= is not added to BLKIN_RUN"
says 2 '*one line*' --files=$'/a\nb' true
says 2 '*unrecognized option*--nonsense*--help*' --nonsense true
says 2 '*--run-file: expected*' --run-file= true
[ "$("$blkin" run --help | head -n 1)" = "usage: blkin run [OPTION]... [--] PROGRAM [ARGUMENT]..." ] || fail "--help"

# ---- missing programs, and files that are no programs

says 127 '*no-such-program: not found' no-such-program
says 127 '*no/such: not found' no/such
says 126 '*Permission denied' /etc/passwd
says 126 '*Permission denied' /tmp

# ---- programs that cannot be traced do not run; a message has the reason

cc=${CC:-cc}
cat >program.c <<'TXT'
#include <stdio.h>

int main(void)
{
    return puts("the program runs") < 0;
}
TXT
refused() {
    says 125 "*$1*" "$2"
    [[ $("$blkin" run "$2" 2>/dev/null) != *"the program runs"* ]] || fail "$2 was run"
}
if ! "$cc" -static -o static program.c 2>/dev/null; then
    echo "not tested: static programs: $cc links none"
else
    refused 'is linked statically' ./static
    says 0 '*./static runs untraced*the program runs' --anyway ./static
fi
if "$cc" -static-pie -fPIE -o static-pie program.c 2>/dev/null; then
    refused 'is linked statically' ./static-pie
fi
"$cc" -o program program.c || fail "no compiler"
says 0 'the program runs' ./program
cp program musl
"$PYTHON" - musl <<'TXT'
import sys
data = open(sys.argv[1], "rb").read()
name = b"/lib64/ld-linux-x86-64.so.2"
if name in data:
    open(sys.argv[1], "wb").write(data.replace(name, b"/lib/ld-musl-x86_64.so.1".ljust(len(name), b"\0")))
TXT
cmp -s program musl || refused 'musl' ./musl
# a program of another class, or for another processor: a changed byte of the ELF header
for change in 4:1 18:250; do
    cp program other
    printf "%b" "\\x$(printf %x "${change#*:}")" | dd of=other bs=1 seek="${change%:*}" conv=notrunc status=none
    refused 'is for another processor' ./other
done
# a program with a section that Go makes
echo x >note
objcopy --add-section .go.buildinfo=note program go || fail "objcopy"
refused 'is a Go program' ./go
# cut and wrong headers do not crash blkin run
for length in 1 4 20 64 100; do
    head -c $length program >"./cut" && chmod +x ./cut
    "$blkin" run ./cut 2>/dev/null
    [ $? -lt 128 ] || fail "a program cut to $length bytes"
done
cp program wild
head -c 512 /dev/urandom | dd of=wild bs=1 seek=24 conv=notrunc status=none
timeout 10 "$blkin" run ./wild >/dev/null 2>&1
[ $? -ne 124 ] || fail "a program with a wild head hangs"

# scripts: their interpreter is checked
printf '#!%s\n' "$work/static" >script && chmod +x script
[ ! -e static ] || refused 'static is linked statically' ./script
printf '#!/usr/bin/env -S A=1 static -x\n' >script2 && chmod +x script2
[ ! -e static ] || PATH=$work:$PATH refused 'static is linked statically' ./script2
printf '#! /bin/sh\necho script $1\n' >script3 && chmod +x script3
says 0 'script 7' ./script3 7
printf 'echo plain $1\n' >script4 && chmod +x script4
says 0 'plain 7' ./script4 7

# set-user-ID: refused only if the program gets another user's rights
if [ "$(id -u)" != 0 ]; then
    echo "not tested: set-user-ID: needs root"
else
    chmod 755 "$work"
    as_nobody() {
        setpriv --reuid=65534 --regid=65534 --clear-groups "$blkin" run "$@" 2>&1
    }
    cp program setuid && chmod 4755 setuid
    says 0 'the program runs' ./setuid
    if ! said=$(as_nobody ./program) || [ "$said" != "the program runs" ]; then
        echo "not tested: set-user-ID: another user cannot read the checkout"
    else
        [[ $(as_nobody ./setuid) == *"set-user-ID, for which ld.so ignores"* ]] || fail "set-user-ID"
        cp program setgid && chmod 2755 setgid
        [[ $(as_nobody ./setgid) == *"set-group-ID"* ]] || fail "set-group-ID"
        cp program capable
        if type -P setcap >/dev/null && setcap cap_net_raw+ep capable 2>/dev/null; then
            [[ $(as_nobody ./capable) == *"file capabilities"* ]] || fail "capabilities"
        else
            echo "not tested: file capabilities: there is no setcap that works here"
        fi
    fi
fi

# ---- a unit's settings that prevent tracing

# of_unit LINE...: prints the output of --print for a unit with these lines
of_unit() {
    printf '%s\n' '[Service]' "$@" >some.service
    "$blkin" run --print ./some.service | grep '#' | tr '\n' ' '
}
[[ $(of_unit 'SystemCallFilter=@system-service' 'SystemCallFilter=~@privileged @resources') == *'allows the system calls'* ]] ||
    fail "a unit like Debian's of redis"
[[ $(of_unit 'SystemCallFilter=~@network-io:EPERM \' 'mremap') == *'#SystemCallFilter=connect '*' mremap '* ]] || fail "calls that are denied"
[[ $(of_unit 'SystemCallFilter=@basic-io @file-system' 'RestrictAddressFamilies=AF_INET') == \
    *'#SystemCallFilter=ppoll '*' #RestrictAddressFamilies=AF_UNIX '*'=AF_NETLINK '* ]] || fail "calls that are not allowed"
[[ $(of_unit 'RestrictAddressFamilies=~AF_PACKET' "NoExecPaths=/ ${library%?}" "ExecPaths=/bin ${library%/*}/") == '# for ./some.service ' ]] ||
    fail "a unit that allows tracing"
[[ $(of_unit 'NoExecPaths=/' "ExecPaths=${library%?}" 'RootDirectory=/x') == *"#ExecPaths=$library # RootDirectory="* ]] || fail "folders"
[[ $("$blkin" run --print ./none 2>&1) == *'no such unit'* ]] || fail "no unit"
[ "$("$blkin" run --print ./some.service | head -n 1)" = '[Service]' ] || fail "lines before the section"

# ---- is a running program traced?

doctor() {
    local said
    for _ in 1 2 3; do # on a busy machine a check may take too long
        said=$("$blkin" doctor --json --pid="$1" | jq -r --arg id "$2" --arg level "$3" \
            '.checks[] | select(.id == $id and .level == $level) | .saw + " " + .mend')
        [ -z "$said" ] || break
    done
    # shellcheck disable=SC2053 # a pattern
    [[ $said == $4 ]] || fail "doctor --pid=$1: $2: expected $3 $4, got: $said"
}
echo 'usage=9' >run-file
"$blkin" run --run-file=run-file tail -f /dev/null &
traced=$!
tail -f /dev/null &
plain=$!
trap 'kill $(jobs -p) ${cleared-}; rm -rf "$work"' EXIT
# is_program PID PROGRAM [LIBRARY]: checks that the process runs this program, and has loaded this library
is_program() { [[ $(readlink "/proc/$1/exe") == */$2 ]] && grep -q "${3-}" "/proc/$1/maps"; }
wait_for 20 - "two programs that run" eval 'is_program $traced tail libc.so && is_program $plain tail libc.so' || exit 1
doctor $traced program.preloaded ok "process $traced (tail) has *libblkin-preload.so*"
doctor $traced run.text bad "$work/run-file: \"usage=9\"*expected usage=0, 1, 2 or 3"
echo 'programs=nginx' >run-file
doctor $traced run.text note "*programs= does not name process *(tail)*"
echo 'usage=1' >run-file
doctor $traced run.text ok "*run-file is right*"
BLKIN_RUN='' "$blkin" run "$BUILD/tests/preload/inherits" tail -f /dev/null &
filtered=$!
wait_for 20 - "a program with a filter" is_program $filtered tail blkin-preload || exit 1
doctor $filtered program.filtered bad "*such as process $filtered (tail): not traced*no socket */run/blkin/rings *"
"$blkin" run sh -c 'env -i tail -f /dev/null; :' &
clearing=$!
has_child() { cleared=$(pgrep -P "$clearing" -x tail); }
wait_for 20 - "a child without the library" has_child || exit 1
doctor "$cleared" program.preloaded bad "process $cleared (tail) is a child of process $clearing, *without its LD_PRELOAD*"
doctor $traced program.cleared note "*: 1. Process $cleared (tail) is a child of process $clearing*import_environment*"
if [ "$(id -u)" = 0 ] && getent passwd daemon >/dev/null; then
    "$blkin" run setpriv --euid=daemon tail -f /dev/null &
    secure=$!
    wait_for 20 - "a program with two users" is_program $secure tail libc.so || exit 1
    doctor $secure program.preloaded bad "process $secure (tail) was started with two users*"
    doctor $traced program.secure bad "*: 1. Process $secure (tail) was started with two users*"
    kill $secure
else
    echo "not tested: a program with two users: that needs root"
fi
env BLKIN_RUN='' "$blkin" run tail -f /dev/null &
untold=$!
wait_for 20 - "a program that has served nobody" is_program $untold tail blkin-preload || exit 1
doctor $untold program.lttng note "process $untold (tail) has not loaded LTTng: no lttng-sessiond runs*"
doctor $untold program.rings note "process $untold (tail) has no rings: there is no /run/blkin/rings/socket*"
doctor $plain program.preloaded bad "process $plain (tail) was not started by \`blkin run\`*--print"
LD_PRELOAD=$BUILD/lib/libblkin.so tail -f /dev/null &
linked=$!
wait_for 20 - "a program with libblkin" is_program $linked tail libblkin.so || exit 1
doctor $linked program.preloaded ok "process $linked (tail) calls libblkin itself*"
doctor $linked program.rings note "process $linked (tail) has no rings: there is no /run/blkin/rings/socket*"
doctor 4194304 program.preloaded bad "there is no process 4194304*"
[ "$("$blkin" doctor --pid=x 2>&1)" = "blkin doctor: expected the number of a process: --pid=1234" ] || fail "--pid=x"
if [ -e static ]; then
    printf '#include <unistd.h>\nint main(void) { return pause(); }\n' >pauses.c
    "$cc" -static -o pauses pauses.c
    LD_PRELOAD=$library ./pauses &
    static=$!
    wait_for 20 - "a static program" is_program $static pauses || exit 1
    doctor $static program.preloaded bad "*is linked statically*"
fi

# ---- no message is written to a standard error that is a connection with a client

"$PYTHON" - "$library" <<'PY' || fail "a message goes to a client, or to no log"
import os, socket, subprocess, sys
listener = socket.create_server(("127.0.0.1", 0))
ours = socket.create_connection(listener.getsockname())
theirs = listener.accept()[0]
environment = dict(os.environ, LD_PRELOAD=sys.argv[1], BLKIN_RUN="usage=9", BLKIN_DEBUG="1")
subprocess.run(["true"], env=environment, stderr=theirs)
theirs.close()
got = ours.recv(1000)
message = subprocess.run(["true"], env=environment, stderr=subprocess.PIPE).stderr
ours, theirs = socket.socketpair()
subprocess.run(["true"], env=environment, stdin=theirs, stderr=theirs)
subprocess.run(["true"], env=environment, stdin=subprocess.DEVNULL, stderr=theirs) # a log
theirs.close()
logged = b"".join(iter(lambda: ours.recv(1000), b""))
sys.exit(got != b"" or b'"usage=9"' not in message or logged.count(b'"usage=9"') != 1)
PY

# ---- without the library

mkdir -p "elsewhere/bin" && cp "$blkin" elsewhere/bin/
said=$(elsewhere/bin/blkin run true 2>&1)
status=$?
if [ $status -ne 0 ]; then # if not, the library is installed on this machine
    [ $status = 125 ] && [[ $said == *"there is no libblkin-preload.so in "* ]] || fail "without the library: $said"
fi
mkdir -p elsewhere/lib/blkin && cp "$library" "${library%/*}/libblkin.so.1" elsewhere/lib/blkin/
[ "$(elsewhere/bin/blkin run sh -c 'echo $LD_PRELOAD' 2>/dev/null)" = "$work/elsewhere/lib/blkin/libblkin-preload.so" ] ||
    fail "an installed command does not find its library"
mv elsewhere 'else where'
[[ $('else where/bin/blkin' run true 2>&1) == *"expected a path without blanks and colons"* ]] || fail "a folder with a blank"
exit 0
