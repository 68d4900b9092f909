/*
 * Calls of the API that need no session: on spans that were never begun, and the clock.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <blkin/blkin.h>

#include "check.h"
#include "waits.h"

#include <string.h>
#include <sys/socket.h>
#include <time.h>

_Static_assert(sizeof(struct blkin_span) == BLKIN_SPAN_SIZE, "the size in doc/library.md");
_Static_assert(offsetof(struct blkin_span, room_) == 64, "the header of the ABI");

/* Makes every call on a span that was never begun. No call changes the span. */
static void use_all(struct blkin_span *span)
{
    struct blkin_context context;
    struct blkin_span before = *span, child;

    CHECK(!blkin_span_is_recorded(span));
    CHECK(!blkin_context_has_ids(blkin_span_context(span)));
    blkin_span_annotate(span, "text");
    blkin_span_log(span, BLKIN_ERR, "text");
    blkin_span_log_n(span, BLKIN_ERR, "text", 2);
    blkin_span_log_at(span, BLKIN_ERR, "text", 1);
    blkin_span_annotatef(span, "%d", 1);
    blkin_span_tag_string(span, "key", "value");
    blkin_span_tag_string_n(span, "key", "value", 2);
    blkin_span_tag_int64(span, "key", 1);
    blkin_span_tag_uint64(span, "key", 1);
    blkin_span_tag_double(span, "key", 1);
    blkin_span_tag_bool(span, "key", 1);
    blkin_span_error(span, "EIO");
    blkin_span_link(span, blkin_span_context(span));
    blkin_span_keep(span, "why");
    blkin_span_set_name(span, "name");
    blkin_span_set_name_n(span, "name", 2);
    blkin_span_set_remote(span, "name", "10.0.0.1", 1);
    blkin_span_set_remote_sockaddr(span, "name", NULL, 0);
    blkin_span_set_service(span, "name", "10.0.0.1", 1);
    blkin_span_set_start(span, 1);
    blkin_step_begin(span, "step", BLKIN_INTERNAL);
    blkin_step_context(span, &context);
    CHECK(!blkin_context_has_ids(&context));
    blkin_step_end(span);
    CHECK(blkin_set_current(span) == NULL && blkin_current() == span);
    BLKIN_ANNOTATE(blkin_current(), "text");
    CHECK(blkin_set_current(NULL) == span);
    blkin_span_begin(&child, "child", BLKIN_INTERNAL, span);
    CHECK(!blkin_span_is_recorded(&child));
    blkin_span_end(&child);
    blkin_span_drop(span);
    blkin_span_end_at(span, 1);
    blkin_span_end(span);
    CHECK(memcmp(&before, span, sizeof(before)) == 0);
}

TEST(test_never_begun)
{
    struct blkin_span of_init = BLKIN_SPAN_INIT, of_zeros;
    static struct blkin_span of_static;

    memset(&of_zeros, 0, sizeof(of_zeros));
    use_all(&of_init);
    use_all(&of_zeros);
    use_all(&of_static);
}

TEST(test_clock)
{
    const uint64_t before = (uint64_t)monotonic_ns(), now = blkin_now();

    CHECK(now + 100000 >= before && now <= (uint64_t)monotonic_ns() + 100000);
    CHECK(blkin_time(&(struct timespec){3, 4}) == UINT64_C(3000000004));
}

CHECK_MAIN
