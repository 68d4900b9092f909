/* SPDX-License-Identifier: BSD-2-Clause */
#include "run.h"

#include "libblkin/preload/config.h"
#include "tools/base/commands.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
#include "tools/run/usage.txt.inc"
    ;

/* The exit statuses of env(1) and timeout(1), except STATUS_USAGE. */
enum { STATUS_USAGE = 2, STATUS_CANNOT = 125, STATUS_NOT_RUN = 126, STATUS_NOT_FOUND = 127 };

#define PRELOAD_FILE "libblkin-preload.so"

enum { RUN_FILE = 'f', ANYWAY = 'a', PRINT = 'p', HELP = 'h', KEY = 'k', LTTNG = 'l' };

static const struct option options[] = {
    {"ports", required_argument, NULL, KEY},
    {"programs", required_argument, NULL, KEY},
    {"service", required_argument, NULL, KEY},
    {"files", required_argument, NULL, KEY},
    {"file-calls", required_argument, NULL, KEY},
    {"min-us", required_argument, NULL, KEY},
    {"usage", required_argument, NULL, KEY},
    {"guesses", required_argument, NULL, KEY},
    {"payload", required_argument, NULL, KEY},
    {"seccomp", required_argument, NULL, KEY},
    {"lttng", no_argument, NULL, LTTNG},
    {"run-file", required_argument, NULL, RUN_FILE},
    {"anyway", no_argument, NULL, ANYWAY},
    {"print", no_argument, NULL, PRINT},
    {"help", no_argument, NULL, HELP},
    {NULL, 0, NULL, 0},
};

struct run_request {
    const char *command; /* the prefix of messages */
    bool is_print, is_anyway, is_help, has_lttng;
    char run_file[PATH_MAX];           /* "": the default */
    char text[2 * PRELOAD_CONFIG_MAX]; /* BLKIN_RUN of the environment, then the options' keys */
};

/* ---- options ---- */

/* Appends a key to the text. A key is a line, so a value must not contain a newline. */
static bool add_key(struct run_request *request, const char *key, const char *value)
{
    const size_t length = strlen(request->text);
    struct preload_config config;
    char wrong[PRELOAD_CONFIG_MAX];
    const char *expected;

    if (strpbrk(value, "\r\n") ||
        (size_t)snprintf(request->text + length, sizeof(request->text) - length, "%s%s=%s",
                         length ? "\n" : "", key, value) >= sizeof(request->text) - length) {
        fprintf(stderr, "%s: --%s: expected one line, and less than %d bytes of options\n",
                request->command, key, PRELOAD_CONFIG_MAX);
        return false;
    }
    preload_config_clear(&config);
    if (!preload_config_read(&config, request->text, wrong, &expected))
        return true;
    fprintf(stderr, "%s: \"%s\": expected %s\n", request->command, wrong, expected);
    return false;
}

/* Makes the path absolute, because a daemon changes its working folder. */
static bool set_run_file(struct run_request *request, const char *path)
{
    char folder[PATH_MAX] = "";
    int length;

    if (*path && *path != '/' && !getcwd(folder, sizeof(folder))) {
        fprintf(stderr, "%s: --run-file: the current folder: %s\n", request->command,
                strerror(errno));
        return false;
    }
    length = snprintf(request->run_file, sizeof(request->run_file), "%s%s%s", folder,
                      *folder ? "/" : "", path);
    if (*path && (size_t)length < sizeof(request->run_file))
        return true;
    fprintf(stderr, "%s: --run-file: expected the path of a file\n", request->command);
    return false;
}

static bool read_option(struct run_request *request, int option, int index)
{
    switch (option) {
    case KEY:
        return add_key(request, options[index].name, optarg);
    case RUN_FILE:
        return set_run_file(request, optarg);
    case LTTNG:
        request->has_lttng = true;
        return true;
    case ANYWAY:
        request->is_anyway = true;
        return true;
    case PRINT:
        request->is_print = true;
        return true;
    case HELP:
        request->is_help = true;
        return true;
    default: /* getopt has printed the error */
        return false;
    }
}

static bool read_options(struct run_request *request, int argc, char *argv[])
{
    const char *inherited = getenv("BLKIN_RUN");
    int option, index = 0;

    if (inherited && strlen(inherited) < PRELOAD_CONFIG_MAX)
        strcpy(request->text, inherited);
    while ((option = getopt_long(argc, argv, "+h", options, &index)) != -1) {
        if (!read_option(request, option, index)) {
            fprintf(stderr, "%s: see --help\n", request->command);
            return false;
        }
    }
    if (request->is_help || (request->is_print ? optind + 1 >= argc : optind < argc))
        return true;
    fprintf(stderr, "%s: expected %s; see --help\n", request->command,
            request->is_print ? "one UNIT at most with --print" : "a PROGRAM to run");
    return false;
}

/* ---- the library ---- */

/* Finds the library in a folder. folder: a path relative to the folder of this program. */
static bool find_in(const char *folder, char path[PATH_MAX])
{
    char self[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (length <= 0)
        return false;
    self[length] = '\0';
    *strrchr(self, '/') = '\0';
    return (size_t)snprintf(path, PATH_MAX, "%s/%s/" PRELOAD_FILE, self, folder) < PATH_MAX &&
           access(path, R_OK) == 0;
}

/* Searches the build tree, the installed folder, and the folders of a moved installation. */
static bool find_library(char path[PATH_MAX], struct error *error)
{
    char found[PATH_MAX];

    if (!find_in("../lib", found)) {
        (void)snprintf(found, sizeof(found), "%s/" PRELOAD_FILE, PRELOAD_DIR);
        if (access(found, R_OK) < 0 && !find_in("../lib/blkin", found))
            return error_set(error, "there is no " PRELOAD_FILE " in " PRELOAD_DIR
                                    ": install package blkin, or \"make install\"");
    }
    if (!realpath(found, path))
        return error_set(error, "%s: %s", found, strerror(errno));
    if (strpbrk(path, ": "))
        return error_set(error,
                         "%s: expected a path without blanks and colons, at which ld.so ends a "
                         "path: move BlkKin to another folder",
                         path);
    return true;
}

/* ---- the environment ---- */

/* Returns LD_PRELOAD with the library at the end, because a sanitizer's library must be the first.
 * Returns NULL when out of memory. */
static char *preload_list(const char *library)
{
    const char *others = getenv("LD_PRELOAD");
    char *list = NULL;

    if (!others || !*others)
        return strdup(library);
    if (strstr(others, library))
        return strdup(others);
    return asprintf(&list, "%s:%s", others, library) < 0 ? NULL : list;
}

/* Prints a variable in the syntax of systemd.exec(5). */
static void print_variable(const char *name, const char *value)
{
    printf("Environment=\"%s=", name);
    for (; *value; value++) {
        if (strchr("\"\\", *value))
            putchar('\\');
        if (*value == '%')
            putchar('%');
        putchar(*value == '\n' ? ',' : *value);
    }
    puts("\"");
}

static int print_variables(const struct run_request *request, const char *library)
{
    print_variable("LD_PRELOAD", library);
    if (request->text[0])
        print_variable("BLKIN_RUN", request->text);
    if (request->has_lttng)
        print_variable("BLKIN_LTTNG", "yes");
    if (request->run_file[0])
        print_variable("BLKIN_RUN_FILE", request->run_file);
    return fflush(stdout) == 0 ? 0 : 1;
}

static bool set_variables(const struct run_request *request, const char *library)
{
    char *list = preload_list(library);
    const bool is_set =
        list && setenv("LD_PRELOAD", list, 1) == 0 &&
        (!request->text[0] || setenv("BLKIN_RUN", request->text, 1) == 0) &&
        (!request->has_lttng || setenv("BLKIN_LTTNG", "yes", 1) == 0) &&
        (!request->run_file[0] || setenv("BLKIN_RUN_FILE", request->run_file, 1) == 0);

    free(list);
    return is_set;
}

/* ---- the command ---- */

/* Sets the variables for the program `path`, or prints them if `path` is NULL. Returns 0, or the
 * exit status after printing the reason. */
static int prepare(const struct run_request *request, const char *path, const char *unit)
{
    char library[PATH_MAX];
    struct error error = {""};

    if (!find_library(library, &error) || (path && !program_can_preload(path, library, &error))) {
        fprintf(stderr, "%s: %s\n", request->command, error.text);
        if (path && request->is_anyway)
            fprintf(stderr, "%s: %s runs untraced\n", request->command, path);
        return path && request->is_anyway ? 0 : STATUS_CANNOT;
    }
    if (!path && unit && !unit_print_drop_in(unit, library, &error)) {
        fprintf(stderr, "%s: %s\n", request->command, error.text);
        return STATUS_CANNOT;
    }
    if (!path && !unit)
        puts("[Service]");
    if (!path)
        return print_variables(request, library);
    if (set_variables(request, library))
        return 0;
    fprintf(stderr, "%s: out of memory\n", request->command);
    return STATUS_CANNOT;
}

int run_command(int argc, char *argv[])
{
    static struct run_request request;
    char path[PATH_MAX];
    int status;

    request.command = argv[0];
    if (!read_options(&request, argc, argv))
        return STATUS_USAGE;
    if (request.is_help) {
        fputs(usage, stdout);
        return 0;
    }
    if (request.is_print)
        return prepare(&request, NULL, argv[optind]);
    if (!program_find(argv[optind], path)) {
        fprintf(stderr, "%s: %s: %s\n", argv[0], argv[optind],
                errno == ENOENT ? "not found" : strerror(errno));
        return errno == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_RUN;
    }
    status = prepare(&request, path, NULL);
    if (status)
        return status;
    (void)execvp(path, argv + optind); /* runs a script without "#!", too, unlike execv() */
    fprintf(stderr, "%s: %s: %s\n", request.command, path, strerror(errno));
    return errno == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_RUN;
}
