/*
 * The configuration of the preload: right and wrong texts, and the file that changes it at run
 * time.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "libblkin/preload/config.h"

#include <fcntl.h>
#include <linux/securebits.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

static struct preload_config config;
static char wrong[PRELOAD_CONFIG_MAX];

static bool reads(const char *text)
{
    const char *expected;

    preload_config_clear(&config);
    return !preload_config_read(&config, text, wrong, &expected);
}

/* Returns the reason for which a text is refused, as "PART: EXPECTED". */
static const char *refusal_of(const char *text)
{
    static char said[2 * PRELOAD_CONFIG_MAX];
    const char *expected = "";

    preload_config_clear(&config);
    if (!preload_config_read(&config, text, wrong, &expected))
        return "nothing wrong";
    snprintf(said, sizeof(said), "%s: %s", wrong, expected);
    return said;
}

/* Is the text refused because of this part, with a reason that contains `expected`? */
static bool is_refused(const char *text, const char *part, const char *expected)
{
    const char *said = refusal_of(text);
    const bool is_right = strncmp(said, part, strlen(part)) == 0 && strstr(said, expected);

    if (!is_right)
        fprintf(stderr, "\"%s\" is refused with \"%s\"\n", text, said);
    return is_right;
}

TEST(test_defaults)
{
    CHECK(reads(""));
    CHECK(preload_config_has_port(&config, 1) && preload_config_has_port(&config, 65535));
    CHECK(preload_config_has_program(&config, "redis-server"));
    CHECK(preload_config_has_file(&config, "/var/lib/redis/appendonly.aof"));
    CHECK(config.file_calls == PRELOAD_FILES_AUTO && config.usage == PRELOAD_USAGE_UNSET);
    CHECK(config.least_ns == 0 && config.payload == 0 && !config.guesses_are_linked);
    CHECK_TEXT(config.service, "");
}

TEST(test_ports)
{
    CHECK(reads("ports=6379, 8000-8010 ,usage=2,"));
    CHECK(config.range_count == 2 && config.usage == 2);
    CHECK(preload_config_has_port(&config, 6379) && !preload_config_has_port(&config, 6380));
    CHECK(preload_config_has_port(&config, 8000) && preload_config_has_port(&config, 8010));
    CHECK(!preload_config_has_port(&config, 7999) && !preload_config_has_port(&config, 8011));
    CHECK(reads("ports=1\nports=2-65535") && !preload_config_has_port(&config, 1));
    CHECK(reads("ports=1\nports=") && preload_config_has_port(&config, 77));
    CHECK(is_refused("ports=0", "ports=0", "ports=6379"));
    CHECK(is_refused("ports=65536", "ports=65536", "ports=6379"));
    CHECK(is_refused("ports=99999999999999999999", "ports=9", "ports=6379"));
    CHECK(is_refused("ports=80,x", "x", "ports=6379"));
    CHECK(is_refused("ports=9-8", "ports=9-8", "ports=6379"));
    CHECK(is_refused("ports=-8", "ports=-8", "ports=6379"));
    CHECK(is_refused("ports=8-", "ports=8-", "ports=6379"));
}

TEST(test_many_ports)
{
    char text[PRELOAD_CONFIG_MAX] = "ports=1";

    for (int i = 2; i <= PRELOAD_RANGES_MAX; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), ",%d", i);
    CHECK(reads(text) && preload_config_has_port(&config, PRELOAD_RANGES_MAX));
    strcat(text, ",777");
    CHECK(is_refused(text, "777", "64 ports"));
}

TEST(test_globs)
{
    CHECK(reads("programs=nginx*,redis-server\nfiles=/var/*.aof ; /dev/sd?"));
    CHECK(preload_config_has_program(&config, "nginx-debug"));
    CHECK(preload_config_has_program(&config, "redis-server"));
    CHECK(!preload_config_has_program(&config, "redis-server2") &&
          !preload_config_has_program(&config, ""));
    CHECK(preload_config_has_file(&config, "/var/lib/redis/a.aof"));
    CHECK(preload_config_has_file(&config, "/dev/sda") &&
          !preload_config_has_file(&config, "/dev/sda1"));
    CHECK(!preload_config_has_file(&config, "/etc/passwd"));
    CHECK(reads("files=;") && preload_config_has_file(&config, "/etc/passwd"));
    CHECK(is_refused("programs=/usr/bin/nginx", "programs=/usr", "without their folder"));
}

TEST(test_words)
{
    CHECK(reads("file-calls=totals,min-us=100,guesses=link,payload=64,usage=0,service=front"));
    CHECK(config.file_calls == PRELOAD_FILES_TOTALS && config.least_ns == 100000);
    CHECK(config.guesses_are_linked && config.payload == 64 && config.usage == 0);
    CHECK_TEXT(config.service, "front");
    CHECK(reads("# ports=1, and more\r\n  usage = 1 \r\n\r\n") && config.usage == 1);
    CHECK(config.range_count == 0);
    CHECK(is_refused("file-calls=some", "file-calls=some", "each, totals or off"));
    CHECK(is_refused("file-calls=", "file-calls=", "each, totals or off"));
    CHECK(is_refused("usage=4", "usage=4", "0, 1, 2 or 3"));
    CHECK(is_refused("payload=65", "payload=65", "0 to 64"));
    CHECK(is_refused("guesses=no", "guesses=no", "mark or link"));
    CHECK(is_refused("seccomp=kill", "seccomp=kill", "rings, leave or trace"));
    CHECK(is_refused("min-us=1.5", "min-us=1.5", "microseconds"));
    CHECK(is_refused("usage=1,2", "2", "ports="));
    CHECK(is_refused("port=1", "port=1", "ports="));
    CHECK(is_refused("nonsense", "nonsense", "ports="));
}

/* Texts of the maximum length, and longer ones. */
TEST(test_lengths)
{
    char text[PRELOAD_CONFIG_MAX + 1] = "files=";

    while (strlen(text) < PRELOAD_CONFIG_MAX - 2)
        strcat(text, strlen(text) % 2 ? ";" : "a");
    CHECK(reads(text) && preload_config_has_file(&config, "a") &&
          !preload_config_has_file(&config, "aa"));
    strcpy(text, "service=");
    while (strlen(text) < strlen("service=") + PRELOAD_SERVICE_MAX - 1)
        strcat(text, "s");
    CHECK(reads(text));
    strcat(text, "s");
    CHECK(is_refused(text, "service=", "less than 64"));
    memset(text, ' ', PRELOAD_CONFIG_MAX);
    CHECK(is_refused(text, " ", "less than 1024"));
}

/* ---- the file ---- */

static void write_file(const char *path, const char *text)
{
    static time_t changed = 1000000000;
    const struct timespec time = {.tv_sec = ++changed}, times[2] = {time, time};
    FILE *file = fopen(path, "w");

    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
    CHECK(utimensat(AT_FDCWD, path, times, 0) == 0);
}

/* Calls preload_config_refresh() with this time. Returns its message. */
static const char *said_at(uint64_t now_ns, const char *path)
{
    static char said[4096];
    const int kept = dup(STDERR_FILENO);
    FILE *file;

    CHECK(kept >= 0 && freopen(path, "w", stderr));
    preload_config_refresh(now_ns);
    fflush(stderr);
    dup2(kept, STDERR_FILENO);
    close(kept);
    file = fopen(path, "r");
    said[file ? fread(said, 1, sizeof(said) - 1, file) : 0] = '\0';
    if (file)
        fclose(file);
    return said;
}

static void test_file(const char *folder)
{
    char path[256], log[256];
    unsigned generation;

    snprintf(path, sizeof(path), "%s/run", folder);
    snprintf(log, sizeof(log), "%s/stderr", folder);
    setenv("BLKIN_RUN_FILE", path, 1);
    setenv("BLKIN_RUN", "ports=7,usage=1", 1);
    preload_config_init(); /* a second time: a constructor has called it before main() */
    CHECK(preload_config()->is_traced && preload_config()->range_count == 1 &&
          preload_config()->usage == 1);

    write_file(path, "usage=2\nprograms=other");
    CHECK_TEXT(said_at(SECOND, log), "");
    CHECK(preload_config()->usage == 2 && preload_config()->range_count == 1);

    /* the file is read once a second; a wrong text is reported once, and changes nothing */
    generation = preload_config()->generation;
    write_file(path, "usage=9");
    CHECK_TEXT(said_at(SECOND + SECOND / 2, log), "");
    CHECK(strstr(said_at(2 * SECOND, log), "\"usage=9\" is not usage=0, 1, 2 or 3"));
    CHECK_TEXT(said_at(3 * SECOND, log), "");
    CHECK(preload_config()->usage == 2 && preload_config()->generation == generation);

    /* keys that the file does not name have the environment's values */
    write_file(path, "");
    CHECK_TEXT(said_at(4 * SECOND, log), "");
    CHECK(preload_config()->usage == 1 && preload_config()->is_traced &&
          preload_config()->range_count == 1);
    CHECK(preload_config()->generation != generation);
    CHECK(unlink(path) == 0);
    CHECK_TEXT(said_at(5 * SECOND, log), "");
    CHECK(preload_config()->usage == 1);
    for (int i = 0; i < 20; i++) {
        snprintf(wrong, sizeof(wrong), "min-us=%d", i + 1);
        write_file(path, wrong);
        CHECK_TEXT(said_at((unsigned)(6 + i) * SECOND, log), "");
        CHECK(preload_config()->least_ns == (unsigned)(i + 1) * UINT64_C(1000));
    }
    CHECK(unlink(path) == 0 && unlink(log) == 0);
}

/* A file that other users can write has no effect, until its mode is right. */
static void test_trust(const char *folder)
{
    static const mode_t modes[] = {0666, 0664, 0622};
    unsigned seconds = 100;
    char path[256], log[256];

    snprintf(path, sizeof(path), "%s/run", folder);
    snprintf(log, sizeof(log), "%s/stderr", folder);
    for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
        write_file(path, "usage=3");
        CHECK(chmod(path, modes[i]) == 0);
        CHECK(strstr(said_at(++seconds * SECOND, log), "not read, because it is of user"));
        CHECK_TEXT(said_at(++seconds * SECOND, log), "");
        CHECK(preload_config()->usage == 1);
        CHECK(chmod(path, 0644) == 0);
        CHECK_TEXT(said_at(++seconds * SECOND, log), "");
        CHECK(preload_config()->usage == 3);
        write_file(path, "");
        CHECK_TEXT(said_at(++seconds * SECOND, log), "");
        CHECK(preload_config()->usage == 1);
    }
    if (geteuid() == 0) {
        write_file(path, "usage=3");
        CHECK(chown(path, 65534, 65534) == 0);
        CHECK(strstr(said_at(++seconds * SECOND, log), "it must belong to root or to user 0"));
        CHECK(preload_config()->usage == 1);
        /* the owner may be the effective user, as in daemons that begin as root */
        CHECK(prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) == 0 && seteuid(65534) == 0);
        CHECK_TEXT(said_at(++seconds * SECOND, "/dev/null"), "");
        CHECK(seteuid(0) == 0 && prctl(PR_SET_SECUREBITS, 0) == 0);
        CHECK(preload_config()->usage == 3);
    }
    CHECK(unlink(path) == 0 && unlink(log) == 0);
}

/* The file is replaced by one of the same size and modification time, as by cp -p or rsync. */
static void test_kept_time(const char *folder)
{
    char path[256], other[256], log[256];
    struct stat status;

    snprintf(path, sizeof(path), "%s/run", folder);
    snprintf(other, sizeof(other), "%s/new", folder);
    snprintf(log, sizeof(log), "%s/stderr", folder);
    write_file(path, "usage=2");
    CHECK_TEXT(said_at(201 * SECOND, log), "");
    CHECK(preload_config()->usage == 2 && stat(path, &status) == 0);
    write_file(other, "usage=3");
    CHECK(utimensat(AT_FDCWD, other, (struct timespec[]){status.st_atim, status.st_mtim}, 0) == 0);
    CHECK(rename(other, path) == 0);
    CHECK_TEXT(said_at(202 * SECOND, log), "");
    CHECK(preload_config()->usage == 3);
    CHECK(unlink(path) == 0 && unlink(log) == 0);
}

int main(void)
{
    char folder[200];

    check_run();
    snprintf(folder, sizeof(folder), "%s/config.XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    CHECK(mkdtemp(folder));
    (void)umask(022);
    test_file(folder);
    test_trust(folder);
    test_kept_time(folder);
    CHECK(rmdir(folder) == 0);
    return check_status();
}
