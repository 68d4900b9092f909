/*
 * blkin doctor: says why nothing shows up.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_DOCTOR_H
#define BLKIN_TOOLS_DOCTOR_H

/* argv[0] is how messages begin. Returns the exit status. */
int doctor(int argc, char *argv[]);

#endif
