/*
 * B3: what the specification publishes, its limits, and malformed input.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "context_checks.h"

/* ---------------------------------------------------------------- B3 */

#define TRACE_128 "80f198ee56343ba864fe8b2a57d3eff7"
#define TRACE_64  "64fe8b2a57d3eff7"
#define SPAN      "e457b5a2e4d86bd1"
#define UP        "05e3ac9a4f6e3b90"
#define ZEROS     "0000000000000000"

static const struct expected b3_valid[] = {
    /* the README, and Brave's documentation */
    {TRACE_128 "-" SPAN "-1-" UP, 0x80f198ee56343ba8, 0x64fe8b2a57d3eff7, 0xe457b5a2e4d86bd1,
     0x05e3ac9a4f6e3b90, SAMPLED | DECIDED, NULL},
    {"4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1", 0x4bf92f3577b34da6, 0xa3ce929d0e0e4736,
     0x00f067aa0ba902b7, 0, SAMPLED | DECIDED, NULL},
    {"4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7", 0x4bf92f3577b34da6, 0xa3ce929d0e0e4736,
     0x00f067aa0ba902b7, 0, 0, NULL},
    {"4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-d-5b4185666d50f68b", 0x4bf92f3577b34da6,
     0xa3ce929d0e0e4736, 0x00f067aa0ba902b7, 0x5b4185666d50f68b, SAMPLED | DECIDED | DEBUG, NULL},
    {"0", 0, 0, 0, 0, DECIDED, NULL},
    {"1", 0, 0, 0, 0, SAMPLED | DECIDED, NULL},
    {"d", 0, 0, 0, 0, SAMPLED | DECIDED | DEBUG, NULL},
    /* each form with a 64-bit trace id */
    {TRACE_64 "-" SPAN, 0, 0x64fe8b2a57d3eff7, 0xe457b5a2e4d86bd1, 0, 0, NULL},
    {TRACE_64 "-" SPAN "-0", 0, 0x64fe8b2a57d3eff7, 0xe457b5a2e4d86bd1, 0, DECIDED, NULL},
    {TRACE_64 "-" SPAN "-1", 0, 0x64fe8b2a57d3eff7, 0xe457b5a2e4d86bd1, 0, SAMPLED | DECIDED, NULL},
    {TRACE_64 "-" SPAN "-d", 0, 0x64fe8b2a57d3eff7, 0xe457b5a2e4d86bd1, 0,
     SAMPLED | DECIDED | DEBUG, NULL},
    {TRACE_64 "-" SPAN "-0-" UP, 0, 0x64fe8b2a57d3eff7, 0xe457b5a2e4d86bd1, 0x05e3ac9a4f6e3b90,
     DECIDED, NULL},
    /* leading zeros are dropped, a parent of zeros is none */
    {ZEROS TRACE_64 "-" SPAN "-1", 0, 0x64fe8b2a57d3eff7, 0xe457b5a2e4d86bd1, 0, SAMPLED | DECIDED,
     TRACE_64 "-" SPAN "-1"},
    {TRACE_64 "-" SPAN "-1-" ZEROS, 0, 0x64fe8b2a57d3eff7, 0xe457b5a2e4d86bd1, 0, SAMPLED | DECIDED,
     TRACE_64 "-" SPAN "-1"},
    /* a parent and no decision, as in Brave's tests */
    {TRACE_64 "-" SPAN "-" UP, 0, 0x64fe8b2a57d3eff7, 0xe457b5a2e4d86bd1, 0x05e3ac9a4f6e3b90, 0,
     NULL},
    {TRACE_128 "-" SPAN "-" UP, 0x80f198ee56343ba8, 0x64fe8b2a57d3eff7, 0xe457b5a2e4d86bd1,
     0x05e3ac9a4f6e3b90, 0, NULL},
    {TRACE_64 "-" SPAN "-" ZEROS, 0, 0x64fe8b2a57d3eff7, 0xe457b5a2e4d86bd1, 0, 0,
     TRACE_64 "-" SPAN},
    {TRACE_64 ZEROS "-" SPAN, 0x64fe8b2a57d3eff7, 0, 0xe457b5a2e4d86bd1, 0, 0, NULL},
};

static void test_b3_valid(void)
{
    for (size_t i = 0; i < sizeof(b3_valid) / sizeof(*b3_valid); i++) {
        const struct expected *e = &b3_valid[i];
        struct blkin_context context = {0};
        const char *written = e->written ? e->written : e->text;
        char *buffer = marked_buffer(BLKIN_B3_SIZE);
        int length;

        about("b3", e->text, strlen(e->text));
        reads_as(blkin_context_from_b3, e);
        CHECK(parse(blkin_context_from_b3, &context, e->text, strlen(e->text)) == 0);
        CHECK(blkin_context_has_ids(&context) == (e->span_id != 0));
        length = blkin_context_to_b3(&context, buffer);
        CHECK(length == (int)strlen(written) && length < BLKIN_B3_SIZE);
        CHECK(memcmp(buffer, written, strlen(written) + 1) == 0);
        free(buffer);
    }
}

static void test_b3_malformed(void)
{
    static const char *const table[] = {
        "",
        "-",
        "2",
        "D",
        "1-",
        "1-" UP,
        "not-a-tumor",
        "b970dafd-0d95-40aa-95d8-1d8725aebe40",
        /* parts: one too few, one too many, empty */
        TRACE_128,
        TRACE_64 SPAN "-1",
        TRACE_64 "-" SPAN "--" UP,
        TRACE_64 "-" SPAN "-" UP "-1",
        TRACE_64 "-" SPAN "-1-" UP "-",
        TRACE_64 "-" SPAN "-true",
        /* id lengths: only 16 and 32 for the trace, 16 for the span */
        "4fe8b2a57d3eff7-" SPAN "-1",
        "0" TRACE_128 "-" SPAN "-1",
        TRACE_64 "-0" SPAN "-1",
        /* zeros */
        ZEROS ZEROS "-" SPAN "-1",
        TRACE_64 "-" ZEROS "-1",
        " " TRACE_64 "-" SPAN "-1",
    };
    struct blkin_context context = marked();
    char buffer[BLKIN_B3_SIZE] = "unchanged";

    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        refuses(blkin_context_from_b3, "b3", table[i]);
    about("b3: NULL", "", 0);
    CHECK(blkin_context_from_b3(&context, NULL, 1) == -EINVAL);
    CHECK(blkin_context_from_b3(NULL, "1", 1) == -EINVAL);
    CHECK(blkin_context_to_b3(NULL, buffer) == -EINVAL);
    CHECK(blkin_context_to_b3(&context, NULL) == -EINVAL);

    about("b3: nothing to write", "", 0);
    memset(&context, 0, sizeof(context));
    CHECK(blkin_context_to_b3(&context, buffer) == -EINVAL);
    context.trace_id = 1;
    context.flags = SAMPLED;
    CHECK(blkin_context_to_b3(&context, buffer) == -EINVAL);
    context.trace_id = 0;
    context.span_id = 1;
    CHECK(blkin_context_to_b3(&context, buffer) == -EINVAL);
    context.span_id = 0;
    context.parent_span_id = 1;
    CHECK(blkin_context_to_b3(&context, buffer) == -EINVAL);
    CHECK(strcmp(buffer, "unchanged") == 0);
}

static struct blkin_context_text field(const char *text)
{
    return (struct blkin_context_text){text ? exact_copy(text, strlen(text)) : NULL,
                                       text ? strlen(text) : 0};
}

/* trace id, span id, parent span id, sampled, flags; NULL: did not come */
static int from_fields(struct blkin_context *context, const char *const texts[5])
{
    struct blkin_context_b3_fields fields = {field(texts[0]), field(texts[1]), field(texts[2]),
                                             field(texts[3]), field(texts[4])};
    struct blkin_context before = *context;
    int error = blkin_context_from_b3_fields(context, &fields);

    snprintf(subject, sizeof(subject), "b3 fields: %s %s %s %s %s", texts[0] ? texts[0] : "none",
             texts[1] ? texts[1] : "none", texts[2] ? texts[2] : "none",
             texts[3] ? texts[3] : "none", texts[4] ? texts[4] : "none");
    CHECK(error == 0 || memcmp(&before, context, sizeof(before)) == 0);
    free((void *)fields.trace_id.text);
    free((void *)fields.span_id.text);
    free((void *)fields.parent_span_id.text);
    free((void *)fields.sampled.text);
    free((void *)fields.flags.text);
    return error;
}

static void test_b3_fields(void)
{
    static const struct {
        const char *texts[5];
        uint32_t flags;
        const char *single;          /* the same in one header */
        const char *sampled, *debug; /* as written */
    } valid[] = {
        {{TRACE_128, SPAN, UP, "1", NULL}, SAMPLED | DECIDED, TRACE_128 "-" SPAN "-1-" UP, "1", ""},
        {{TRACE_64, SPAN, NULL, "0", NULL}, DECIDED, TRACE_64 "-" SPAN "-0", "0", ""},
        {{TRACE_64, SPAN, NULL, NULL, NULL}, 0, TRACE_64 "-" SPAN, "", ""},
        {{TRACE_64, SPAN, NULL, "true", NULL}, SAMPLED | DECIDED, TRACE_64 "-" SPAN "-1", "1", ""},
        {{TRACE_64, SPAN, NULL, "false", NULL}, DECIDED, TRACE_64 "-" SPAN "-0", "0", ""},
        {{TRACE_64, SPAN, NULL, "TRUE", NULL}, SAMPLED | DECIDED, TRACE_64 "-" SPAN "-1", "1", ""},
        {{TRACE_64, SPAN, NULL, "False", NULL}, DECIDED, TRACE_64 "-" SPAN "-0", "0", ""},
        {{TRACE_64, SPAN, UP, NULL, NULL}, 0, TRACE_64 "-" SPAN "-" UP, "", ""},
        {{TRACE_64, SPAN, UP, NULL, "1"},
         SAMPLED | DECIDED | DEBUG,
         TRACE_64 "-" SPAN "-d-" UP,
         "",
         "1"},
        {{TRACE_64, SPAN, UP, "0", "1"},
         SAMPLED | DECIDED | DEBUG,
         TRACE_64 "-" SPAN "-d-" UP,
         "",
         "1"},
        {{TRACE_64, SPAN, ZEROS, "1", "0"}, SAMPLED | DECIDED, TRACE_64 "-" SPAN "-1", "1", ""},
        {{TRACE_64, SPAN, NULL, "1", "true"}, SAMPLED | DECIDED, TRACE_64 "-" SPAN "-1", "1", ""},
        {{TRACE_64, SPAN, NULL, NULL, ""}, 0, TRACE_64 "-" SPAN, "", ""},
        {{NULL, NULL, NULL, "0", NULL}, DECIDED, "0", "0", ""},
        {{NULL, NULL, NULL, "1", NULL}, SAMPLED | DECIDED, "1", "1", ""},
        {{NULL, NULL, NULL, NULL, "1"}, SAMPLED | DECIDED | DEBUG, "d", "", "1"},
    };
    static const char *const malformed[][5] = {
        {NULL, NULL, NULL, NULL, NULL},
        {NULL, NULL, NULL, NULL, "0"},
        {TRACE_64, NULL, NULL, "1", NULL},
        {NULL, SPAN, NULL, "1", NULL},
        {NULL, NULL, UP, "1", NULL},
        {TRACE_64, NULL, UP, "1", NULL},
        {"", SPAN, NULL, "1", NULL},
        {TRACE_64, SPAN, "", "1", NULL},
        {TRACE_64, SPAN, NULL, "", NULL},
        {TRACE_64, SPAN, NULL, "d", NULL},
        {TRACE_64, SPAN, NULL, "truee", NULL},
        {TRACE_64, SPAN, NULL, "x", "1"},
        {TRACE_128 "0", SPAN, NULL, "1", NULL},
        {TRACE_64, SPAN, UP "0", "1", NULL},
        {TRACE_64, ZEROS, NULL, "1", NULL},
        {TRACE_64, SPAN, "05E3AC9A4F6E3B90", "1", NULL},
    };
    struct blkin_context context;
    struct blkin_context_b3_values values;
    struct blkin_context_b3_fields none = {{NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}};

    for (size_t i = 0; i < sizeof(valid) / sizeof(*valid); i++) {
        struct blkin_context single = {0};

        context = marked();
        CHECK(from_fields(&context, valid[i].texts) == 0);
        CHECK(blkin_context_from_b3(&single, valid[i].single, strlen(valid[i].single)) == 0);
        CHECK(same(&context, &single));
        CHECK(context.flags == (valid[i].flags | REMOTE));
        memset(&values, '#', sizeof(values));
        CHECK(blkin_context_to_b3_fields(&context, &values) == 0);
        CHECK(strcmp(values.trace_id, valid[i].texts[0] ? valid[i].texts[0] : "") == 0);
        CHECK(strcmp(values.span_id, valid[i].texts[1] ? valid[i].texts[1] : "") == 0);
        CHECK(strcmp(values.parent_span_id, context.parent_span_id ? UP : "") == 0);
        CHECK(strcmp(values.sampled, valid[i].sampled) == 0);
        CHECK(strcmp(values.flags, valid[i].debug) == 0);
    }
    for (size_t i = 0; i < sizeof(malformed) / sizeof(*malformed); i++) {
        context = marked();
        CHECK(from_fields(&context, malformed[i]) == -EINVAL);
    }

    about("b3 fields: NULL", "", 0);
    CHECK(blkin_context_from_b3_fields(&context, NULL) == -EINVAL);
    CHECK(blkin_context_from_b3_fields(NULL, &none) == -EINVAL);
    memset(&context, 0, sizeof(context));
    CHECK(blkin_context_to_b3_fields(&context, &values) == -EINVAL);
    CHECK(blkin_context_to_b3_fields(NULL, &values) == -EINVAL);
    CHECK(blkin_context_to_b3_fields(&context, NULL) == -EINVAL);
}

int main(void)
{
    test_b3_valid();
    test_b3_malformed();
    test_each_byte(blkin_context_from_b3, TRACE_128 "-" SPAN "-1-" UP,
                   "hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh-hhhhhhhhhhhhhhhh-s-hhhhhhhhhhhhhhhh");
    test_each_byte(blkin_context_from_b3, TRACE_64 "-" SPAN "-d-" UP,
                   "hhhhhhhhhhhhhhhh-hhhhhhhhhhhhhhhh-s-hhhhhhhhhhhhhhhh");
    test_b3_fields();
    return context_status();
}
