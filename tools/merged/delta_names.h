/*
 * What deltas are called, by who writes them and who reads them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WORK_DELTA_NAMES_H
#define BLKIN_TOOLS_WORK_DELTA_NAMES_H

#define DELTAS_SERVICE      "blkin-work"
#define DELTAS_PREFIX       "blkin.work."
#define FLEET_DELTAS_PREFIX "blkin.hosts."

#define DELTAS_SPAN_CALLS     "blkin.span.calls"
#define DELTAS_SPAN_ERRORS    "blkin.span.errors"
#define DELTAS_SPAN_DURATION  "blkin.span.duration"
#define DELTAS_SPAN_SELF_TIME "blkin.span.self_time"
#define DELTAS_EDGE_CALLS     "blkin.edge.calls"
#define DELTAS_EDGE_ERRORS    "blkin.edge.errors"
#define DELTAS_EDGE_DURATION  "blkin.edge.duration"

enum temporality { DELTA = 1, CUMULATIVE = 2 };

#endif
