#!/bin/bash
# scripts/rooms finds a wrong include, a wrong call, a cycle of files, and a folder that is not listed.
# SPDX-License-Identifier: BSD-2-Clause
set -u
# shellcheck source=tests/lib.sh
. "$SRC/tests/lib.sh"

tree=$TMPDIR/tree
trap 'rm -rf "$tree"' EXIT

rooms() {
    "$PYTHON" "$SRC/scripts/rooms" --root="$tree" "$@"
}

# refused WHAT ARGUMENT...: expects exactly one problem, with these words
refused() {
    local what=$1 said
    shift
    said=$(rooms "$@" 2>&1) && fail "nothing is said of: $what"
    [[ $said == *"$what"* && $said != *$'\n'* ]] || fail "of '$what' it says: $said"
}

fresh_tree() {
    rm -rf "$tree"
    mkdir "$tree" && cp -r "$SRC"/{tracepoints,libblkin,babeltrace-plugin,tools} "$tree" || exit 1
}

fresh_tree
rooms || fail "the rooms of this checkout are not straight"

echo '#include "tools/base/say.h"' >>"$tree/babeltrace-plugin/base/table.c"
refused 'babeltrace-plugin/base/table.c includes tools/base/say.h: babeltrace-plugin/base may not use tools/base'

fresh_tree
echo '#include "tools/base/messages.def"' >>"$tree/babeltrace-plugin/base/table.c"
refused 'babeltrace-plugin/base/table.c includes tools/base/messages.def: babeltrace-plugin/base may not use tools/base'

fresh_tree
echo '#include "http_client.h"' >>"$tree/babeltrace-plugin/base/text.h"
echo '#include "text.h"' >>"$tree/babeltrace-plugin/base/http_client.h"
refused 'files include each other in a cycle: babeltrace-plugin/base/http_client, babeltrace-plugin/base/text'

fresh_tree
mkdir "$tree/tools/attic" && echo >"$tree/tools/attic/old.c"
refused 'tools/attic has no row in scripts/rooms'

# a declaration in place of an include
fresh_tree
objects=$tree/objects
mkdir -p "$objects" && cp -rs "$BUILD/obj/"{tracepoints,libblkin,babeltrace-plugin,tools} "$objects" || exit 1
rooms --objects="$objects" || fail "the objects of this checkout are not straight"
for weak in '' '__attribute__((weak)) '; do
    echo "${weak}void notify_has_store(void); void planted(void); void planted(void) { notify_has_store(); }" \
        >"$tree/babeltrace-plugin/base/planted.c"
    "${CC:-cc}" -c -o "$objects/babeltrace-plugin/base/planted.c.o" "$tree/babeltrace-plugin/base/planted.c" || fail "cc"
    refused 'babeltrace-plugin/base/planted.c needs notify_has_store of tools/base/notify.c' --objects="$objects"
done
exit 0
