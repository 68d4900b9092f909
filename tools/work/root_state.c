/*
 * What the root keeps over a restart.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "root_state.h"

#include "babeltrace-plugin/base/printer.h"
#include "tools/base/folders.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- loading --------------------------------------------------------------------------------- */

static void root_state_load_offsets(const json_t *array, int64_t offsets[TOPIC_PARTITIONS_MAX])
{
    for (size_t i = 0; i < TOPIC_PARTITIONS_MAX; i++) {
        const json_t *offset = json_array_get(array, i);

        offsets[i] = json_is_integer(offset) ? json_integer_value(offset) : -1;
    }
}

static enum root_state root_state_take(const json_t *json, const char *path, const char *topic,
                                       struct merged *merged, struct error *error)
{
    const char *of = json_string_value(json_object_get(json, "topic"));
    struct error cause;

    if (!of) {
        error_set(error, "%s: expected what `blkin work --root` keeps there", path);
        return STATE_DAMAGED;
    }
    if (strcmp(of, topic) != 0) {
        error_set(error, "%s is of %s", path, of);
        return STATE_OF_ANOTHER;
    }
    if (!merged_add_document(merged, json_object_get(json, "statistics"), &cause)) {
        error_set(error, "%s: %s", path, cause.text);
        return STATE_DAMAGED;
    }
    return STATE_READ;
}

enum root_state root_state_load(const char *path, const char *topic, struct merged *merged,
                                int64_t offsets[TOPIC_PARTITIONS_MAX], struct error *error)
{
    enum root_state state;
    json_error_t cause;
    json_t *json;

    root_state_load_offsets(NULL, offsets);
    if (access(path, F_OK) != 0 && errno == ENOENT)
        return STATE_NONE;
    json = json_load_file(path, 0, &cause);
    if (!json) {
        error_set(error, "%s:%d: %s", path, cause.line, cause.text);
        return json_error_code(&cause) == json_error_out_of_memory ? STATE_NO_MEMORY
                                                                   : STATE_DAMAGED;
    }
    state = root_state_take(json, path, topic, merged, error);
    if (state == STATE_READ)
        root_state_load_offsets(json_object_get(json, "offsets"), offsets);
    json_decref(json);
    return state;
}

/* ---- saving ---------------------------------------------------------------------------------- */

/* A topic's name has nothing that JSON would have to escape: see kafka_url.h. */
char *root_state_text(const char *topic, const struct merged *merged,
                      const int64_t offsets[TOPIC_PARTITIONS_MAX], int64_t now_ns)
{
    char *document = merged_document(merged, now_ns);
    struct printer text = {.has_failed = !document};
    int last = TOPIC_PARTITIONS_MAX;

    while (last > 0 && offsets[last - 1] < 0)
        last--;
    print_string(&text, "{\"topic\":\"");
    print_string(&text, topic);
    print_string(&text, "\",\"offsets\":[");
    for (int i = 0; i < last; i++)
        print(&text, "%s%" PRId64, i ? "," : "", offsets[i]);
    print_string(&text, "],\n\"statistics\":");
    print_string(&text, document ? document : "");
    print_string(&text, "}\n");
    free(document);
    return print_end(&text);
}
