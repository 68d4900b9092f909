/*
 * The service of the process.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "service.h"

#include "blkin.h"
#include "tracepoints/format/digits.h"
#include "tracepoints/format/put.h"

#include <errno.h>

const struct blkin_service *blkin_service;

void blkin_service_prepare(struct blkin_service *prepared, const struct blkin_endpoint *endpoint)
{
    const size_t ip_length = blkin_cut(endpoint->ip, blkin_length_(endpoint->ip), SPAN_IP_MAX);
    char *at = prepared->text;

    at = blkin_put_bytes(at, endpoint->ip, ip_length);
    at = blkin_put_short(at, (uint16_t)endpoint->port);
    at = blkin_put_length(at, ip_length);
    *at++ = '\0';
    prepared->name = (uint8_t)(at - prepared->text);
    at = blkin_put_string(at, endpoint->name, SPAN_SERVICE_MAX);
    prepared->port = (uint16_t)endpoint->port;
    prepared->length = (uint8_t)(at - prepared->text);
}

/* Never changed in place: a thread may be reading it. A slot is used again after 3 changes. */
static const struct blkin_service *prepare(const struct blkin_endpoint *endpoint)
{
    static struct blkin_service slots[4];
    static unsigned last;
    const unsigned slot = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED) % 4;
    const struct blkin_endpoint by_name = {.ip = "", .name = program_invocation_short_name};

    blkin_service_prepare(&slots[slot], endpoint ? endpoint : &by_name);
    return &slots[slot];
}

const struct blkin_service *blkin_make_service(void)
{
    const struct blkin_service *none = NULL, *made = prepare(NULL);

    /* a blkin_set_service() at the same time has the last word */
    if (__atomic_compare_exchange_n(&blkin_service, &none, made, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
        return made;
    return none;
}

void blkin_set_service(const struct blkin_endpoint *endpoint)
{
    __atomic_store_n(&blkin_service, prepare(endpoint), __ATOMIC_RELEASE);
}
