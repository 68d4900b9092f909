/*
 * Makes allocations fail: those of the objects that are linked with it and with starve_wrap of the
 * Makefile (ld --wrap), and no others. So libc, GLib, curl and babeltrace2 go on as ever.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_PLUGIN_STARVE_H
#define TESTS_PLUGIN_STARVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Counted from all threads; set while there is one. Others read by __atomic_load_n(). */
struct starve {
    uint64_t fail_at; /* the allocation that fails, from 1; 0: none */
    bool and_after;   /* and all that come after it */
    size_t min_size;  /* smaller ones do not fail and are not in the count */
    uint64_t count;   /* allocations so far, failed ones too */
    uint64_t failed;
    int64_t live; /* blocks not freed yet */
};

extern struct starve starve;

#endif
