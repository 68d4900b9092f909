/* blkin doctor: explains why no traces appear.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"

#include "babeltrace-plugin/base/file.h"
#include "babeltrace-plugin/base/unix_socket.h"
#include "tools/base/commands.h"
#include "tools/base/process.h"
#include "tools/base/text.h"

#include <glob.h>
#include <jansson.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
#include "tools/doctor/usage.txt.inc"
    ;

#define DOCTOR_LIMIT_MS 6000 /* for a group of checks */

static const struct check_group groups[] = {
    {"version", check_versions, FOR_LIVE | FOR_AGENT, NULL, "ldconfig; lttng --version"},
    {"service", check_service, FOR_LIVE | FOR_AGENT, NULL,
     "systemctl restart blkin-live or blkin-agent"},
    {"sessiond", check_sessiond, FOR_LIVE, NULL, "systemctl restart lttng-sessiond"},
    {"sessiond.answers", check_sessiond_answer, FOR_LIVE, "sessiond.runs",
     "is lttng-sessiond stopped (state T)? kill -CONT it, or systemctl restart lttng-sessiond; if "
     "relayd is bad, too, repair relayd first: LTTng 2.16 waits for the relay daemon"},
    {"rings", check_rings, FOR_AGENT, NULL, NULL},
    {"program", check_programs, FOR_LIVE, "sessiond.answers", "systemctl restart lttng-sessiond"},
    {"preload", check_preload, FOR_LIVE | FOR_AGENT, NULL, NULL},
    {"sampling", check_sampling, FOR_LIVE | FOR_AGENT, NULL, NULL},
    {"rules", check_rules, FOR_AGENT, NULL, NULL},
    {"session", check_session, FOR_LIVE, "sessiond.answers", "systemctl restart lttng-sessiond"},
    {"relayd.address", check_relayd_address, FOR_LIVE, NULL, NULL},
    /* before the channel, where LTTng 2.16 waits for the relay daemon */
    {"relayd", check_relayd, FOR_LIVE, NULL,
     "lttng-relayd is stopped (kill -CONT it, or systemctl restart blkin-live), or another program "
     "has its port"},
    {"session.channel", check_channel, FOR_LIVE, NULL, "systemctl restart lttng-sessiond"},
    {"host.session", check_host_session, FOR_LIVE, "session.channel",
     "systemctl restart lttng-sessiond"},
    {"host", check_metrics, FOR_LIVE | FOR_AGENT, NULL,
     "is blkin agent stopped (state T)? kill -CONT it, or systemctl restart blkin-agent"},
    /* before the viewer, which needs plugin and collector */
    {"plugin", check_plugin, FOR_LIVE | FOR_AGENT, NULL, NULL},
    {"collector", check_collector, FOR_LIVE | FOR_AGENT, NULL,
     "check the network, and endpoint in blkin.conf"},
    {"relayd.session", check_relayd_session, FOR_LIVE, NULL, "systemctl restart blkin-live"},
    {"work", check_work, FOR_WORK, NULL, "check that the brokers answer, and input in blkin.conf"},
    {"clock", check_clock, FOR_LIVE | FOR_AGENT | FOR_WORK, NULL, NULL},
    {"disk", check_disk, FOR_LIVE | FOR_AGENT | FOR_WORK, NULL,
     "a file system does not answer: df -h"},
};
#define GROUPS (sizeof(groups) / sizeof(groups[0]))

/* ---- the configuration ----------------------------------------------------------------------- */

static bool is_json, is_quiet;
static const char *section, *pid;
static const struct config_flag flags[] = {{"json", &is_json, NULL},
                                           {"pid", NULL, &pid},
                                           {"quiet", &is_quiet, NULL},
                                           {"section", NULL, &section},
                                           {NULL, NULL, NULL}};

static bool is_listening(const char *folder, const char *service)
{
    struct error ignored;
    GUARD_FD int fd = -1;
    char path[600];

    (void)snprintf(path, sizeof(path), "%s/%s.sock", folder, service);
    fd = unix_socket_connect(SOCK_STREAM, path, &ignored);
    return fd >= 0 || errno == EAGAIN; /* the service hangs, and its queue is full */
}

static const char *const sections[] = {"live", "agent", "work"};
#define SECTIONS (sizeof(sections) / sizeof(sections[0]))

/* Processes of this host. */
struct running {
    bool worker, sessiond;
};

static void take_running(void *context, struct process *process)
{
    struct running *running = context;

    running->worker |= process_is_command(process, "work");
    running->sessiond |= strcmp(process->name, "lttng-sessiond") == 0;
}

/* A worker has no socket, so the function looks for its process. The root has a socket. */
static bool service_is_here(const char *folder, const char *service)
{
    struct running running = {false, false};

    if (strcmp(service, "work") != 0)
        return is_listening(folder, service);
    process_each(take_running, &running);
    return running.worker || is_listening(folder, "work-root");
}

/* Returns whether the unit starts at boot, or a killed service has left its socket. The units of
 * "work" are blkin-work@N and blkin-work-root, and only the root has a socket. */
static bool service_should_be_here(const char *folder, const char *service)
{
    char path[600];
    glob_t found;
    bool is_enabled;

    (void)snprintf(path, sizeof(path),
                   "/etc/systemd/system/multi-user.target.wants/blkin-%s[-.@]*service", service);
    is_enabled = glob(path, GLOB_NOSORT, NULL, &found) == 0;
    globfree(&found);
    (void)snprintf(path, sizeof(path), "%s/%s%s.sock", folder, service,
                   strcmp(service, "work") == 0 ? "-root" : "");
    return is_enabled || access(path, F_OK) == 0;
}

/* Returns the service to check: the running one, else one that should run. If there is none, "live"
 * on a host with LTTng's session daemon, else "agent". */
static const char *guess_section(const struct config *config)
{
    const char *folder = config_text(config, "runtime-dir");
    struct running running = {false, false};

    for (size_t i = 0; i < SECTIONS; i++) {
        if (service_is_here(folder, sections[i]))
            return sections[i];
    }
    for (size_t i = 0; i < SECTIONS; i++) {
        if (service_should_be_here(folder, sections[i]))
            return sections[i];
    }
    process_each(take_running, &running);
    return running.sessiond ? "live" : "agent";
}

/* Reports the other running services. */
static void tell_of_others(const struct doctor *checked)
{
    const char *folder = config_text(checked->config, "runtime-dir");

    for (size_t i = 0; i < SECTIONS; i++) {
        if (!is_about(checked, sections[i]) && service_is_here(folder, sections[i]))
            saw(LEVEL_OK, "service.others",
                "blkin %s runs here too: check it with blkin doctor --section=%s", sections[i],
                sections[i]);
    }
}

static bool is_section(const char *name)
{
    for (size_t i = 0; i < SECTIONS; i++) {
        if (strcmp(name, sections[i]) == 0)
            return true;
    }
    return false;
}

static bool is_pid(const char *text)
{
    return *text && strspn(text, "0123456789") == strlen(text) && strlen(text) < 10 &&
           strtol(text, NULL, 10) > 0;
}

/* Writes, for example, "/etc/blkin/blkin.conf (of user root, mode 600)". */
static void describe_file(const char *path, char *text, size_t size)
{
    const struct passwd *owner;
    struct stat status;

    (void)snprintf(text, size, "%s", path);
    if (stat(path, &status) != 0)
        return;
    owner = getpwuid(status.st_uid);
    (void)snprintf(text, size, "%s (of user %s, mode %03o)", path, owner ? owner->pw_name : "?",
                   (unsigned)(status.st_mode & 07777));
}

/* Reports a file that this user cannot read. The services' user may be able to read it. */
static void tell_of_unreadable(const char *path)
{
    const struct passwd *user;
    char file[PATH_MAX + 128];

    describe_file(path, file, sizeof(file));
    user = getpwuid(geteuid());
    saw(LEVEL_NOTE, "config.file",
        "%s cannot be read by user %s: the checks below run with the defaults" MEND
        "sudo blkin doctor",
        file, user ? user->pw_name : "?");
}

/* Returns the user of the services: the owner of state-dir, or the package's user. */
static const struct passwd *service_user(const struct config *config)
{
    struct stat status;

    if (geteuid() != 0)
        return NULL;
    if (stat(config_text(config, "state-dir"), &status) == 0)
        return status.st_uid ? getpwuid(status.st_uid) : NULL;
    return getpwnam("blkin");
}

/* Checks that the services' user may read the file: root may read any file. */
static void check_readers(const struct config *config)
{
    const char *path = config_path(config);
    const struct passwd *user = service_user(config);
    char file[PATH_MAX + 128], name[64];

    if (!user || process_user_reads(user, path)) {
        saw(LEVEL_OK, "config.file", "%s is right", path);
        return;
    }
    /* describe_file() overwrites the passwd entry */
    (void)snprintf(name, sizeof(name), "%s", user->pw_name);
    describe_file(path, file, sizeof(file));
    saw(LEVEL_BAD, "config.file",
        "%s cannot be read by user %s, whom the services run as: they refuse to start" MEND
        "chown root:%s %s; chmod 640 %s",
        file, name, name, path, path);
}

/* Reports whether the configuration file is there and readable. */
static void check_file(const struct doctor *checked)
{
    if (config_unreadable(checked->config))
        tell_of_unreadable(config_unreadable(checked->config));
    else if (config_path(checked->config))
        check_readers(checked->config);
    else
        saw(LEVEL_OK, "config.file", "there is no /etc/blkin/blkin.conf: the defaults apply");
}

/* Returns the configuration of the section; NULL with *status set to the exit status, after
 * printing the reason. */
static struct config *read_config(struct doctor *checked, int argc, char *argv[], int *status)
{
    static struct config_request request = {.usage = usage, .flags = flags, .is_view = true};
    struct error error = {""};
    struct config *config;

    request.error = &error;
    checked->config = config = config_read(&request, argc, argv, status);
    request.error = NULL;
    if (!config && *status) {
        saw(LEVEL_BAD, "config.file",
            "%s" MEND "blkin config check shows all errors; the checks below run without the file",
            error.text);
        request.is_without_file = true;
        config = config_read(&request, argc, argv, status);
    }
    if (!config)
        return NULL;
    if (config_operands(config) > 0 || (section && !is_section(section)) || (pid && !is_pid(pid))) {
        fprintf(stderr, "%s: expected %s\n", argv[0],
                config_operands(config) > 0 ? "no argument"
                : pid && !is_pid(pid)       ? "the number of a process: --pid=1234"
                                            : "--section=live, agent or work");
        config_free(config);
        *status = 2;
        return NULL;
    }
    if (checked->config)
        check_file(checked);
    request.section = checked->section = section ? section : guess_section(config);
    checked->pid = pid ? (pid_t)strtol(pid, NULL, 10) : 0;
    config_free(config);
    return config_read(&request, argc, argv, status);
}

/* ---- output ---------------------------------------------------------------------------------- */

static const char *const names[LEVELS] = {"ok", "note", "bad", "skipped"};

static unsigned count_of(enum level level)
{
    const struct findings *findings = findings_all();
    unsigned count = 0;

    for (unsigned i = 0; i < findings->count; i++)
        count += findings->list[i].level == level;
    return count;
}

#define DOCTOR_INDENT 27

/* Prints text behind DOCTOR_INDENT columns, with line breaks between words. */
static void print_wrapped(const char *text, size_t width)
{
    while (width > 2 * DOCTOR_INDENT && strlen(text) > width - DOCTOR_INDENT) {
        size_t length = width - DOCTOR_INDENT;

        while (length && text[length] != ' ')
            length--;
        if (length == 0)
            length = strcspn(text, " ");
        if (text[length] == '\0')
            break;
        printf("%.*s\n%*s", (int)length, text, DOCTOR_INDENT, "");
        text += length + 1;
    }
    puts(text);
}

/* Prints the name of the checked service, the reason for this choice, and the option for another
 * one. */
static void print_view(const struct doctor *checked)
{
    const char *folder = config_text(checked->config, "runtime-dir");
    const char *why = section ? "as --section asks"
                      : service_is_here(folder, checked->section)
                          ? "which runs here"
                          : "because no service was found here";
    char others[64] = "";

    for (size_t i = 0; i < SECTIONS; i++) {
        if (!is_about(checked, sections[i]))
            string_list_add(others, sizeof(others), sections[i]);
    }
    printf("These checks are for blkin %s, %s. For another: --section=NAME (%s).\n",
           checked->section, why, others);
}

static void print_table(const struct doctor *checked)
{
    const struct findings *findings = findings_all();
    static const char *const colours[LEVELS] = {"\033[32m", "\033[33m", "\033[1;31m", "\033[2m"};
    static const char *const short_names[LEVELS] = {"ok  ", "note", "BAD ", "-   "};
    const bool is_coloured = isatty(STDOUT_FILENO) && !getenv("NO_COLOR");
    const size_t width = isatty(STDOUT_FILENO) ? screen().width : 0; /* 0: no line breaks */

    print_view(checked);
    for (unsigned i = 0; i < findings->count; i++) {
        const struct finding *finding = &findings->list[i];

        if (is_quiet && finding->level != LEVEL_BAD && finding->level != LEVEL_NOTE)
            continue;
        printf("%s%s%s  %-21s", is_coloured ? colours[finding->level] : "",
               short_names[finding->level], is_coloured ? "\033[0m" : "", finding->id);
        print_wrapped(finding->saw, width);
        if (finding->mend[0]) {
            printf("%*s", DOCTOR_INDENT, "-> ");
            print_wrapped(finding->mend, width);
        }
    }
    if (count_of(LEVEL_BAD) == 0)
        printf("All is well for blkin %s", checked->section);
    else
        printf("%u bad for blkin %s: begin with the first", count_of(LEVEL_BAD), checked->section);
    printf(" (%u ok, %u notes, %u skipped).\n", count_of(LEVEL_OK), count_of(LEVEL_NOTE),
           count_of(LEVEL_SKIPPED));
}

static void print_json(const struct doctor *checked)
{
    const struct findings *findings = findings_all();
    json_t *checks = json_array();
    json_t *document;

    for (unsigned i = 0; i < findings->count; i++) {
        const struct finding *finding = &findings->list[i];
        json_t *check = json_pack("{s:s, s:s, s:s}", "id", finding->id, "level",
                                  names[finding->level], "saw", finding->saw);

        if (check && finding->mend[0])
            (void)json_object_set_new(check, "mend", json_string(finding->mend));
        (void)json_array_append_new(checks, check);
    }
    document = json_pack("{s:s, s:s, s:b, s:o}", "version", BLKIN_RELEASE, "section",
                         checked->section, "well", count_of(LEVEL_BAD) == 0, "checks", checks);
    if (document && json_dumpf(document, stdout, JSON_INDENT(2)) == 0)
        putchar('\n');
    json_decref(document);
}

/* ---- all checks ------------------------------------------------------------------------------ */

static void run_groups(const struct doctor *checked)
{
    const unsigned of_section = is_about(checked, "live")    ? FOR_LIVE
                                : is_about(checked, "agent") ? FOR_AGENT
                                                             : FOR_WORK;

    (void)snprintf(checked->facts->session_name, sizeof(checked->facts->session_name), "%s",
                   config_text(checked->config, "session"));
    tell_of_others(checked);
    for (size_t i = 0; i < GROUPS; i++) {
        if (groups[i].sections & of_section)
            group_run(checked, &groups[i], DOCTOR_LIMIT_MS);
    }
}

int doctor_command(int argc, char *argv[])
{
    struct doctor checked = {.facts = findings_open()};
    struct config *config;
    int status = 1;

    if (!checked.facts) {
        perror(argv[0]);
        return 1;
    }
    config = read_config(&checked, argc, argv, &status);
    if (!config)
        return status;
    checked.config = config;
    run_groups(&checked);
    if (is_json)
        print_json(&checked);
    else
        print_table(&checked);
    config_free(config);
    return count_of(LEVEL_BAD) > 0;
}
