/*
 * The head of a group of spans: their resource, and this program as the scope.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "otlp_parts.h"

#include "babeltrace-plugin/base/array.h"

#define RESOURCE_SPANS_RESOURCE PB_BYTES(1) /* of ResourceSpans */
#define RESOURCE_ATTRIBUTE      PB_BYTES(1)
#define SCOPE                   PB_BYTES(1) /* of ScopeSpans */
#define VALUE_ARRAY             PB_BYTES(5)

/* Writes an array of one text. */
static char *otlp_write_addresses(char *begin, struct text address, bool *cut)
{
    char *const at = otlp_begin_single(begin, RESOURCE_ATTRIBUTE, text_of("host.ip"));
    char *end;

    at[0] = OTLP_VALUE;
    at[2] = VALUE_ARRAY;
    at[4] = PB_BYTES(1);
    at[6] = OTLP_VALUE_TEXT;
    end = pb_put_text(at + 7, address, LIMIT_NAME, cut);
    end = pb_end(at + 5, end);
    end = pb_end(at + 3, end);
    end = pb_end(at + 1, end);
    return pb_end(begin + 1, end);
}

static char *otlp_write_resource_text(char *begin, const char *key, struct text value, bool *cut)
{
    char *at;

    if (!value.length)
        return begin;
    at = otlp_begin_single(begin, RESOURCE_ATTRIBUTE, text_of(key));
    return pb_end(begin + 1, otlp_put_text_value(at, value, LIMIT_NAME, cut));
}

static char *otlp_write_resource(char *at, const struct resource *resource, bool *cut)
{
    char *const length = at + 1;

    *at = RESOURCE_SPANS_RESOURCE;
    at += 2;
    at = otlp_write_resource_text(at, "service.name", resource->service, cut);
    at = otlp_write_resource_text(at, "service.version", resource->version, cut);
    at = otlp_write_resource_text(at, "host.name", resource->host, cut);
    if (resource->ip.length)
        at = otlp_write_addresses(at, resource->ip, cut);
    return pb_end(length, at);
}

/* Writes the resource and scope of a foreign span unchanged. */
static char *otlp_write_foreign_head(char *at, const struct resource *resource)
{
    *at = OTLP_RESOURCE_SPANS;
    at = text_copy(at + 1 + PB_PADDED, resource->whole);
    *at = OTLP_SCOPE_SPANS;
    return text_copy(at + 1 + PB_PADDED, resource->scope);
}

static char *otlp_write_own_head(char *at, const struct resource *resource, bool *cut)
{
    static const char name[] = "blkin", version[] = BLKIN_RELEASE;
    char *length;

    *at = OTLP_RESOURCE_SPANS;
    at = otlp_write_resource(at + 1 + PB_PADDED, resource, cut);
    *at = OTLP_SCOPE_SPANS;
    at += 1 + PB_PADDED;
    *at = SCOPE;
    length = at + 1;
    at = PB_PUT_LITERAL(at + 2, PB_BYTES(1), name);
    at = PB_PUT_LITERAL(at, PB_BYTES(2), version);
    return pb_end(length, at);
}

size_t otlp_head_size_limit(const struct resource *resource)
{
    return 512 + resource->whole.length + resource->scope.length +
           PB_TEXT_MAX(text_cut(resource->service, LIMIT_NAME).length) +
           PB_TEXT_MAX(text_cut(resource->version, LIMIT_NAME).length) +
           PB_TEXT_MAX(text_cut(resource->host, LIMIT_NAME).length);
}

bool otlp_make_head(struct head *head, const struct resource *resource)
{
    const size_t needed = otlp_head_size_limit(resource) + resource->service.length +
                          resource->version.length + resource->host.length + resource->ip.length +
                          resource->whole.length + resource->scope.length;
    char *at;

    if (!ARRAY_FITS(head->data, head->room, needed))
        return false;
    head->cut = false;
    at = resource->message ? otlp_write_foreign_head(head->data, resource)
                           : otlp_write_own_head(head->data, resource, &head->cut);
    head->length = (size_t)(at - head->data);
    head->of.message = resource->message; /* non-NULL: the resource is foreign */
    head->of.whole = text_copy_to(&at, resource->whole);
    head->of.scope = text_copy_to(&at, resource->scope);
    head->of.service = text_copy_to(&at, resource->service);
    head->of.version = text_copy_to(&at, resource->version);
    head->of.host = text_copy_to(&at, resource->host);
    head->of.ip = text_copy_to(&at, resource->ip);
    return true;
}
