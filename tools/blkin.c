/*
 * blkin: the command line tool. This file only finds the subcommand.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "show.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>

#ifndef BLKIN_RELEASE
#define BLKIN_RELEASE "unknown"
#endif

static const char usage[] = "usage: blkin COMMAND [ARGUMENT]...\n"
                            "\n"
                            "commands:\n"
                            "  show   print a trace as a timeline (blkin show --help)\n"
                            "\n"
                            "  -h, --help     print this\n"
                            "  -V, --version  print the version\n";

int main(int argc, char *argv[])
{
    const char *command = argc > 1 ? argv[1] : "";

    setlocale(LC_ALL, "");
    if (strcmp(command, "show") == 0) {
        argv[1] = "blkin show"; /* how getopt(3) begins its messages */
        return show(argc - 1, argv + 1);
    }
    if (strcmp(command, "-h") == 0 || strcmp(command, "--help") == 0) {
        fputs(usage, stdout);
        return 0;
    }
    if (strcmp(command, "-V") == 0 || strcmp(command, "--version") == 0) {
        puts("blkin " BLKIN_RELEASE);
        return 0;
    }
    if (argc > 1)
        fprintf(stderr, "blkin: unknown command \"%s\"\n", command);
    fputs(usage, stderr);
    return 2;
}
