/*
 * Runs a fuzzer as a test, without libFuzzer: the same random inputs each time, for a second or
 * 200000 inputs. So the fuzzers' models check each change; `make fuzz` has the guided search.
 *
 *     fuzz-x [RUNS [FIRST]]     RUNS inputs, from input FIRST on
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define INPUT_MAX   512
#define REPLAY_RUNS 200000
#define SECONDS     1

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
__attribute__((weak)) int LLVMFuzzerInitialize(int *argc, char ***argv);

static unsigned long number;
static uint64_t state;

static uint64_t below(uint64_t limit)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407U;
    return (state >> 33) % limit;
}

/* Bytes of one sort: any, small numbers, text characters, or mostly zeros. */
static size_t make_input(uint8_t *input)
{
    static const char texts[] = "0123456789abcdef -=:,.*[]\"\\{}%\n";
    const size_t size = below(8) ? below(INPUT_MAX) : below(24);
    const uint64_t sort = below(5);

    for (size_t i = 0; i < size; i++) {
        input[i] = (uint8_t)below(256);
        if (sort == 1)
            input[i] %= 8;
        else if (sort == 2 && input[i] < 240)
            input[i] = (uint8_t)texts[input[i] % (sizeof(texts) - 1)];
        else if (sort == 3 && below(4))
            input[i] = 0;
    }
    return size;
}

/* Prints the number of the input that ended the program. */
static void print_input_number(int signal)
{
    char text[64];
    const int length = snprintf(text, sizeof(text), "input %lu\n", number);

    (void)!write(STDERR_FILENO, text, (size_t)length);
    raise(signal); /* with the default action: see SA_RESETHAND */
}

int main(int argc, char **argv)
{
    const struct sigaction action = {.sa_handler = print_input_number,
                                     .sa_flags = SA_RESETHAND | SA_NODEFER};
    const unsigned long runs = argc > 1 ? strtoul(argv[1], NULL, 10) : REPLAY_RUNS;
    const unsigned long first = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    const clock_t end = clock() + SECONDS * CLOCKS_PER_SEC;

    sigaction(SIGABRT, &action, NULL);
    sigaction(SIGSEGV, &action, NULL);
    if (LLVMFuzzerInitialize)
        LLVMFuzzerInitialize(&argc, &argv);
    for (number = first; number < first + runs && (argc > 1 || clock() < end); number++) {
        uint8_t bytes[INPUT_MAX];
        uint8_t *input;
        size_t size;

        state = number * UINT64_C(0x9e3779b97f4a7c15);
        size = make_input(bytes);
        input = malloc(size ? size : 1); /* of just its size, for AddressSanitizer */
        if (!input)
            return 2;
        memcpy(input, bytes, size);
        LLVMFuzzerTestOneInput(input, size);
        free(input);
    }
    printf("%lu inputs\n", number - first);
    return 0;
}
