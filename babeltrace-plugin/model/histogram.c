/*
 * Exponential histograms.
 *
 * Slot 0 has the value 1. Slot n has the values above 2^((n-1)/128) up to 2^(n/128).
 * OpenTelemetry's index is n - 1.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "histogram.h"

#include <math.h>
#include <stdlib.h>

#define SUBBUCKETS      (1 << HISTOGRAM_SCALE)
#define HISTOGRAM_SLOTS (HISTOGRAM_OCTAVES * SUBBUCKETS)
#define NO_SLOT         (-1)

/* The range of OpenTelemetry's scales. */
#define SCALE_MIN           (-10)
#define HISTOGRAM_SCALE_MAX 20

/*
 * clang-format off
 *
 * bounds[n] is 2^(63 + n/128), rounded down: the greatest value of slot n of the highest octave.
 * The last one is 2^64 - 1. Comparing with the bounds is exact, because only 2^63 and 2^64 are
 * integers.
 */
static const uint64_t bounds[SUBBUCKETS + 1] = {
    UINT64_C(0x8000000000000000), UINT64_C(0x80b1ed4fd999ab6c), UINT64_C(0x8164d1f3bc030773),
    UINT64_C(0x8218af4373fc25eb), UINT64_C(0x82cd8698ac2ba1d7), UINT64_C(0x8383594eefb6ee36),
    UINT64_C(0x843a28c3acde4046), UINT64_C(0x84f1f656379c1a29), UINT64_C(0x85aac367cc487b14),
    UINT64_C(0x8664915b923fba03), UINT64_C(0x871f61969e8d1010), UINT64_C(0x87db357ff698d791),
    UINT64_C(0x88980e8092da8527), UINT64_C(0x8955ee03618e5fdc), UINT64_C(0x8a14d575496efd9a),
    UINT64_C(0x8ad4c6452c728924), UINT64_C(0x8b95c1e3ea8bd6e6), UINT64_C(0x8c57c9c4646f4ddd),
    UINT64_C(0x8d1adf5b7e5ba9e5), UINT64_C(0x8ddf042022e69cd5), UINT64_C(0x8ea4398b45cd53c0),
    UINT64_C(0x8f6a8117e6c8e5c4), UINT64_C(0x9031dc431466b1dc), UINT64_C(0x90fa4c8beee4b12a),
    UINT64_C(0x91c3d373ab11c336), UINT64_C(0x928e727d9531f9ac), UINT64_C(0x935a2b2f13e6e92b),
    UINT64_C(0x9426ff0fab1c04b6), UINT64_C(0x94f4efa8fef70961), UINT64_C(0x95c3fe86d6cc7fee),
    UINT64_C(0x96942d3720185a00), UINT64_C(0x97657d49f17ab08e), UINT64_C(0x9837f0518db8a96f),
    UINT64_C(0x990b87e266c189a9), UINT64_C(0x99e0459320b7fa64), UINT64_C(0x9ab62afc94ff864a),
    UINT64_C(0x9b8d39b9d54e5538), UINT64_C(0x9c6573682ec32c2d), UINT64_C(0x9d3ed9a72cffb750),
    UINT64_C(0x9e196e189d472420), UINT64_C(0x9ef5326091a111ad), UINT64_C(0x9fd228256400dd05),
    UINT64_C(0xa0b0510fb9714fc2), UINT64_C(0xa18faeca8544b6e3), UINT64_C(0xa27043030c496818),
    UINT64_C(0xa3520f68e802bb92), UINT64_C(0xa43515ae09e6809e), UINT64_C(0xa5195786be9ef339),
    UINT64_C(0xa5fed6a9b15138ea), UINT64_C(0xa6e594cfeee86b1d), UINT64_C(0xa7cd93b4e9653569),
    UINT64_C(0xa8b6d5167b320e08), UINT64_C(0xa9a15ab4ea7c0ef8), UINT64_C(0xaa8d2652ec907629),
    UINT64_C(0xab7a39b5a93ed337), UINT64_C(0xac6896a4be3fe929), UINT64_C(0xad583eea42a14ac6),
    UINT64_C(0xae493452ca35b80e), UINT64_C(0xaf3b78ad690a4374), UINT64_C(0xb02f0dcbb6e04583),
    UINT64_C(0xb123f581d2ac258f), UINT64_C(0xb21a31a66618fe3b), UINT64_C(0xb311c412a9112489),
    UINT64_C(0xb40aaea2654b9840), UINT64_C(0xb504f333f9de6484), UINT64_C(0xb60093a85ed5f76b),
    UINT64_C(0xb6fd91e328d17791), UINT64_C(0xb7fbefca8ca41e7c), UINT64_C(0xb8fbaf4762fb9ee9),
    UINT64_C(0xb9fcd2452c0b9dea), UINT64_C(0xbaff5ab2133e45fb), UINT64_C(0xbc034a7ef2e9fb0c),
    UINT64_C(0xbd08a39f580c36be), UINT64_C(0xbe0f6809860993e2), UINT64_C(0xbf1799b67a731082),
    UINT64_C(0xc0213aa1f0d08db0), UINT64_C(0xc12c4cca66709456), UINT64_C(0xc238d2311e3d6672),
    UINT64_C(0xc346ccda24976407), UINT64_C(0xc4563ecc5334cb32), UINT64_C(0xc5672a115506dadd),
    UINT64_C(0xc67990b5aa245f79), UINT64_C(0xc78d74c8abb9b15c), UINT64_C(0xc8a2d85c8ffe2c45),
    UINT64_C(0xc9b9bd866e2f27a2), UINT64_C(0xcad2265e4290774d), UINT64_C(0xcbec14fef2727c5c),
    UINT64_C(0xcd078b86503dcdd1), UINT64_C(0xce248c151f8480e3), UINT64_C(0xcf4318cf191918c1),
    UINT64_C(0xd06333daef2b2594), UINT64_C(0xd184df6251699ac6), UINT64_C(0xd2a81d91f12ae45a),
    UINT64_C(0xd3ccf099859ac379), UINT64_C(0xd4f35aabcfedfa1f), UINT64_C(0xd61b5dfe9f9bce06),
    UINT64_C(0xd744fccad69d6af4), UINT64_C(0xd870394c6db32c84), UINT64_C(0xd99d15c278afd7b5),
    UINT64_C(0xdacb946f2ac9cc71), UINT64_C(0xdbfbb797daf23755), UINT64_C(0xdd2d818508324c20),
    UINT64_C(0xde60f4825e0e9123), UINT64_C(0xdf9612deb8f04420), UINT64_C(0xe0ccdeec2a94e111),
    UINT64_C(0xe2055afffe83d368), UINT64_C(0xe33f8972be8a5a51), UINT64_C(0xe47b6ca0373da88d),
    UINT64_C(0xe5b906e77c8348a8), UINT64_C(0xe6f85aaaee1fce22), UINT64_C(0xe8396a503c4bdc68),
    UINT64_C(0xe97c38406c4f8c56), UINT64_C(0xeac0c6e7dd24392e), UINT64_C(0xec0718b64c1cbddc),
    UINT64_C(0xed4f301ed9942b84), UINT64_C(0xee990f980da3025b), UINT64_C(0xefe4b99bdcdaf5cb),
    UINT64_C(0xf13230a7ad094509), UINT64_C(0xf281773c59ffb139), UINT64_C(0xf3d28fde3a641a5a),
    UINT64_C(0xf5257d152486cc2c), UINT64_C(0xf67a416c733f846d), UINT64_C(0xf7d0df730ad13bb8),
    UINT64_C(0xf92959bb5dd4ba74), UINT64_C(0xfa83b2db722a033a), UINT64_C(0xfbdfed6ce5f09c48),
    UINT64_C(0xfd3e0c0cf486c174), UINT64_C(0xfe9e115c7b8f884b), UINT64_MAX,
};

/* The first slot of the octave for numbers with these 7 bits after the first bit. The right slot is
 * this one, or one of the next two. */
static const uint8_t first_slots[SUBBUCKETS] = {
    0,   2,   3,   5,   6,   8,   9,   10,  12,  13,  14,  16,  17,  18,  20,  21,  22,  24,  25,
    26,  27,  29,  30,  31,  32,  33,  35,  36,  37,  38,  39,  41,  42,  43,  44,  45,  46,  47,
    49,  50,  51,  52,  53,  54,  55,  56,  57,  58,  59,  60,  61,  62,  63,  64,  65,  67,  68,
    69,  70,  71,  71,  72,  73,  74,  75,  76,  77,  78,  79,  80,  81,  82,  83,  84,  85,  86,
    87,  87,  88,  89,  90,  91,  92,  93,  94,  95,  95,  96,  97,  98,  99,  100, 101, 101, 102,
    103, 104, 105, 105, 106, 107, 108, 109, 110, 110, 111, 112, 113, 113, 114, 115, 116, 117, 117,
    118, 119, 120, 120, 121, 122, 123, 123, 124, 125, 126, 126, 127, 128,
};
/* clang-format on */

/* Returns the slot of a value of at least 1. Logarithms would take longer and round. */
static inline int histogram_slot(int64_t value)
{
    const int zeros = __builtin_clzll((uint64_t)value);
    const uint64_t shifted = (uint64_t)value << zeros;
    const int first = first_slots[shifted >> 56 & (SUBBUCKETS - 1)];

    /* The second bound is above the first one, so a value above the second is above the first,
     * too. */
    return (63 - zeros) * SUBBUCKETS + first + (shifted > bounds[first]) +
           (first < SUBBUCKETS && shifted > bounds[first + 1]);
}

/* Returns the integer of the slot with the least relative error to both ends of the slot. */
static int64_t middle_of(int slot)
{
    const double low = exp2((double)(slot - 1) / SUBBUCKETS);
    const double high = exp2((double)slot / SUBBUCKETS);
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
    uint64_t **octave = &histogram->octaves[slot / SUBBUCKETS];

    if (!*octave)
        *octave = calloc(SUBBUCKETS, sizeof(**octave));
    return *octave;
}

static void note_range(struct histogram *histogram, int64_t min, int64_t max)
{
    if (histogram->count == 0 || min < histogram->min)
        histogram->min = min;
    if (histogram->count == 0 || max > histogram->max)
        histogram->max = max;
}

void histogram_prefetch(const struct histogram *histogram, int64_t value)
{
    const int slot = value > 0 ? histogram_slot(value) : 0;
    const uint64_t *buckets = histogram->octaves[slot / SUBBUCKETS];

    if (buckets)
        __builtin_prefetch(&buckets[slot % SUBBUCKETS], 1);
}

bool histogram_add(struct histogram *histogram, int64_t value)
{
    if (value > 0) {
        const int slot = histogram_slot(value);
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

static uint64_t count_without(uint64_t count, uint64_t part)
{
    return part < count ? count - part : 0;
}

/* Returns the first slot from this one on that is not empty, or HISTOGRAM_SLOTS. */
static int next_slot(const struct histogram *histogram, int slot)
{
    while (slot < HISTOGRAM_SLOTS) {
        const uint64_t *buckets = histogram->octaves[slot / SUBBUCKETS];

        if (!buckets)
            slot = (slot / SUBBUCKETS + 1) * SUBBUCKETS;
        else if (buckets[slot % SUBBUCKETS])
            return slot;
        else
            slot++;
    }
    return slot;
}

/* The slot is not empty. */
static uint64_t count_of(const struct histogram *histogram, int slot)
{
    return histogram->octaves[slot / SUBBUCKETS][slot % SUBBUCKETS];
}

/* Returns the slot of the value with a rank of at least 1. NO_SLOT: the value is 0. */
static int slot_of_rank(const struct histogram *histogram, uint64_t rank)
{
    uint64_t passed = histogram->zeros;
    int found = NO_SLOT;

    while (passed < rank) {
        const int slot = next_slot(histogram, found + 1);

        if (slot == HISTOGRAM_SLOTS)
            break;
        found = slot;
        passed += count_of(histogram, slot);
    }
    return found;
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
    value = slot == NO_SLOT ? 0 : middle_of(slot);
    if (value < histogram->min)
        return histogram->min;
    return value < histogram->max ? value : histogram->max;
}

/* Moves the bound into the slot: exact if the slot still has the value. */
static int64_t bound_in(int slot, int64_t bound)
{
    return bound > 0 && histogram_slot(bound) == slot ? bound : middle_of(slot);
}

static void histogram_set_range(struct histogram *histogram)
{
    const int64_t min = histogram->min, max = histogram->max;

    histogram->min = histogram->max = 0;
    for (int slot = next_slot(histogram, 0); slot < HISTOGRAM_SLOTS;
         slot = next_slot(histogram, slot + 1)) {
        if (!histogram->max && !histogram->zeros)
            histogram->min = bound_in(slot, min);
        histogram->max = bound_in(slot, max);
    }
}

void histogram_remove(struct histogram *histogram, const struct histogram *part)
{
    for (int slot = next_slot(part, 0); slot < HISTOGRAM_SLOTS; slot = next_slot(part, slot + 1)) {
        uint64_t *buckets = histogram->octaves[slot / SUBBUCKETS];

        if (buckets)
            buckets[slot % SUBBUCKETS] =
                count_without(buckets[slot % SUBBUCKETS], count_of(part, slot));
    }
    histogram->zeros = count_without(histogram->zeros, part->zeros);
    histogram->count = count_without(histogram->count, part->count);
    histogram->sum = histogram->count ? histogram->sum - part->sum : 0;
    histogram_set_range(histogram);
}

void histogram_halve(struct histogram *histogram)
{
    uint64_t count = histogram->zeros /= 2;

    for (int slot = next_slot(histogram, 0); slot < HISTOGRAM_SLOTS;
         slot = next_slot(histogram, slot + 1))
        count += histogram->octaves[slot / SUBBUCKETS][slot % SUBBUCKETS] /= 2;
    if (histogram->count)
        histogram->sum *= (double)count / (double)histogram->count;
    histogram->count = count;
}

size_t histogram_bytes(const struct histogram *histogram)
{
    size_t bytes = sizeof(*histogram);

    for (int i = 0; i < HISTOGRAM_OCTAVES; i++)
        bytes += histogram->octaves[i] ? SUBBUCKETS * sizeof(**histogram->octaves) : 0;
    return bytes;
}

void histogram_clear(struct histogram *histogram)
{
    for (int i = 0; i < HISTOGRAM_OCTAVES; i++)
        free(histogram->octaves[i]);
    *histogram = (struct histogram){.count = 0};
}

/* ---- other forms */

/* Returns the first slot of a bucket. The scale is HISTOGRAM_SCALE or coarser. */
static int64_t first_slot(int64_t index, int scale)
{
    return index * (INT64_C(1) << (HISTOGRAM_SCALE - scale)) + 1;
}

bool histogram_next(const struct histogram *histogram, int scale, struct histogram_bucket *bucket)
{
    const int64_t from = bucket->count ? first_slot((int64_t)bucket->index + 1, scale) : 0;
    int slot = from < HISTOGRAM_SLOTS ? next_slot(histogram, (int)from) : HISTOGRAM_SLOTS;
    int64_t end;

    if (slot == HISTOGRAM_SLOTS)
        return false;
    bucket->count = 0;
    bucket->index = (slot - 1) >> (HISTOGRAM_SCALE - scale);
    end = first_slot((int64_t)bucket->index + 1, scale);
    for (; slot < HISTOGRAM_SLOTS && slot < end; slot = next_slot(histogram, slot + 1))
        bucket->count += count_of(histogram, slot);
    return true;
}

bool histogram_add_bucket(struct histogram *histogram, int scale,
                          const struct histogram_bucket *bucket)
{
    const int finer = scale - HISTOGRAM_SCALE;
    int64_t slot;
    uint64_t *buckets;

    if (scale < SCALE_MIN || scale > HISTOGRAM_SCALE_MAX)
        return false;
    if (finer >= 0)
        slot = (int64_t)(bucket->index >> finer) + 1;
    else if (bucket->index == -1)
        slot = 0;
    else
        slot = first_slot(bucket->index, scale) + (INT64_C(1) << (-finer - 1));
    if (slot < 0 || slot >= HISTOGRAM_SLOTS)
        return false;
    buckets = octave(histogram, (int)slot);
    if (!buckets)
        return false;
    buckets[slot % SUBBUCKETS] += bucket->count;
    histogram->count += bucket->count;
    return true;
}
