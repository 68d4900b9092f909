/*
 * The memory of users: as much as they need, at most their share, and none when they are gone.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "holding.h"
#include "tools/rings/shares.h"

/* The bytes of a memory of two CPUs with 2^shift bytes of events each. */
#define SHARE_BYTES(shift) (2 * RING_PAGE + 2 * ((UINT64_C(1) << (shift)) + (1 << 16)))

static struct held held_of(uint32_t payer, unsigned shift, bool is_busy)
{
    const struct memory_size size = {2, UINT64_C(1) << shift, 1 << 16};

    return (struct held){
        {.size = size, .bytes = SHARE_BYTES(shift)}, .payer = payer, .is_busy = is_busy};
}

/* A first memory has 2^22 bytes for each CPU, the largest one 2^24. */
TEST(test_division)
{
    static const struct {
        uint64_t max_bytes, level;
        unsigned shifts[6]; /* of each memory: its new size; 0: none */
    } cases[] = {{90074550, UINT64_MAX, {22, 24, 20, 24, 18, 24}}, /* all get what they want */
                 {89316205, SHARE_BYTES(24), {22, 24, 20, 24, 0, 23}},
                 {64000000, 22617856, {22, 23, 20, 23, 0, 23}},
                 {8000000, 2333333, {0, 22, 0, 22, 0, 0}}};
    static const struct share expected[] = {
        {3, 2, SHARE_BYTES(16) + SHARE_BYTES(25), SHARE_BYTES(18) + SHARE_BYTES(24)},
        {5, 1, SHARE_BYTES(22), SHARE_BYTES(24)},
        {7, 2, SHARE_BYTES(22) + SHARE_BYTES(18), SHARE_BYTES(22) + SHARE_BYTES(20)}};
    struct held list[] = {held_of(7, 22, false), held_of(5, 22, true),  held_of(7, 18, true),
                          held_of(9, 24, true),  held_of(3, 16, false), held_of(3, 25, false)};
    struct holder_options wide = {.size = {2, 1 << 24, 1 << 16}};
    struct shares shares;

    list[3].is_left = true;
    for (unsigned i = 0; i < 5; i++)
        list[i].next = &list[i + 1];
    for (unsigned at = 0; at < 4; at++) {
        wide.max_bytes = cases[at].max_bytes;
        wide.max_users = 4 * (at + 1);
        CHECK(shares_divide(&shares, list, &wide) && shares.count == 3);
        CHECK(memcmp(shares.list, expected, sizeof(expected)) == 0);
        CHECK(shares.level == cases[at].level);
        for (unsigned i = 0; i < 6; i++)
            CHECK(shares_size(&shares, &list[i], &wide).event_bytes ==
                  (UINT64_C(1) << cases[at].shifts[i] & ~UINT64_C(1)));
        /* a fourth part of 7/8 of the bytes, and of the users */
        CHECK(shares_allow(&shares, 1, UINT64_MAX, &wide));
        CHECK(shares_allow(&shares, 7, 14000000 - expected[2].bytes, &wide) == (at == 2));
        CHECK(!shares_allow(&shares, 7, 14000001 - expected[2].bytes, &wide));
        shares_free(&shares);
    }
    CHECK(shares_first_size(&(struct memory_size){200, 1 << 20, 1 << 16}).event_bytes == 1 << 16);
}

/* The holder replaces a small memory by larger ones, in steps of four, only if the user writes
 * much. The second memory comes before the holder's next tick, which the beats of the first memory
 * show. By chance, a tick may come first. */
TEST(test_growth)
{
    const struct memory_size first = {65, 1 << 16, 1 << 16};
    pid_t service, idle, busy;
    bool is_early = false;

    for (int i = 0; i < 100 && !is_early; i++) {
        options.size = (struct memory_size){65, 1 << 19, 1 << 16};
        options.max_bytes = 1 << 30;
        service = begin();
        idle = start_keeper(0, keep_idle);
        DRAIN_UNTIL(store.count == 1 && shared->counts.bytes == memory_bytes(&first));
        busy = start_program(0, keep_busy);
        DRAIN_UNTIL(!store.count || shared->counts.made == 3 || head_of(0).state == RING_REPLACED);
        is_early = store.count && head_of(0).state == RING_REPLACED && head_of(0).beats == 0;
        CHECK(result_of(start_program(0, use_once)) == 0);
        if (i == 0)
            DRAIN_UNTIL(shared->counts.made == 3 && shared->went == 2 && shared->came == 3 &&
                        shared->counts.bytes == memory_bytes(&options.size));
        end_program(idle);
        end_program(busy);
        end_test(service);
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
