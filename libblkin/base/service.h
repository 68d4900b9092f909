/*
 * The service in an event: that of the process, or of a span.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SERVICE_H
#define BLKIN_SERVICE_H

#include <stddef.h>
#include <stdint.h>

/* Longer texts are cut. */
#define SPAN_SERVICE_MAX 72
#define SPAN_IP_MAX      46

/* A service as the bytes that end an event: the end of the packed text, NUL, the name, NUL. */
struct blkin_service {
    uint16_t port;
    uint8_t length; /* of the text; 0: no service */
    uint8_t name;   /* offset of the name in the text */
    char text[128];
};

/* A span contains a copy, whose size is rounded up to a multiple of this. */
#define SERVICE_ALIGN 4
_Static_assert(sizeof(struct blkin_service) % SERVICE_ALIGN == 0, "a rounded size is within it");

static inline const char *blkin_service_name(const struct blkin_service *service)
{
    return service->text + service->name;
}

/* Fills in the service. name and ip may be NULL. */
void blkin_service_prepare(struct blkin_service *service, const char *name, const char *ip,
                           uint16_t port);

/* The service of spans without a service of their own; NULL before its first use. */
extern __attribute__((visibility("hidden"))) const struct blkin_service *blkin_service;

/* Returns the service. If there is none, makes one that has the program's name. */
const struct blkin_service *blkin_make_default_service(void);

static inline const struct blkin_service *blkin_default_service(void)
{
    const struct blkin_service *service = __atomic_load_n(&blkin_service, __ATOMIC_ACQUIRE);

    return __builtin_expect(service != NULL, 1) ? service : blkin_make_default_service();
}

#endif
