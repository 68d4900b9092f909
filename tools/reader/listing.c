/* Lists the live sessions of a relay daemon by babeltrace2's plugin.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "listing.h"

#include "graph.h"

#include <babeltrace2/babeltrace.h>

#include <stdio.h>
#include <string.h>

static const char *listing_text(const bt_value *map, const char *key)
{
    const bt_value *value = bt_value_map_borrow_entry_value_const(map, key);

    return value && bt_value_is_string(value) ? bt_value_string_get(value) : "";
}

static int64_t listing_integer(const bt_value *map, const char *key)
{
    const bt_value *value = bt_value_map_borrow_entry_value_const(map, key);

    if (value && bt_value_is_signed_integer(value))
        return bt_value_integer_signed_get(value);
    return value && bt_value_is_unsigned_integer(value)
               ? (int64_t)bt_value_integer_unsigned_get(value)
               : 0;
}

static void listing_take(const bt_value *sessions, struct listing *listing)
{
    const uint64_t count = bt_value_array_get_length(sessions);

    for (uint64_t i = 0; i < count && listing->count < LISTED_MAX; i++) {
        const bt_value *map = bt_value_array_borrow_element_by_index_const(sessions, i);
        struct listed_session *session = &listing->sessions[listing->count++];

        (void)snprintf(session->host, sizeof(session->host), "%s",
                       listing_text(map, "target-hostname"));
        (void)snprintf(session->name, sizeof(session->name), "%s",
                       listing_text(map, "session-name"));
        session->viewers = listing_integer(map, "client-count");
        session->streams = listing_integer(map, "stream-count");
    }
    listing->has_more = count > LISTED_MAX;
}

static bt_query_executor *listing_query(const char *url)
{
    const bt_component_class_source *live =
        graph_ctf()
            ? bt_plugin_borrow_source_component_class_by_name_const(graph_ctf(), "lttng-live")
            : NULL;
    bt_value *params = bt_value_map_create();
    bt_query_executor *query = NULL;

    if (live && params &&
        bt_value_map_insert_string_entry(params, "url", url) == BT_VALUE_MAP_INSERT_ENTRY_STATUS_OK)
        query = bt_query_executor_create(bt_component_class_source_as_component_class_const(live),
                                         "sessions", params);
    bt_value_put_ref(params);
    return query;
}

bool listing_ask(const char *url, struct listing *listing)
{
    const bt_value *sessions = NULL;
    bt_query_executor *query = listing_query(url);
    const bool is_answered =
        query && bt_query_executor_query(query, &sessions) == BT_QUERY_EXECUTOR_QUERY_STATUS_OK;

    if (is_answered)
        listing_take(sessions, listing);
    else
        bt_current_thread_clear_error();
    bt_value_put_ref(sessions);
    bt_query_executor_put_ref(query);
    return is_answered;
}

static bool listing_fill(const void *order, void *result)
{
    return listing_ask(order, result);
}

const struct job listing_job = {.name = "live-sessions",
                                .fill = listing_fill,
                                .result_size = sizeof(struct listing),
                                .stays = true};

bool listing_has(const struct listing *listing, const char *host, const char *session)
{
    for (int i = 0; i < listing->count; i++) {
        if (strcmp(listing->sessions[i].host, host) == 0 &&
            strcmp(listing->sessions[i].name, session) == 0)
            return true;
    }
    return listing->has_more;
}
