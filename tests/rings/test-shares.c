/*
 * The memory of users: as much as they need, at most their share, and none when they are gone.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "holding.h"

/* The holder replaces a small memory by a large one only if the user writes much. */
TEST(test_large)
{
    uint64_t first;
    pid_t service, idle, busy;

    options.size = (struct memory_size){100, 1 << 20, 1 << 16};
    options.max_bytes = 1 << 30;
    service = begin();
    idle = start_keeper(0, keep_idle);
    DRAIN_UNTIL(shared->counts.made == 1 && store.count == 1);
    first = shared->counts.bytes;
    CHECK(first < UINT64_C(16) << 20);
    busy = start_keeper(0, keep_busy);
    DRAIN_UNTIL(shared->counts.made >= 2 && shared->came >= 2);
    DRAIN_UNTIL(shared->went >= 1 || (store.count >= 1 && head_of(0).state == RING_REPLACED));
    CHECK(result_of(start_program(0, use_once)) == 0);
    DRAIN_UNTIL(shared->counts.bytes == memory_bytes(&options.size) && shared->counts.made == 3);
    end_program(idle);
    end_program(busy);
    end_test(service);
}

/* The larger memory comes before the holder's next tick, which the beats of the first memory show.
 * By chance, a tick may come first. */
TEST(test_early)
{
    bool is_early = false;

    for (int i = 0; i < 20 && !is_early; i++) {
        pid_t service, busy;

        options.size = (struct memory_size){2, 1 << 23, 1 << 16};
        options.max_bytes = 1 << 30;
        service = begin();
        busy = start_program(0, keep_busy);
        DRAIN_UNTIL(store.count > 0 && head_of(0).state == RING_REPLACED);
        is_early = head_of(0).beats == 0;
        end_program(busy);
        CHECK(finish(service, SIGTERM) == 0);
        forget_all();
    }
    CHECK(is_early);
}

#define PASSING 100 /* users */

/* Many users come and go: the holder frees their memories, and keeps that of a user who stays. */
TEST(test_users_that_go)
{
    pid_t service, present, pids[PASSING];

    if (!is_root)
        return;
    users = PASSING;
    options.max_users = PASSING;
    options.idle_ms = 100;
    service = begin();
    present = start_keeper(0, keep_idle);
    for (unsigned i = 1; i < PASSING; i++)
        pids[i] = start_program(i, keep_idle);
    DRAIN_UNTIL(got_by_all() == PASSING);
    CHECK(shared->came >= PASSING); /* more if a slow program opened its memory too late */
    for (unsigned i = 1; i < PASSING; i++)
        end_program(pids[i]);
    DRAIN_UNTIL(shared->counts.bytes == memory_bytes(&small) && shared->went == shared->came - 1);
    DRAIN_UNTIL(store.count == 1);
    CHECK(shared->counts.users == 1 && head_of(0).state == RING_ON);
    CHECK(result_of(start_program(1, use_one)) == 0); /* a user comes back */
    end_program(present);
    DRAIN_UNTIL(shared->counts.bytes == 0 && store.count == 0);
    end_test(service);
}

/* One user has all the room: the holder takes room back for new users. */
TEST(test_shares)
{
    pid_t service, pids[USERS];

    if (!is_root)
        return;
    options.size = (struct memory_size){2, 1 << 24, 1 << 16};
    options.max_bytes = UINT64_C(3) << 24;
    service = begin();
    pids[0] = start_keeper(0, keep_busy);
    DRAIN_UNTIL(shared->counts.made == 2);
    for (unsigned i = 1; i < USERS; i++)
        pids[i] = start_keeper(i, keep_busy);
    /* four users have their first memory, one user has less than before */
    DRAIN_UNTIL(shared->counts.users == USERS &&
                shared->counts.bytes <= options.max_bytes - options.max_bytes / 8);
    CHECK(shared->counts.made > USERS + 1);
    for (unsigned i = 0; i < USERS; i++)
        end_program(pids[i]);
    end_test(service);
}

CHECK_MAIN_WITH(prepare(), clean_up())
