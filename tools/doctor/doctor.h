/* blkin doctor: explains why no traces appear.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_DOCTOR_H
#define BLKIN_TOOLS_DOCTOR_H

/* argv[0]: the prefix of messages. Returns the exit status. */
int doctor(int argc, char *argv[]);

#endif
