/*
 * A histogram of times or other integers from 0 on: OpenTelemetry's exponential histogram of base 2
 * and scale 7. Bucket i has exactly the values above 2^(i/128) up to 2^((i+1)/128). Adding two
 * histograms merges them; adding neighbouring buckets gives a coarser scale.
 *
 * While values are only added, count, least and greatest value are exact, and so is the sum up to a
 * double's precision. A quantile below 185 is exact. Any other quantile is the middle of a bucket
 * 0.54 % wide, rounded to an integer. It is off by 0.54 % at most, and by 0.31 % from 340 on.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_MODEL_HISTOGRAM_H
#define BLKIN_MODEL_HISTOGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HISTOGRAM_SCALE   7
#define HISTOGRAM_OCTAVES 64

/* Zeros are an empty histogram. */
struct histogram {
    uint64_t count;
    uint64_t zeros;
    int64_t min;
    int64_t max;
    double sum;
    uint64_t *octaves[HISTOGRAM_OCTAVES]; /* 2^scale buckets each; NULL: empty */
};

/* A value below 0 counts as 0. Returns false when out of memory: the histogram stays as it is. */
bool histogram_add(struct histogram *histogram, int64_t value);

/* Prefetches the memory that histogram_add() of the value will change. */
void histogram_prefetch(const struct histogram *histogram, int64_t value);

/* Returns false when out of memory: then only some buckets of `other` were added, and count, zeros,
 * sum, min and max are unchanged. */
bool histogram_merge(struct histogram *histogram, const struct histogram *other);

/* Subtracts a part that histogram_merge() has added. The least and the greatest value are exact if
 * the subtraction does not change them; if not, they are off by at most a bucket's width. */
void histogram_remove(struct histogram *histogram, const struct histogram *part);

/* Returns the q-quantile: the least value x so that at least q * count values are <= x. Returns 0
 * if there are no values. */
int64_t histogram_quantile(const struct histogram *histogram, double q);

/* Halves each bucket, so old values count less. */
void histogram_halve(struct histogram *histogram);

size_t histogram_bytes(const struct histogram *histogram);

/* Empties the histogram. */
void histogram_clear(struct histogram *histogram);

/* ---- other forms */

struct histogram_bucket {
    int32_t index; /* OpenTelemetry's index at a scale; bucket -1 also has the value 1 */
    uint64_t count;
};

/*
 * Moves to the next bucket that is not empty, or to the first one if bucket.count is 0. Returns
 * false if there is none. The scale is HISTOGRAM_SCALE or less:
 *
 *     struct histogram_bucket bucket = {0};
 *     while (histogram_next(histogram, scale, &bucket))
 */
bool histogram_next(const struct histogram *histogram, int scale, struct histogram_bucket *bucket);

/*
 * Adds a bucket of any scale, such as one of histogram_next(). Buckets of a finer scale are added
 * up; a coarser bucket goes to the slot of its middle. The caller sets zeros, min, max and sum.
 * Returns false when out of memory, or if the bucket's values cannot be in this histogram.
 */
bool histogram_add_bucket(struct histogram *histogram, int scale,
                          const struct histogram_bucket *bucket);

#endif
