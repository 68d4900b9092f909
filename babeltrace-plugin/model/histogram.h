/*
 * A histogram of times, or of any integers from 0 on: OpenTelemetry's exponential one, of base 2
 * and scale 7, so that two are merged by adding them up, and a coarser scale is had by adding up
 * buckets. Bucket i has the values above 2^(i/128) up to 2^((i+1)/128), exactly.
 *
 * Count, sum, least and greatest value are exact, as is a quantile that is below 185. Any other
 * quantile is off by 0.3 % at most: buckets are 0.54 % wide, and it is the middle of one.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ANALYSIS_HISTOGRAM_H
#define BLKIN_ANALYSIS_HISTOGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HISTOGRAM_SCALE   7
#define HISTOGRAM_OCTAVES 64

/* Zeros are an empty one. */
struct histogram {
    uint64_t count;
    uint64_t zeros;
    int64_t min;
    int64_t max;
    double sum;
    uint64_t *octaves[HISTOGRAM_OCTAVES]; /* of 2^scale buckets each; NULL: empty */
};

/* A value below 0 counts as 0. Out of memory: returns false, and it is as it was. */
bool histogram_add(struct histogram *histogram, int64_t value);

/* Fetches into the cache what adding the value will write to: for who can say so some time before.
 */
void histogram_fetch(const struct histogram *histogram, int64_t value);

/* Out of memory: returns false, and only a part is added. */
bool histogram_merge(struct histogram *histogram, const struct histogram *other);

/*
 * Takes out what was added before with histogram_merge(). The new least and greatest value are
 * exact if they are the old ones; if not, they are off as a quantile is.
 */
void histogram_remove(struct histogram *histogram, const struct histogram *part);

/* The least value that at least the share q of all are not above; 0 if there are none. */
int64_t histogram_quantile(const struct histogram *histogram, double q);

/* Half of each bucket: so what is long ago counts less. */
void histogram_halve(struct histogram *histogram);

size_t histogram_bytes(const struct histogram *histogram);

/* It is empty then. */
void histogram_clear(struct histogram *histogram);

/* ---- for who writes or reads one in another form */

struct histogram_bucket {
    int32_t index; /* OpenTelemetry's, of the scale that was asked for; -1 also has the value 1 */
    uint64_t count;
};

/*
 * The bucket after this one, or the first one if its count is 0, of those that are not empty.
 * Returns false if there is none. At a scale of HISTOGRAM_SCALE or less:
 *
 *     struct histogram_bucket bucket = {0};
 *     while (histogram_next(histogram, scale, &bucket))
 */
bool histogram_next(const struct histogram *histogram, int scale, struct histogram_bucket *bucket);

/*
 * Adds up what histogram_next() has told, at any scale: of a finer one buckets are added up, what a
 * bucket of a coarser one has goes to where its middle is. Zeros, min, max and sum are the
 * caller's to set. Returns false when out of memory, or if no value here could be of such a bucket.
 */
bool histogram_add_bucket(struct histogram *histogram, int scale,
                          const struct histogram_bucket *bucket);

#endif
