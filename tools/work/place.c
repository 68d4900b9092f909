/* A worker's place: the text of a commit, and the place after the log has lost messages.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "place.h"

#include <inttypes.h>
#include <stdio.h>

void place_write(const struct place *place, char text[PLACE_TEXT_MAX])
{
    (void)snprintf(text, PLACE_TEXT_MAX, "blkin1 %" PRId64 " %" PRId64 " %" PRId64,
                   place->read_back, place->read_to, place->time_ms);
}

struct place place_read(int64_t watermark, struct text text)
{
    struct place place = {watermark, watermark, watermark, 0};
    char copy[PLACE_TEXT_MAX] = "";
    int64_t read_back, read_to, time_ms = 0;

    if (text.length >= sizeof(copy))
        return place;
    (void)text_copy(copy, text);
    if (sscanf(copy, "blkin1 %20" SCNd64 " %20" SCNd64 " %20" SCNd64, &read_back, &read_to,
               &time_ms) >= 2 &&
        read_back >= 0 && read_back <= watermark && read_to >= watermark) {
        place.read_back = read_back;
        place.read_to = read_to;
        place.time_ms = time_ms > 0 ? time_ms : 0;
    }
    return place;
}

static int64_t place_smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

struct place place_cut(const struct place *place, int64_t low, int64_t cut)
{
    struct place left = *place;

    left.read_to = cut;
    left.watermark = place_smaller(place->watermark, cut);
    left.read_back = place_smaller(place->read_back, left.watermark);
    if (left.watermark < low)
        left.watermark = low;
    if (left.read_back < low)
        left.read_back = low;
    return left;
}
