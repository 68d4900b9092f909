/*
 * Metrics of workers, written. Numbers of fields: opentelemetry/proto/metrics/v1/metrics.proto.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "otlp_metrics.h"

#include "tools/otlp/otlp_write.h"

/* What is written around a data point, and around a message, at most; without texts. */
#define POINT_MAX 256U
#define FRAME_MAX 1024U

#define TEMPORALITY_DELTA 1

static char *end_of(const struct otlp_metrics_writer *writer)
{
    return writer->buffer->data + writer->buffer->length;
}

static void set_end(struct otlp_metrics_writer *writer, const char *at)
{
    writer->buffer->length = (size_t)(at - writer->buffer->data);
}

/* ---- messages and metrics -------------------------------------------------------------------- */

static bool begin_message(struct otlp_metrics_writer *writer)
{
    char *at, *part;

    writer->buffer->length = 0;
    if (!buffer_reserve(writer->buffer, FRAME_MAX + 2 * PB_TEXT_MAX(OTLP_METRICS_NAME_MAX)))
        return false;
    at = writer->buffer->data;
    at = otlp_begin(at, PB_BYTES(1), &writer->resource_metrics, writer->buffer->data);
    *at++ = PB_BYTES(1);
    part = at++;
    at = otlp_put_attribute(at, PB_BYTES(1), "service.name", text_of("blkin-work"));
    at = otlp_put_attribute(at, PB_BYTES(1), "service.instance.id", text_of(writer->instance));
    at = otlp_put_attribute(at, PB_BYTES(1), "messaging.consumer.group.name",
                            text_of(writer->group));
    at = pb_end(part, at);
    at = otlp_begin(at, PB_BYTES(2), &writer->scope_metrics, writer->buffer->data);
    *at++ = PB_BYTES(1);
    part = at++;
    at = otlp_put_text(at, PB_BYTES(1), text_of("blkin"));
    set_end(writer, pb_end(part, at));
    writer->has_message = true;
    return true;
}

static void end_metric(struct otlp_metrics_writer *writer)
{
    if (writer->name) {
        otlp_end(writer->buffer->data, writer->data, writer->buffer->length);
        otlp_end(writer->buffer->data, writer->metric, writer->buffer->length);
    }
    writer->name = NULL;
}

static bool end_message(struct otlp_metrics_writer *writer)
{
    end_metric(writer);
    otlp_end(writer->buffer->data, writer->scope_metrics, writer->buffer->length);
    otlp_end(writer->buffer->data, writer->resource_metrics, writer->buffer->length);
    writer->has_message = false;
    return writer->emit(writer->context, writer->buffer->data, writer->buffer->length);
}

bool otlp_metrics_end(struct otlp_metrics_writer *writer, bool is_needed)
{
    if (!writer->has_message && is_needed && !begin_message(writer))
        return false;
    return !writer->has_message || end_message(writer);
}

static void begin_metric(struct otlp_metrics_writer *writer, const struct metric *metric)
{
    static const char tags[] = {[METRIC_COUNTER] = PB_BYTES(7),
                                [METRIC_SUM] = PB_BYTES(7),
                                [METRIC_GAUGE] = PB_BYTES(5),
                                [METRIC_HISTOGRAM] = PB_BYTES(10)};
    char name[64], *at;

    (void)snprintf(name, sizeof(name), "%s%s", metric->prefix, metric->name);
    at = otlp_begin(end_of(writer), PB_BYTES(2), &writer->metric, writer->buffer->data);
    at = otlp_put_text(at, PB_BYTES(1), text_of(name));
    at = otlp_put_text(at, PB_BYTES(3), text_of(metric->unit));
    at = otlp_begin(at, tags[metric->shape], &writer->data, writer->buffer->data);
    if (metric->shape != METRIC_GAUGE) {
        *at++ = PB_VARINT(2);
        *at++ = TEMPORALITY_DELTA;
    }
    if (metric->shape == METRIC_COUNTER || metric->shape == METRIC_SUM) {
        *at++ = PB_VARINT(3); /* is_monotonic */
        *at++ = metric->shape == METRIC_COUNTER;
    }
    set_end(writer, at);
    writer->name = metric->name;
}

/* Makes room for a data point of this metric: in another message, if this one is full. */
static bool metrics_make_room(struct otlp_metrics_writer *writer, const struct metric *metric,
                              size_t size)
{
    if (writer->name != metric->name)
        end_metric(writer);
    size += FRAME_MAX;
    if (writer->has_message && writer->buffer->length + size > OTLP_METRICS_MESSAGE_MAX &&
        !end_message(writer))
        return false;
    if ((!writer->has_message && !begin_message(writer)) || !buffer_reserve(writer->buffer, size))
        return false;
    if (!writer->name)
        begin_metric(writer, metric);
    return true;
}

/* ---- data points ----------------------------------------------------------------------------- */

static uint64_t zigzag(int64_t value)
{
    return (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0);
}

/* From the first bucket that has something to the last one. */
static char *put_buckets(char *at, const struct histogram *histogram)
{
    struct histogram_bucket bucket = {0};
    char *buckets, *counts;
    int32_t next;

    if (!histogram_next(histogram, HISTOGRAM_SCALE, &bucket))
        return at;
    *at++ = PB_BYTES(8);
    buckets = at++;
    *at++ = PB_VARINT(1);
    at = pb_put_varint(at, zigzag(bucket.index));
    *at++ = PB_BYTES(2);
    counts = at++;
    next = bucket.index;
    do {
        for (; next < bucket.index; next++)
            *at++ = 0;
        at = pb_put_varint(at, bucket.count);
        next++;
    } while (histogram_next(histogram, HISTOGRAM_SCALE, &bucket));
    return pb_end(buckets, pb_end(counts, at));
}

/* A byte for each bucket, more for each that has something. */
static size_t buckets_size(const struct histogram *histogram)
{
    struct histogram_bucket bucket = {0};
    int32_t first = 0;
    size_t filled = 0;

    while (histogram_next(histogram, HISTOGRAM_SCALE, &bucket))
        first = filled++ ? first : bucket.index;
    return filled ? POINT_MAX + (size_t)(bucket.index - first) + filled * PB_VARINT_MAX : 0;
}

static char *metrics_put_histogram(char *at, const struct histogram *histogram)
{
    *at++ = PB_FIXED64(4);
    at = pb_put_fixed64(at, histogram->count);
    at = otlp_put_double(at, PB_FIXED64(5), histogram->sum);
    *at++ = PB_VARINT(6);
    at = pb_put_varint(at, zigzag(HISTOGRAM_SCALE));
    *at++ = PB_FIXED64(7);
    at = pb_put_fixed64(at, histogram->zeros);
    at = put_buckets(at, histogram);
    at = otlp_put_double(at, PB_FIXED64(12), (double)histogram->min);
    return otlp_put_double(at, PB_FIXED64(13), (double)histogram->max);
}

static size_t point_size(const struct metric_point *point)
{
    size_t size = POINT_MAX + (point->histogram ? buckets_size(point->histogram) : 0);

    for (size_t i = 0; i < point->attribute_count; i++)
        size += POINT_MAX + PB_TEXT_MAX(point->attributes[i].value.length);
    return size;
}

bool otlp_metrics_put(struct otlp_metrics_writer *writer, const struct metric *metric,
                      const struct metric_point *point)
{
    const char attribute = point->histogram ? PB_BYTES(1) : PB_BYTES(7);
    char *at, *length;

    if (!metrics_make_room(writer, metric, point_size(point)))
        return false;
    at = end_of(writer);
    *at++ = PB_BYTES(1);
    length = at++;
    *at++ = PB_FIXED64(2);
    at = pb_put_fixed64(at, (uint64_t)point->start_ns);
    *at++ = PB_FIXED64(3);
    at = pb_put_fixed64(at, (uint64_t)point->end_ns);
    if (point->histogram) {
        at = metrics_put_histogram(at, point->histogram);
    } else {
        *at++ = point->is_double ? PB_FIXED64(4) : PB_FIXED64(6);
        at = pb_put_fixed64(at, point->value);
    }
    for (size_t i = 0; i < point->attribute_count; i++)
        at = otlp_put_attribute(at, attribute, point->attributes[i].key.data,
                                point->attributes[i].value);
    set_end(writer, pb_end(length, at));
    return true;
}
