#!/bin/bash
# `blkin record --end` tells when it cannot end the sessions. What LTTng's library answers is made up.
# SPDX-License-Identifier: BSD-2-Clause
# timeout: 60
set -u
# shellcheck source=tests/lib.sh
. "$SRC/tests/lib.sh"
private_begin
export BLKIN_STATE_DIR=$WORK/state BLKIN_RUNTIME_DIR=$WORK/run BABELTRACE_PLUGIN_PATH=$BUILD/plugins
export BLKIN_ENDPOINT=file:$WORK/spans.json
cat >"$WORK/answer.c" <<'C'
#include <lttng/lttng.h>
#include <stdlib.h>

int lttng_list_sessions(struct lttng_session **sessions)
{
    (void)sessions;
    return -atoi(getenv("ANSWER"));
}
C
"${CC:-cc}" -shared -fPIC -o "$WORK/answer.so" "$WORK/answer.c" || fail "cannot compile"

# end ANSWER: of LTTng's library, as lttng-error.h has it
end() {
    ANSWER=$1 LD_PRELOAD=$WORK/answer.so timeout 40 "$BUILD/bin/blkin" record --end >"$WORK/end.log" 2>&1
}
value_of() {
    printf '#include <lttng/lttng-error.h>\n#include <stdio.h>\nint main(void) { printf("%%d", (int)%s); return 0; }\n' "$1" |
        "${CC:-cc}" -x c -o "$WORK/value" - && "$WORK/value"
}

end "$(value_of LTTNG_ERR_FATAL)"
[ $? = 1 ] || fail "it says that the sessions are ended, though LTTng has failed"
grep -q 'the sessions could not be ended: cannot look for LTTng session' "$WORK/end.log" ||
    fail "it does not say why: $(<"$WORK/end.log")"

# no daemon: there is no session; but there may be a daemon that is not for us
end "$(value_of LTTNG_ERR_NO_SESSIOND)" || fail "without a session daemon: $?: $(<"$WORK/end.log")"
grep -q 'no session is ended: no LTTng session daemon answers' "$WORK/end.log" || fail "it says: $(<"$WORK/end.log")"
