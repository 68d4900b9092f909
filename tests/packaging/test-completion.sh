#!/bin/bash
# Bash completes the commands, flags and keys of blkin, and files.
# SPDX-License-Identifier: BSD-2-Clause
set -u
PATH=$BUILD/bin:$PATH
. "$SRC/packaging/completion/blkin"
cd "$TMPDIR" || exit 1

# completes WORDS... : EXPECTED...: WORDS are the words of the line as bash splits them, the last one unfinished.
completes() {
    local expected
    COMP_WORDS=(blkin)
    while [ "$1" != : ]; do
        COMP_WORDS+=("$1")
        shift
    done
    shift
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    expected=$(printf '%s\n' "$@" | sort)
    _blkin
    [ "$(printf '%s\n' "${COMPREPLY[@]}" | sort -u)" = "$expected" ] || {
        echo "test-completion.sh: \"${COMP_WORDS[*]}\" gives \"${COMPREPLY[*]}\", expected \"$*\"" >&2
        exit 1
    }
}

# all commands
mapfile -t commands < <(blkin --help | sed -nE 's/^  ([a-z]+)  .*/\1/p')
[ ${#commands[@]} -gt 1 ] || exit 1
completes '' : "${commands[@]}" --help --version
completes sh : show
completes keep --la : --last=
completes show --a : --annotations --around= --ascii
completes show --wi : --width=
mapfile -t keys < <(blkin config keys | sed -E 's/^([a-z-]+).*/--\1=/')
[ ${#keys[@]} -gt 20 ] || exit 1
completes config '' : check show keys --section= --all --config= --help "${keys[@]}"
completes config check --endp : --endpoint=
completes reload '' : live agent --runtime-dir= --config= --help
completes status '' : live agent work-root --json --runtime-dir= --config= --help
completes nonsense '' : ''
# files, also as values
touch 'a file.conf'
trap 'rm "a file.conf"' EXIT
completes config check --config = 'a f' : 'a file.conf'
completes config check --config = : 'a file.conf'
exit 0
