#!/bin/bash
# scripts/deps installs the packages of a use and no others. It prints their size, its progress, and the output of a
# failed apt-get. fetch-zipkin names a Java that is too old. The test has a made-up system with nothing
# installed, and an apt-get that logs its arguments.
# SPDX-License-Identifier: BSD-2-Clause
set -u
. "$SRC/tests/lib.sh"
work=$(mktemp -d "$TMPDIR/deps.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

mkdir "$work/bin" || exit 1
for program in bash cat cut echo env sh grep mktemp rm sed tail xargs dirname sleep mkdir cp; do
    ln -s "$(type -P $program)" "$work/bin/$program" || exit 1
done
program() { cat >"$work/bin/$1" && chmod +x "$work/bin/$1"; }
echo 'echo 0' | program id
program apt-get <<'SH'
#!/bin/bash
echo "$*" >>"$ASKED"
case $* in
*--assume-no*)
    printf '%s\n' 'Need to get 12 MB of archives.' 'After this operation, 34 MB of additional disk space will be used.'
    exit 1
    ;;
*update*) exit 0 ;;
esac
printf 'dlstatus:1:%s:Retrieving file\n' 9.5 40.0 41.7 100.0 >&3
printf 'pmstatus:libfoo:amd64:%s:Installing\n' 50.5 >&3
echo "what dpkg says"
[ -z "${APT_FAILS-}" ]
SH

# deps ARGUMENT...: sets its output in $said, its status, and the packages for apt-get in $installed
deps() {
    local status
    : >"$work/asked"
    said=$(PATH=$work/bin ASKED=$work/asked TMPDIR=$work PYTHON=/nowhere bash "$SRC/scripts/deps" "$@" 2>&1)
    status=$?
    installed=" $(sed -n 's/.* -y install //p' "$work/asked") "
    return $status
}

has() {
    local package
    for package in $1; do
        [[ $installed == *" $package "* ]] || fail "$2: $package is not installed:$installed"
    done
}
has_not() {
    local package
    for package in $1; do
        [[ $installed != *" $package "* ]] || fail "$2: $package is installed, what for?"
    done
}
build='g++ liblttng-ust-dev libbabeltrace2-dev liburcu-dev python3'
demo='lttng-tools babeltrace2 curl default-jre-headless maven procps'
packages='debootstrap systemd-container'
deb='git xz-utils dpkg-dev'
check='chromium clang valgrind fio jq qemu-utils strace'

# A package is still missing after this apt-get: the status is 1.
deps --install build && fail "status 0, and all is missing"
has "$build" build
has_not "$demo $check" build
deps --install demo
has "$build $demo" demo
has_not "$check" demo
for text in "deps: Need to get 12 MB" "deps: After this operation, 34 MB" "deps: 40 % fetched" "deps: 100 % fetched" \
    "deps: 50 % installed"; do
    [ "$(grep -cF "$text" <<<"$said")" = 1 ] || fail "does not say once: $text: $said"
done
[[ $said != *"what dpkg says"* ]] || fail "says all that dpkg says: $said"
deps --install
has "$build $demo $check" "all"
has_not "$packages" "all"
deps --install packages
has "$packages" packages
has_not "$demo $check" packages
deps --install deb
has "$deb" deb
has_not "$demo $check $packages rpm" deb
[[ $said == *"installing for deb"*build-dep:packaging/debian/control* ]] || fail "deb: does not name the Build-Depends: $said"
grep -q -- '-y build-dep /' "$work/asked" || fail "deb: the Build-Depends are not installed: $(<"$work/asked")"

deps --check demo && fail "--check finds nothing missing"
[[ $installed == "  " && $said == *"missing packages: "*maven* && $said != *chromium* ]] || fail "--check: $said"
APT_FAILS=1 deps --install build && fail "status 0 although apt-get failed"
[[ $said == *"what dpkg says"*"apt-get could not install: "* ]] || fail "a failure of apt-get: $said"

for java in 11.0.2:3 1.8.0_292:3 17.0.1:0 26:0; do
    printf 'echo "openjdk version \\"%s\\" 2020" >&2\n' "${java%:*}" | program java
    said=$(PATH=$work/bin ZIPKIN_JAR=/dev/null bash "$SRC/scripts/fetch-zipkin" 2>&1)
    status=$?
    [ $status -eq "${java#*:}" ] || fail "with Java ${java%:*}: status $status: $said"
done
