/* SPDX-License-Identifier: BSD-2-Clause */
#include "read.h"

#include "babeltrace-plugin/base/http_client.h"
#include "babeltrace-plugin/rules/rules.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define TIMEOUT_MS 60000 /* for a URL */

/* More than any viewer can show. The limit keeps a wrong file from filling the memory. */
#define MAX_LENGTH ((size_t)1 << 30)

static bool append(struct buffer *bytes, const char *data, size_t length)
{
    if (!buffer_reserve(bytes, length)) {
        errno = length > MAX_LENGTH - bytes->length ? EFBIG : ENOMEM;
        return false;
    }
    memcpy(bytes->data + bytes->length, data, length);
    bytes->length += length;
    return true;
}

static bool read_stream(FILE *file, struct buffer *bytes)
{
    char block[65536];
    size_t length;

    while ((length = fread(block, 1, sizeof(block), file)) > 0) {
        if (!append(bytes, block, length))
            return false;
    }
    return !ferror(file);
}

static bool read_file(const char *path, struct buffer *bytes)
{
    const bool standard_input = strcmp(path, "-") == 0;
    FILE *file = standard_input ? stdin : fopen(path, "re");
    const bool done = file && read_stream(file, bytes);

    if (!done)
        fprintf(stderr, "blkin: cannot read \"%s\": %s\n", path, strerror(errno));
    if (file && !standard_input)
        fclose(file);
    return done;
}

int read_spawn(const char *const arguments[], const int files[3], pid_t *child)
{
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);

    if (error)
        return error;
    for (int i = 0; !error && i < 3; i++) {
        if (files[i] >= 0)
            error = posix_spawn_file_actions_adddup2(&actions, files[i], i);
    }
    if (!error)
        error = posix_spawnp(child, arguments[0], &actions, NULL,
                             (char *const *)(uintptr_t)arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* Returns a descriptor of the child's standard output, or -1 with errno set. */
static int read_start_child(const char *const arguments[], FILE *messages, pid_t *child)
{
    int ends[2], error;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    error = read_spawn(arguments, (const int[]){-1, ends[1], fileno(messages)}, child);
    close(ends[1]);
    if (!error)
        return ends[0];
    close(ends[0]);
    errno = error;
    return -1;
}

const char *source_rules_path;

char *read_params(const char *params, const char *rules)
{
    const size_t size =
        strlen("--params=,rules=\"\"") + strlen(params) + (rules ? 2 * strlen(rules) : 0) + 1;
    char *const text = malloc(size);
    int length = text ? snprintf(text, size, "--params=%s%s", params, rules ? ",rules=\"" : "") : 0;

    if (!text || !rules)
        return text;
    for (; *rules; rules++) {
        if (*rules == '"' || *rules == '\\')
            text[length++] = '\\';
        text[length++] = *rules;
    }
    memcpy(text + length, "\"", sizeof("\""));
    return text;
}

/* Returns false after printing an error in the rules. The sink would report the error, too, but
 * among many messages of babeltrace2. */
static bool rules_are_right(void)
{
    struct error error;
    struct rules *rules = source_rules_path ? rules_read(source_rules_path, &error) : NULL;
    const bool are_right = rules || !source_rules_path;

    if (!are_right)
        fprintf(stderr, "blkin: %s\n", error.text);
    rules_free(rules);
    return are_right;
}

/* Prints all messages, or only those of the sink, which are right also for a part of a trace. */
static void read_print_messages(FILE *messages, bool is_all)
{
    char *line = NULL;
    size_t size = 0;

    rewind(messages);
    while (getline(&line, &size, messages) > 0) {
        if (is_all || strncmp(line, "blkin", 5) == 0)
            fputs(line, stderr);
    }
    free(line);
}

bool source_is_partial;

/* Prints the messages, and an error for a bad exit status of babeltrace2. Returns whether the trace
 * or a part of it was read. */
static bool read_check_status(const char *path, int status, FILE *messages,
                              const struct buffer *bytes)
{
    source_is_partial = status != 0 && bytes->length > strlen("[\n]\n");
    read_print_messages(messages, !source_is_partial);
    if (source_is_partial)
        fprintf(
            stderr,
            "blkin: the trace \"%s\" is damaged: only what babeltrace2 read before the damage is "
            "shown; `babeltrace2 --output-format=dummy %s` says where the damage is\n",
            path, path);
    else if (status)
        fprintf(stderr,
                "blkin: cannot read the trace \"%s\": babeltrace2 has failed; its messages are "
                "above\n",
                path);
    return source_is_partial || status == 0;
}

bool read_babeltrace(const char *const arguments[], struct buffer *bytes)
{
    const int memory = memfd_create("messages", MFD_CLOEXEC);
    FILE *messages = memory < 0 ? NULL : fdopen(memory, "w+");
    pid_t child;
    const int output = messages ? read_start_child(arguments, messages, &child) : -1;
    FILE *file = output < 0 ? NULL : fdopen(output, "r");
    bool done = file && read_stream(file, bytes);
    int status = 0;

    if (!done)
        fprintf(stderr, "blkin: cannot read the trace \"%s\" with babeltrace2: %s\n", arguments[1],
                strerror(errno));
    if (file)
        fclose(file);
    if (output >= 0 && waitpid(child, &status, 0) == child && done)
        done = read_check_status(arguments[1], status, messages, bytes);
    if (messages)
        fclose(messages);
    return done;
}

/* Runs babeltrace2 with the sink, which makes spans of the recorded trace. */
static bool read_trace(const char *path, struct buffer *bytes)
{
    char *params =
        rules_are_right() ? read_params("endpoint=\"file:/dev/stdout\"", source_rules_path) : NULL;
    const char *const arguments[] = {"babeltrace2",       path,   "--component=sink.blkin.zipkin",
                                     "--log-level=ERROR", params, NULL};
    const bool done = params && read_babeltrace(arguments, bytes);

    free(params);
    return done;
}

static bool is_url(const char *source)
{
    return strncmp(source, "http://", 7) == 0 || strncmp(source, "https://", 8) == 0;
}

bool is_trace(const char *source)
{
    struct stat status;

    return !is_url(source) && stat(source, &status) == 0 && S_ISDIR(status.st_mode);
}

static size_t receive(char *data, size_t size, size_t count, void *bytes)
{
    return append(bytes, data, size * count) ? size * count : 0;
}

/* Converts the URL of a page in a browser to the URL of the API with its spans. */
static char *api_url(const char *url)
{
    static const char page[] = "/zipkin/traces/";
    const char *found = strstr(url, page), *id;
    char *changed = NULL;

    if (!found)
        return strdup(url);
    id = found + sizeof(page) - 1;
    if (asprintf(&changed, "%.*s/zipkin/api/v2/trace/%.*s", (int)(found - url), url,
                 (int)strcspn(id, "?#"), id) < 0)
        return NULL;
    return changed;
}

static bool read_url(const char *given, struct buffer *bytes)
{
    char *url = api_url(given);
    const struct http_setup setup = {
        .url = url, .timeout_ms = TIMEOUT_MS, .take_body = receive, .context = bytes};
    struct http_client client = {.curl = NULL};
    long status = 0;
    CURLcode code = CURLE_OUT_OF_MEMORY;

    if (url && http_client_open(&client, &setup)) {
        curl_easy_setopt(client.curl, CURLOPT_ACCEPT_ENCODING, "");
        code = curl_easy_perform(client.curl);
        curl_easy_getinfo(client.curl, CURLINFO_RESPONSE_CODE, &status);
    }
    if (code != CURLE_OK)
        fprintf(stderr, "blkin: cannot get %s: %s\n", given,
                client.reason[0] ? client.reason : curl_easy_strerror(code));
    else if (status == 404)
        fprintf(stderr, "blkin: cannot get %s: there is no such trace or page (status 404)\n",
                given);
    else if (status != 200)
        fprintf(stderr, "blkin: cannot get %s: the server answers with status %ld, expected 200\n",
                given, status);
    http_client_close(&client);
    free(url);
    return code == CURLE_OK && status == 200;
}

bool read_source(const char *source, struct buffer *bytes)
{
    *bytes = (struct buffer){.limit = MAX_LENGTH};
    if (is_trace(source))
        return read_trace(source, bytes);
    if (source_rules_path)
        fprintf(stderr, "blkin: --rules is not used: %s is not the FOLDER of a recorded trace\n",
                source_text(source));
    return is_url(source) ? read_url(source, bytes) : read_file(source, bytes);
}
