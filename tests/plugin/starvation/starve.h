/*
 * Makes allocations fail in the objects that the Makefile links with starve_wrap (ld --wrap). The
 * allocations of libc, GLib, curl and babeltrace2 do not fail.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_PLUGIN_STARVE_H
#define TESTS_PLUGIN_STARVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All threads count. A test sets fail_at, fails_after and min_size only while no other thread
 * allocates. A test that reads a count meanwhile uses __atomic_load_n(). */
struct starve {
    uint64_t fail_at; /* the allocation that fails, from 1; 0: none */
    bool fails_after; /* all later ones fail, too */
    size_t min_size;  /* smaller allocations do not fail or count */
    uint64_t count;   /* allocations so far, failed ones too */
    uint64_t failed;
    int64_t live; /* blocks not freed yet */
};

extern struct starve starve;

#endif
