/* blkin rules: checks a file of rules, or runs babeltrace2 with the plugin on a trace.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "tools/base/commands.h"

#include "babeltrace-plugin/rules/rules.h"
#include "tools/reader/graph.h"
#include "tools/trace/read.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECONDS_MAX 86400

static const char usage[] =
#include "tools/rules/usage.txt.inc"
    ;

/* ---- live sessions by their short names ------------------------------------------------------ */

static bool session_is_named(const struct listed_session *session, const char *name)
{
    const size_t length = strlen(session->host);

    return strcmp(session->name, name) == 0 ||
           (strncmp(session->host, name, length) == 0 && name[length] == '/' &&
            strcmp(session->name, name + length + 1) == 0);
}

/*
 * Makes the session's URL for babeltrace2. name: NAME, HOST/NAME, or a URL; relayd: the relay
 * daemon at HOST[:PORT]. Returns false after printing the reason and the existing sessions.
 */
static bool session_url(const char *name, const char *relayd, char *url, size_t size)
{
    static struct listing listing;
    const struct listed_session *found = NULL;
    char relay[300];
    int count = 0;

    if (strstr(name, "://"))
        return snprintf(url, size, "%s", name) < (int)size;
    if (snprintf(relay, sizeof(relay), "net://%s%s", relayd, strchr(relayd, ':') ? "" : ":5344") >=
            (int)sizeof(relay) ||
        !listing_ask(relay, &listing)) {
        fprintf(stderr,
                "blkin rules: \"%s\" is not a folder, and for a live session of this name no relay "
                "daemon answers at %s: start it, or give --relayd=HOST:PORT\n",
                name, relay);
        return false;
    }
    for (int i = 0; i < listing.count; i++) {
        if (!session_is_named(&listing.sessions[i], name))
            continue;
        found = &listing.sessions[i];
        count++;
    }
    if (count == 1 && found->viewers > 0) {
        fprintf(stderr,
                "blkin rules: \"%s\" has a reader, such as blkin live, and a relay daemon allows "
                "only one: end that reader, or record the events in another live session\n",
                name);
        return false;
    }
    if (count == 1)
        return snprintf(url, size, "%s/host/%s/%s", relay, found->host, found->name) < (int)size;
    fprintf(stderr,
            "blkin rules: expected a folder, or one of the live sessions at %s, got \"%s\"\n",
            relay, name);
    for (int i = 0; i < listing.count; i++) {
        char text[520];

        (void)snprintf(text, sizeof(text), "%s/%s", listing.sessions[i].host,
                       listing.sessions[i].name);
        string_make_plain(text); /* the name may come from any user */
        fprintf(stderr, "  %s\n", text);
    }
    return false;
}

/* ---- rules ----------------------------------------------------------------------------------- */

/* Prints a note for each event of which several files make spans, because that may be a mistake. */
static void rules_print_shared_events(const struct rules *rules)
{
    for (size_t i = 0; i < rules->point_count; i++) {
        const struct rule_point *point = &rules->points[i];
        const struct rule_section *section = &rules->rules[point->owner].section;

        for (size_t k = 0; k < i && point->kind != POINT_LOOKUP; k++) {
            const struct rule_point *other = &rules->points[k];
            const struct rule_section *of_other = &rules->rules[other->owner].section;

            if (other->kind == POINT_LOOKUP || of_other->file == section->file ||
                !text_equal(other->pattern, point->pattern))
                continue;
            printf("note: %.*s is in \"%s\", line %u, and in \"%s\", line %u: both make spans\n",
                   (int)point->pattern.length, point->pattern.data, of_other->file, of_other->line,
                   section->file, section->line);
            break;
        }
    }
}

/* Prints the mistake, or if prints_success, that there is none. Returns the exit status. */
static int rules_check_file(const char *path, bool prints_success)
{
    struct error error;
    struct rules *rules = rules_read(path, &error);

    if (!rules) {
        fprintf(stderr, "blkin: %s\n", error.text);
        return 1;
    }
    if (prints_success) {
        printf("%s: %zu kinds of spans, %zu lookups: no errors\n", path, rules->count,
               rules->lookup_count - 1);
        rules_print_shared_events(rules);
    }
    rules_free(rules);
    return 0;
}

/* Runs babeltrace2 on a recorded trace, and prints the output. Prints the readable part of a
 * damaged trace. Returns the exit status. */
static int rules_read_trace(const char *const arguments[])
{
    struct buffer printed = {.limit = SIZE_MAX};
    const bool is_read = read_babeltrace(arguments, &printed);

    const bool is_printed =
        fwrite(printed.data ? printed.data : "", 1, printed.length, stdout) == printed.length &&
        fflush(stdout) == 0;

    if (!is_printed)
        fprintf(stderr, "blkin rules: cannot write to the standard output: %s\n", strerror(errno));
    free(printed.data);
    return is_read && is_printed && !source_is_partial ? 0 : 1;
}

/* Returns false after printing one line if the folder is no trace. babeltrace2 would print many. */
static bool rules_is_trace(const char *path)
{
    if (is_trace(path))
        return true;
    fprintf(stderr, "blkin rules: %s: expected the folder of a recorded trace\n", path);
    return false;
}

/* Lists all events of a recorded trace, or the events of some seconds of a live session. Returns
 * the exit status. */
static int rules_events(const char *source, const char *relayd, const char *seconds)
{
    char url[1024], params[64];
    const char *const arguments[] = {"babeltrace2",       url,    "--component=sink.blkin.events",
                                     "--log-level=ERROR", params, NULL};
    const char *const of_trace[] = {"babeltrace2", source, "--component=sink.blkin.events",
                                    "--log-level=ERROR", NULL};
    struct stat status;
    char *end;
    const long count = strtol(seconds, &end, 10);

    if (*end || count < 1 || count > SECONDS_MAX) {
        fprintf(stderr, "blkin rules: --seconds: expected a number of 1 to %d, got \"%s\"\n",
                SECONDS_MAX, seconds);
        return 2;
    }
    if (strchr("/.", source[0]) || stat(source, &status) == 0)
        return rules_is_trace(source) ? rules_read_trace(of_trace) : 1;
    if (!session_url(source, relayd, url, sizeof(url)))
        return 1;
    (void)snprintf(params, sizeof(params), "--params=seconds=%ld", count);
    fprintf(stderr, "blkin rules: counting the events of %s for %ld s\n", url, count);
    execvp(arguments[0], (char *const *)(uintptr_t)arguments);
    fprintf(stderr, "blkin rules: cannot run babeltrace2: %s\n", strerror(errno));
    return 1;
}

static int rules_try(const char *path, const char *trace)
{
    char *params =
        read_params("endpoint=\"file:/dev/null\",host-min-ms=-1,rules-report=\"-\"", path);
    const char *const arguments[] = {"babeltrace2",       trace,  "--component=sink.blkin.zipkin",
                                     "--log-level=ERROR", params, NULL};
    const bool is_right = rules_check_file(path, false) == 0 && rules_is_trace(trace);
    const int status = params && is_right ? rules_read_trace(arguments) : 1;

    free(params);
    return status;
}

int rules_command(int argc, char *argv[])
{
    static const struct option options[] = {{"relayd", required_argument, NULL, 'r'},
                                            {"seconds", required_argument, NULL, 's'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    const char *relayd = "localhost", *seconds = "5";
    char **operands;
    int option, count;

    while ((option = getopt_long(argc, argv, "h", options, NULL)) == 'r' || option == 's')
        *(option == 'r' ? &relayd : &seconds) = optarg;
    operands = argv + optind;
    count = argc - optind;
    if (option == 'h') {
        fputs(usage, stdout);
        return 0;
    }
    if (option == -1 && count == 2 && strcmp(operands[0], "check") == 0)
        return rules_check_file(operands[1], true);
    if (option == -1 && count == 2 && strcmp(operands[0], "events") == 0)
        return rules_events(operands[1], relayd, seconds);
    if (option == -1 && count == 3 && strcmp(operands[0], "try") == 0)
        return rules_try(operands[1], operands[2]);
    fprintf(stderr,
            "%s: expected check RULES, events TRACE or SESSION, or try RULES TRACE; --help prints "
            "the usage\n",
            argv[0]);
    return 2;
}
