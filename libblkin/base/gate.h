/*
 * The words that say whether events are wanted, besides LTTng's: those are 0 or 1.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_GATE_H
#define BLKIN_GATE_H

/*
 * In the word of blkin_gate_, or of an event of the original API: whoever finds it does the chores
 * if they are due, and then looks again. Else a program that records nothing, or only events of the
 * original API, would not find the recorder's rings. Without bit 0, nothing is wanted.
 */
#define BLKIN_GATE_LOOKS 2

#endif
