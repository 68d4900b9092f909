/*
 * Whether a foreign span can be sent on as it came: no receiver refuses it, and with it a whole
 * request.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_OTLP_SOUND_H
#define BLKIN_OUTPUT_OTLP_SOUND_H

#include "otlp_decode.h"

/*
 * Fields that OpenTelemetry's messages define have the types that these say, texts are UTF-8, ids
 * have their lengths, attributes have keys, and values are not nested deeply. Others may be
 * anything.
 */
bool otlp_is_sound(const struct otlp_origin *origin, struct text span);

#endif
