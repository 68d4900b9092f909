/*
 * Notes the alarms of each program that were heard.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "heard.h"

/* By so much, an alarm may be later than an alarm with a larger number. */
#define HEARD_AGAIN_NS UINT64_C(1000000000)

void heard_begin(struct heard *heard)
{
    heard->is_reset = true;
    for (size_t i = 0; i < heard->count; i++) {
        struct heard_program *program = &heard->programs[i];

        program->before = program->last;
        program->before_ns = program->last_ns;
        program->is_known = true;
        program->heard_since = 0;
    }
}

void heard_look(struct heard *heard)
{
    for (size_t i = 0; i < heard->count; i++) {
        heard->programs[i].due = heard->programs[i].last;
        heard->programs[i].heard_due = heard->programs[i].heard_since;
    }
}

/* Returns the number of missing alarms after `before`, up to `last`. count: the heard ones. */
static uint32_t heard_missing(const struct heard_program *program, uint32_t last, uint32_t count)
{
    const uint32_t since = last - program->before;

    return since > count ? since - count : 0;
}

static uint32_t heard_missing_of_all(const struct heard_program *program)
{
    return heard_missing(program, program->last, program->heard_since);
}

static uint32_t heard_lost_of(const struct heard_program *program)
{
    return heard_missing(program, program->due, program->heard_due);
}

/* Returns the number of missing alarms that are not lost yet. */
static uint32_t heard_awaited(const struct heard_program *program)
{
    const uint32_t missing = heard_missing_of_all(program), lost = heard_lost_of(program);

    return missing > lost ? missing - lost : 0;
}

static bool heard_is_of(const struct heard_program *program, const struct alarm *alarm)
{
    return program->pid == alarm->pid && program->pid_ns == alarm->pid_ns &&
           program->user == alarm->user;
}

/* Begins to count a program. Its first heard alarm may have any number. */
static void heard_set(struct heard *heard, struct heard_program *program, const struct alarm *alarm)
{
    const uint64_t before_ns = heard_is_of(program, alarm) ? program->before_ns : 0;

    heard->lost += heard_missing_of_all(program);
    *program = (struct heard_program){.user = alarm->user,
                                      .pid = alarm->pid,
                                      .pid_ns = alarm->pid_ns,
                                      .last = alarm->sequence - 1,
                                      .before = alarm->sequence - 1,
                                      .before_ns = before_ns,
                                      .due = alarm->sequence - 1};
}

static struct heard_program *heard_program_of(struct heard *heard, const struct alarm *alarm)
{
    struct heard_program *oldest = &heard->programs[0];

    for (size_t i = 0; i < heard->count; i++) {
        if (heard_is_of(&heard->programs[i], alarm))
            return &heard->programs[i];
        if (heard->programs[i].last_ns < oldest->last_ns)
            oldest = &heard->programs[i];
    }
    if (heard->count < HEARD_MAX)
        oldest = &heard->programs[heard->count++];
    heard_set(heard, oldest, alarm);
    return oldest;
}

/*
 * Returns true if another process has the pid now. Then a number that the earlier process has used
 * comes again, with a later time. An alarm that only reports suppressed alarms has the time 0.
 */
static bool heard_is_another(const struct heard *heard, const struct heard_program *program,
                             const struct alarm *alarm)
{
    if (heard->is_reset && program->is_known)
        return alarm->sequence <= program->before && alarm->monotonic_ns > program->before_ns;
    return alarm->sequence <= program->last &&
           alarm->monotonic_ns > program->last_ns + HEARD_AGAIN_NS;
}

bool heard_alarm(struct heard *heard, const struct alarm *alarm)
{
    struct heard_program *program = heard_program_of(heard, alarm);

    if (heard_is_another(heard, program, alarm))
        heard_set(heard, program, alarm);
    if (heard->is_reset && !program->is_known && program->before_ns &&
        alarm->monotonic_ns <= program->before_ns)
        return false; /* an alarm of the earlier process */
    if (alarm->sequence > program->before) {
        program->heard_since++;
        program->heard_due += alarm->sequence <= program->due;
    } else if (!program->is_known) { /* an earlier alarm, from the ring of another CPU */
        const bool is_due = program->due > program->before;

        /* true: `due` is not changed, as its missing alarms may already count as lost */
        program->heard_due = is_due ? program->heard_due + 1 : 0;
        program->due = is_due ? program->due : alarm->sequence - 1;
        program->before = alarm->sequence - 1;
        program->heard_since++;
    } else if (heard->is_reset) {
        return false;
    }
    if (alarm->sequence > program->last)
        program->last = alarm->sequence;
    if (alarm->monotonic_ns > program->last_ns)
        program->last_ns = alarm->monotonic_ns;
    return true;
}

void heard_end(struct heard *heard)
{
    heard->is_reset = false;
}

uint64_t heard_lost(const struct heard *heard)
{
    uint64_t lost = heard->lost;

    for (size_t i = 0; i < heard->count; i++)
        lost += heard_lost_of(&heard->programs[i]);
    return lost;
}

json_t *heard_json(const struct heard *heard)
{
    json_t *list = json_array();

    for (size_t i = 0; list && i < heard->count; i++) {
        const struct heard_program *program = &heard->programs[i];

        (void)json_array_append_new(
            list,
            json_pack("[I, I, I, I, I, I]", (json_int_t)program->user, (json_int_t)program->pid,
                      (json_int_t)program->last, (json_int_t)program->last_ns,
                      (json_int_t)heard_awaited(program), (json_int_t)program->pid_ns));
    }
    return list;
}

void heard_read(struct heard *heard, const json_t *json)
{
    const json_t *entry;
    size_t i;

    json_array_foreach(json, i, entry)
    {
        if (heard->count == HEARD_MAX)
            break;
        heard->programs[heard->count++] = (struct heard_program){
            .user = (uint32_t)json_integer_value(json_array_get(entry, 0)),
            .pid = (uint32_t)json_integer_value(json_array_get(entry, 1)),
            .last = (uint32_t)json_integer_value(json_array_get(entry, 2)),
            .last_ns = (uint64_t)json_integer_value(json_array_get(entry, 3)),
            .pid_ns = (uint32_t)json_integer_value(json_array_get(entry, 5))};
        heard->programs[heard->count - 1].before = heard->programs[heard->count - 1].last;
        heard->programs[heard->count - 1].is_known = true;
        heard->lost += (uint64_t)json_integer_value(json_array_get(entry, 4));
    }
}
