/*
 * Macros of other projects' headers for cppcheck (make lint), which does not read these headers;
 * and __CPPCHECK__, for code that cppcheck cannot parse.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#define json_array_foreach(array, i, item)     for (i = 0, item = at(array, i); item; i++)
#define json_object_foreach(object, key, item) for (key = item = at(object); key; key = at(object))
#define cds_list_for_each_entry(entry, list, in_list) \
    for (entry = at(list); entry; entry = at(list))
#define cds_list_for_each_entry_safe(entry, next, list, in_list) \
    for (entry = next = at(list); entry; entry = next)
#define cds_hlist_for_each_entry_2(entry, list, in_list) \
    for (entry = at(list); entry; entry = at(list))
#define LTTNG_UST_TRACEPOINT_EVENT(...)
#define LTTNG_UST_TRACEPOINT_LOGLEVEL(...)
#define __CPPCHECK__
