/*
 * Detects processors with a fast "pdep".
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "digits.h"

#if defined(__x86_64__) && !defined(BLKIN_PORTABLE)

bool blkin_has_pdep;

/* AMD processors before Zen 3 run pdep as a loop of microcode. */
__attribute__((constructor)) static void look_for_pdep(void)
{
    __builtin_cpu_init();
    blkin_has_pdep = __builtin_cpu_supports("bmi2") && !__builtin_cpu_is("bdver4") &&
                     !__builtin_cpu_is("znver1") && !__builtin_cpu_is("znver2");
}

#endif
