/*
 * The trace context that a client puts at the end of an export name.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef EXPORT_NAME_H
#define EXPORT_NAME_H

#include <blkin/blkin_context.h>

#include <stdbool.h>
#include <stddef.h>

/*
 * Does the export name end with a W3C trace context? Either the whole name is one, or it ends with
 * "traceparent=" and one, at its beginning or after "/" or "?":
 *
 *     00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
 *     traceparent=00-4bf9...-01
 *     disk.img/traceparent=00-4bf9...-01
 *
 * Then *context is set, and *length to that of the name without it. Else nothing is changed.
 */
bool export_name_context(const char *name, size_t *length, struct blkin_context *context);

#endif /* EXPORT_NAME_H */
