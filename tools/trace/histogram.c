/*
 * Exponential histograms.
 *
 * Slot 0 is of the value 1, slot n of those above 2^((n-1)/128) up to 2^(n/128): OpenTelemetry's
 * index is one less.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "histogram.h"

#include <math.h>
#include <stdlib.h>

#define SUBBUCKETS (1 << HISTOGRAM_SCALE)
#define SLOTS      (HISTOGRAM_OCTAVES * SUBBUCKETS)

static int slot_of(int64_t value)
{
    const int slot = (int)ceil(log2((double)value) * SUBBUCKETS);

    return slot < SLOTS ? slot : SLOTS - 1;
}

static double upper_bound(int slot)
{
    return exp2((double)slot / SUBBUCKETS);
}

/* The middle by which the relative error is the same at both ends; of the integers in the slot. */
static int64_t middle_of(int slot)
{
    const double low = upper_bound(slot - 1), high = upper_bound(slot);
    const double middle = 2 * low * high / (low + high);
    int64_t value = llround(middle);

    if ((double)value <= low)
        value++;
    if ((double)value > high)
        value--;
    return value;
}

static uint64_t *octave(struct histogram *histogram, int slot)
{
    uint64_t **place = &histogram->octaves[slot / SUBBUCKETS];

    if (!*place)
        *place = calloc(SUBBUCKETS, sizeof(**place));
    return *place;
}

static void note_range(struct histogram *histogram, int64_t min, int64_t max)
{
    if (histogram->count == 0 || min < histogram->min)
        histogram->min = min;
    if (histogram->count == 0 || max > histogram->max)
        histogram->max = max;
}

bool histogram_add(struct histogram *histogram, int64_t value)
{
    if (value > 0) {
        const int slot = slot_of(value);
        uint64_t *buckets = octave(histogram, slot);

        if (!buckets)
            return false;
        buckets[slot % SUBBUCKETS]++;
    } else {
        value = 0;
        histogram->zeros++;
    }
    note_range(histogram, value, value);
    histogram->count++;
    histogram->sum += (double)value;
    return true;
}

bool histogram_merge(struct histogram *histogram, const struct histogram *other)
{
    if (other->count == 0)
        return true;
    for (int i = 0; i < HISTOGRAM_OCTAVES; i++) {
        uint64_t *buckets;

        if (!other->octaves[i])
            continue;
        buckets = octave(histogram, i * SUBBUCKETS);
        if (!buckets)
            return false;
        for (int j = 0; j < SUBBUCKETS; j++)
            buckets[j] += other->octaves[i][j];
    }
    note_range(histogram, other->min, other->max);
    histogram->zeros += other->zeros;
    histogram->count += other->count;
    histogram->sum += other->sum;
    return true;
}

/* The slot of the value of that rank, from 1 on; -1: it is 0. */
static int slot_of_rank(const struct histogram *histogram, uint64_t rank)
{
    uint64_t passed = histogram->zeros;
    int slot = -1;

    while (passed < rank && ++slot < SLOTS) {
        const uint64_t *buckets = histogram->octaves[slot / SUBBUCKETS];

        if (buckets)
            passed += buckets[slot % SUBBUCKETS];
        else
            slot += SUBBUCKETS - 1;
    }
    return slot;
}

int64_t histogram_quantile(const struct histogram *histogram, double q)
{
    const uint64_t rank = (uint64_t)ceil(q * (double)histogram->count);
    int64_t value;
    int slot;

    if (rank >= histogram->count)
        return histogram->max;
    if (rank <= 1)
        return histogram->min;
    slot = slot_of_rank(histogram, rank);
    value = slot < 0 ? 0 : middle_of(slot);
    if (value < histogram->min)
        return histogram->min;
    return value < histogram->max ? value : histogram->max;
}

void histogram_clear(struct histogram *histogram)
{
    for (int i = 0; i < HISTOGRAM_OCTAVES; i++)
        free(histogram->octaves[i]);
    *histogram = (struct histogram){.count = 0};
}
