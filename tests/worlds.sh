# Bare Debian systems in folders, with mounts and processes of their own, for check-fresh and check-packages. A script in
# tests/ sources this file after it has set SRC.
#
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash

fresh=$(realpath -m "${FRESH:-$SRC/build/fresh}")
home=/root # of the only user in a world

# the variables for the network, and TESTS, which enter() passes into a world
settings=()
for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY MAVEN_ARGS MAVEN_OPTS TESTS; do
    [ -n "${!name-}" ] && settings+=("$name=${!name}")
done

fail() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

skip() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 77
}

# Skips if this machine cannot make such systems. Sets mirror.
worlds_begin() {
    [ "$(id -u)" -eq 0 ] && type -P debootstrap >/dev/null || skip "needs root and debootstrap"
    unshare -m -p -f --mount-proc true 2>/dev/null || skip "namespaces are not allowed here"
    # shellcheck disable=SC2016 # $(REPO_URI) is for apt-get
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 'Label: Debian' | head -n 1)
    [ -n "$mirror" ] || skip "this machine's apt has no mirror of Debian"
    mkdir -p "$fresh" || exit
}

# base SUITE: makes the bare system, $fresh/SUITE.base, once.
base() {
    local folder=$fresh/$1.base
    mkdir -p "$fresh/$1.archives/partial"
    [ -e "$folder" ] && return 0
    rm -rf "$folder.new"
    echo "${0##*/}: making a bare $1"
    debootstrap --variant=minbase "$1" "$folder.new" "$mirror" >"$fresh/$1.log" 2>&1 &&
        mv "$folder.new" "$folder" || fail "debootstrap $1 failed: see $fresh/$1.log"
}

# copy_settings WORLD: copies this machine's settings of the network into the world.
copy_settings() {
    cp -L /etc/resolv.conf /etc/hosts "$1/etc/"
    apt-config dump | grep -E '^Acquire::(Check|Retries|Proxy|https?::)' >"$1/etc/apt/apt.conf.d/99machine"
    mkdir -p "$1/usr/local/share/ca-certificates" "$1$home/.m2"
    cp -L /usr/local/share/ca-certificates/*.crt "$1/usr/local/share/ca-certificates/" 2>/dev/null
    cp "$HOME/.m2/settings.xml" "$1$home/.m2/" 2>/dev/null || :
}

# copy_checkout WORLD: copies the checkout into the world, as blkin/ in $home.
copy_checkout() {
    mkdir -p "$1$home/blkin"
    (cd "$SRC" && git ls-files -z --cached --others --exclude-standard | xargs -0 ls -d 2>/dev/null |
        tar -c -T - -f -) | tar -x -C "$1$home/blkin"
}

# enter SUITE WORLD COMMAND...: makes WORLD the root folder, and runs the command there with $settings.
enter() {
    local suite=$1
    mount --bind "$2" "$2" && cd "$2" && mkdir old || exit 125
    shift 2
    mount -t proc proc proc && mount --rbind /sys sys && mount -t tmpfs -o mode=755 dev dev || exit 125
    mkdir dev/pts dev/shm var/cache/apt/archives -p && mount -t devpts -o newinstance,ptmxmode=666 pts dev/pts &&
        mount -t tmpfs -o mode=1777 shm dev/shm || exit 125
    for device in null zero full random urandom tty; do
        : >dev/$device && mount --bind /dev/$device dev/$device || exit 125
    done
    ln -s pts/ptmx dev/ptmx && ln -s /proc/self/fd dev/fd && ln -s fd/0 dev/stdin && ln -s fd/1 dev/stdout &&
        ln -s fd/2 dev/stderr
    mount --bind "$fresh/$suite.archives" var/cache/apt/archives && pivot_root . old && cd / || exit 125
    exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=$home LANG=C.UTF-8 \
        DEBIAN_FRONTEND=noninteractive "${settings[@]}" "$@" </dev/null
}

# in_namespaces COMMAND...: runs the command in namespaces of its own. It ends with this script.
in_namespaces() { setpriv --pdeathsig KILL unshare -m -p -f --kill-child --mount-proc "$@"; }
