/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BLKIN_LIVE_LIVE_H
#define BLKIN_LIVE_LIVE_H

/* blkin live */
int live(int argc, char *argv[]);

#endif
