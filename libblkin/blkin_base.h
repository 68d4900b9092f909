/*
 * The common part of BlkKin's headers: the version, the start.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_BASE_H_
#define BLKIN_BASE_H_

#include <stdint.h>

#if !defined(BLKIN_DISABLE) && !(defined(__linux__) && defined(__LP64__) && defined(__GLIBC__))
#error "BlkKin runs on 64-bit Linux with glibc; elsewhere, build with -DBLKIN_DISABLE"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The version of these headers. A program runs with the library it was built against and with every
 * later one of the same BLKIN_VERSION_MAJOR, from 1 on: see doc/compatibility.md.
 */
#define BLKIN_VERSION_MAJOR 0
#define BLKIN_VERSION_MINOR 9
#define BLKIN_VERSION_PATCH 0

/* The version as one number, for comparisons: 10203 is version 1.2.3. */
#define BLKIN_VERSION \
    (BLKIN_VERSION_MAJOR * 10000 + BLKIN_VERSION_MINOR * 100 + BLKIN_VERSION_PATCH)

#ifndef BLKIN_PUBLIC
#define BLKIN_PUBLIC __attribute__((visibility("default")))
#endif

struct blkin_context;

/* BLKIN_API_ and BLKIN_ELSE_ are around the declaration of a library function. With -DBLKIN_DISABLE
 * the function is inline and returns `value`. The struct is declared again, so that a semicolon can
 * follow the body. */
#ifndef BLKIN_DISABLE
#define BLKIN_API_ BLKIN_PUBLIC
#define BLKIN_ELSE_(value)
#else
#define BLKIN_API_ static inline
#define BLKIN_ELSE_(value) \
    {                      \
        return value;      \
    }                      \
    struct blkin_context
#endif

/*
 * Opens the library, and loads LTTng's provider if a session daemon runs or BLKIN_LTTNG=yes is set.
 * Call this function once, early, from main(), before threads start: it takes a lock, and no other
 * thread may fork meanwhile. Registering with a session daemon takes a few ms, 1 s at most, or 3 s
 * if there are threads. A busy agent takes up to 0.3 s. A program that does not find the folder of
 * the agent's socket now never looks for an agent again.
 *
 * Without this call, a program with the shared library loads LTTng before main() under the same
 * conditions. Its first record then waits only 5 ms for the agent. A program with libblkin.a, or
 * one that had threads when the library was loaded, gets LTTng only by this call. Always returns 0;
 * keeps errno. A second call does nothing.
 */
BLKIN_API_ int blkin_init(void) BLKIN_ELSE_(0);

/* Prepares the calling thread for recording, and opens the library if that is not done. The first
 * record of a thread allocates memory: call this function before a signal handler may record. No
 * call has to undo this one, and a second call does nothing. */
BLKIN_API_ void blkin_init_thread(void) BLKIN_ELSE_();

#ifdef __cplusplus
}
#endif

#endif /* BLKIN_BASE_H_ */
