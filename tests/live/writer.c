/*
 * Makes numbered spans at a steady rate: "n" with the tag i = FIRST, FIRST + 1, ... The file
 * PROGRESS always has the number of spans so far, as 8 bytes. Then follows, likewise, the number of
 * spans that a session or a ring recorded.
 *
 *     writer FIRST COUNT PER_SECOND PROGRESS [HOLD]
 *
 * With HOLD, the writer makes all but the first and the last span while there is a file HOLD. With
 * the first and the last span, the reader can see that spans between them are missing.
 *
 * SIGTERM ends the writer between two spans. SIGUSR1 has it kill itself there, because a record
 * that is not complete would stop the session for ever: see test-stall.sh.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <blkin/blkin.h>

#include "waits.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define WRITER_TICK_NS 1000000

static volatile sig_atomic_t received_signal; /* the signal that arrived; 0: none */

static void on_signal(int number)
{
    received_signal = number;
}

static void wait_until(const char *hold, bool is_there)
{
    while (!received_signal && hold && (access(hold, F_OK) == 0) != is_there)
        pause_us(10000);
}

static void end_after_signal(void)
{
    if (received_signal == SIGUSR1)
        (void)raise(SIGKILL);
    if (received_signal)
        exit(0);
}

static bool make(int64_t i)
{
    struct blkin_span span;
    bool is_recorded;

    blkin_span_begin(&span, "n", BLKIN_INTERNAL, NULL);
    is_recorded = blkin_span_is_recorded(&span);
    blkin_span_tag_int64(&span, "i", i);
    blkin_span_end(&span);
    return is_recorded;
}

int main(int argc, char *argv[])
{
    const bool is_right = argc == 5 || argc == 6;
    const int64_t first = is_right ? atoll(argv[1]) : 0, count = is_right ? atoll(argv[2]) : 0;
    const double per_tick = is_right ? atof(argv[3]) * WRITER_TICK_NS / 1e9 : 0;
    const int file = is_right ? open(argv[4], O_RDWR | O_CREAT, 0600) : -1;
    const char *hold = argc == 6 ? argv[5] : NULL;
    struct {
        volatile int64_t made, recorded;
    } * progress;
    struct timespec next;

    if (file < 0 || ftruncate(file, sizeof(*progress)) < 0 || blkin_init() != 0)
        return 2;
    progress = mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (progress == MAP_FAILED)
        return 2;
    progress->made = progress->recorded = 0;
    blkin_set_service("writer", "10.0.0.1", 6789);
    (void)signal(SIGTERM, on_signal);
    (void)signal(SIGUSR1, on_signal);
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (int64_t tick = 1; progress->made < count; tick++) {
        next.tv_nsec += WRITER_TICK_NS;
        if (next.tv_nsec >= 1000000000) {
            next.tv_nsec -= 1000000000;
            next.tv_sec++;
        }
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL) != 0)
            end_after_signal();
        while (progress->made < count && (double)progress->made < (double)tick * per_tick) {
            if (progress->made == 1)
                wait_until(hold, true);
            if (progress->made == count - 1)
                wait_until(hold, false);
            end_after_signal();
            if (make(first + progress->made))
                progress->recorded++;
            progress->made++;
        }
    }
    return 0;
}
