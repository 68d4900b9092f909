/* SPDX-License-Identifier: BSD-2-Clause */
#include "service.h"

#include "blkin.h"
#include "tracepoints/format/digits.h"
#include "tracepoints/format/put.h"

#include <errno.h>

const struct blkin_service *blkin_service;

void blkin_service_prepare(struct blkin_service *prepared, const char *name, const char *ip,
                           uint16_t port)
{
    const size_t ip_length = blkin_cut(ip, ip ? strlen(ip) : 0, SPAN_IP_MAX);
    char *at = prepared->text;

    at = blkin_put_bytes(at, ip, ip_length);
    at = blkin_put_short(at, port);
    at = blkin_put_length(at, ip_length);
    *at++ = '\0';
    prepared->name = (uint8_t)(at - prepared->text);
    at = blkin_put_string(at, name, SPAN_SERVICE_MAX);
    prepared->port = port;
    prepared->length = (uint8_t)(at - prepared->text);
}

/* A new service is written to another slot, because a thread may be reading the current one. A slot
 * is reused after three changes. */
static const struct blkin_service *service_in_slot(const char *name, const char *ip, uint16_t port)
{
    static struct blkin_service slots[4];
    static unsigned last;
    const unsigned slot = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED) % 4;

    blkin_service_prepare(&slots[slot], name, ip, port);
    return &slots[slot];
}

const struct blkin_service *blkin_make_default_service(void)
{
    const struct blkin_service *none = NULL,
                               *made = service_in_slot(program_invocation_short_name, NULL, 0);

    /* if another thread has set a service meanwhile, that one stays */
    if (__atomic_compare_exchange_n(&blkin_service, &none, made, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
        return made;
    return none;
}

void blkin_set_service(const char *name, const char *ip, uint16_t port)
{
    const struct blkin_service *service =
        name ? service_in_slot(name, ip, port)
             : service_in_slot(program_invocation_short_name, NULL, 0);

    __atomic_store_n(&blkin_service, service, __ATOMIC_RELEASE);
}
