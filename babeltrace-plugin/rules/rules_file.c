/*
 * Reads rules from files, folders and shipped files, and collects the rules for events of a name.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "rules_parts.h"

#include "babeltrace-plugin/base/hash.h"
#include "babeltrace-plugin/base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static bool rules_read_fd(struct rules_reader *reader, int fd)
{
    struct stat status;
    struct text text;
    bool has_worked;
    char *data;

    if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || status.st_size > RULES_FILE_MAX) {
        error_set(reader->error, "rules \"%s\": expected a regular file of up to %u bytes",
                  reader->name, RULES_FILE_MAX);
        return false;
    }
    text.length = (size_t)status.st_size;
    data = malloc(text.length + 1);
    text.data = data;
    has_worked = data && read_at(fd, data, text.length, 0) == text.length;
    if (!has_worked)
        error_set(reader->error, "rules \"%s\": %s", reader->name,
                  data ? "cannot be read" : "out of memory");
    has_worked = has_worked && rules_add(reader, text);
    free(data);
    return has_worked;
}

static bool rules_read_file(struct rules_reader *reader, const char *path)
{
    char *name = rules_alloc(reader, strlen(path) + 1);
    int fd;
    bool has_worked;

    if (!name)
        return false;
    reader->name = strcpy(name, path);
    reader->points_before = reader->rules->point_count;
    reader->rule = NULL;
    reader->lookup = NULL;
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        error_set(reader->error, "rules \"%s\": cannot be opened: %s", path, strerror(errno));
        return false;
    }
    has_worked = rules_read_fd(reader, fd);
    close(fd);
    return has_worked;
}

static int rules_is_rules_file(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');

    return entry->d_name[0] != '.' && dot && strcmp(dot, ".rules") == 0;
}

static bool rules_read_folder(struct rules_reader *reader, const char *path)
{
    struct dirent **entries;
    const int count = scandir(path, &entries, rules_is_rules_file, alphasort);
    bool has_worked = count > 0;

    if (count <= 0)
        error_set(reader->error, "rules \"%s\": expected a folder with files NAME.rules", path);
    for (int i = 0; i < count; i++) {
        char file[PATH_MAX +
                  sizeof(entries[i]->d_name)]; /* open(2) refuses a path that is too long */

        (void)snprintf(file, sizeof(file), "%s/%s", path, entries[i]->d_name);
        has_worked = has_worked && rules_read_file(reader, file);
        free(entries[i]);
    }
    if (count >= 0)
        free((void *)entries);
    return has_worked;
}

/* The lookup RULES_PROCESS_NAMES. LTTng's statedump has the names. */
static const char process_names[] = "[lookup process names]\n"
                                    "event = lttng_ust_statedump:procname\n"
                                    "key = $vpid\n"
                                    "value = procname\n";

static struct rules *rules_new(struct rules_reader *reader, struct error *error)
{
    struct rules *rules = calloc(1, sizeof(*rules));

    error->text[0] = '\0';
    *reader = (struct rules_reader){.rules = rules, .error = error, .name = "process names"};
    if (!rules || !table_init(&rules->classes)) {
        error_set(error, "rules: out of memory");
        free(rules);
        return NULL;
    }
    if (rules_add(reader, text_of(process_names))) {
        reader->lookup = NULL;
        return rules;
    }
    rules_free(rules);
    return NULL;
}

static struct rules *rules_checked(struct rules_reader *reader, bool has_worked)
{
    if (has_worked && rules_check(reader))
        return reader->rules;
    rules_free(reader->rules);
    return NULL;
}

/* Reads a file, a folder, or a file that BlkKin ships. */
static bool rules_read_path(struct rules_reader *reader, const char *path)
{
    struct stat status;
    char shipped[PATH_MAX];
    const bool is_there = stat(path, &status) == 0;

    if (is_there && S_ISDIR(status.st_mode))
        return rules_read_folder(reader, path);
    if (is_there || strchr(path, '/') ||
        snprintf(shipped, sizeof(shipped), RULES_DIR "/%s.rules", path) >= (int)sizeof(shipped))
        return rules_read_file(reader, path);
    if (stat(shipped, &status) == 0)
        return rules_read_file(reader, shipped);
    error_set(reader->error, "rules \"%s\": there is neither such a file or folder, nor \"%s\"",
              path, shipped);
    return false;
}

static bool rules_read_list(struct rules_reader *reader, struct text paths)
{
    while (paths.length) {
        const struct text all = paths, path = text_trim(text_take(&paths, ','));
        char string[PATH_MAX];

        if (!path.length || path.length >= sizeof(string)) {
            error_set(reader->error,
                      "rules \"%.*s\": expected files, folders or names with commas in between",
                      (int)text_cut(all, 80).length, all.data);
            return false;
        }
        *text_copy(string, path) = '\0';
        if (!rules_read_path(reader, string))
            return false;
    }
    return true;
}

struct rules *rules_read(const char *paths, struct error *error)
{
    struct rules_reader reader;
    struct stat status;

    if (!rules_new(&reader, error))
        return NULL;
    reader.name = paths;
    return rules_checked(&reader, stat(paths, &status) == 0
                                      ? rules_read_path(&reader, paths)
                                      : rules_read_list(&reader, text_of(paths)));
}

struct rules *rules_parse(struct text text, const char *name, struct error *error)
{
    struct rules_reader reader;

    if (!rules_new(&reader, error))
        return NULL;
    reader.name = name;
    return rules_checked(&reader, rules_add(&reader, text));
}

static void rules_free_class(struct table_link *link)
{
    free(caa_container_of(link, struct rule_class, in_table));
}

void rules_free(struct rules *rules)
{
    if (!rules)
        return;
    table_destroy(&rules->classes, rules_free_class);
    for (size_t i = 0; i < rules->block_count; i++)
        free(rules->blocks[i]);
    free((void *)rules->blocks);
    free(rules->rules);
    free(rules->lookups);
    free(rules->points);
    free(rules->fields);
    free(rules);
}

/* ---- classes --------------------------------------------------------------------------------- */

/* Returns true if the name fits the pattern: "*" is any text, "?" any byte. The time is at most
 * proportional to the product of both lengths, because only the last "*" is retried. */
static bool pattern_fits(struct text pattern, struct text name)
{
    size_t p = 0, n = 0, star = SIZE_MAX, from = 0;

    while (n < name.length) {
        if (p < pattern.length && pattern.data[p] == '*') {
            star = p++;
            from = n;
        } else if (p < pattern.length &&
                   (pattern.data[p] == '?' || pattern.data[p] == name.data[n])) {
            p++;
            n++;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            n = ++from;
        } else {
            return false;
        }
    }
    while (p < pattern.length && pattern.data[p] == '*')
        p++;
    return p == pattern.length;
}

static void class_add_field(struct rule_class *class, uint16_t field)
{
    if (field == RULE_NO_FIELD || class->slots[field] != RULE_NO_FIELD)
        return;
    class->fields[class->field_count] = field;
    class->slots[field] = (uint16_t) class->field_count++;
}

static void class_add_fields(struct rule_class *class, const struct rule_fields *fields)
{
    for (size_t i = 0; i < fields->count; i++)
        class_add_field(class, fields->fields[i]);
}

/* Adds the fields that every event of the point needs. */
static void class_add_first(struct rule_class *class, const struct rules *rules,
                            const struct rule_point *point)
{
    if (point->condition.count)
        class_add_field(class, point->condition.tests[0].field);
    else if (point->kind == POINT_LOOKUP)
        class_add_fields(class, &rules->lookups[point->owner].key);
    else if (point->kind != POINT_EVENT)
        class_add_fields(class, &rules->rules[point->owner].key);
}

static void class_add_all(struct rule_class *class, const struct rules *rules,
                          const struct rule_point *point)
{
    for (size_t i = 0; i < point->condition.count; i++)
        class_add_field(class, point->condition.tests[i].field);
    for (size_t i = 0; i < point->rename_count; i++)
        class_add_field(class, point->renames[i].field);
    if (point->kind == POINT_EVENT)
        class_add_field(class, point->time_field);
    if (point->kind == POINT_LOOKUP) {
        class_add_fields(class, &rules->lookups[point->owner].key);
        class_add_field(class, rules->lookups[point->owner].value);
    } else {
        const struct span_rule *rule = &rules->rules[point->owner];

        class_add_fields(class, &rule->key);
        class_add_fields(class, &rule->parent_fields);
        class_add_fields(class, &rule->stored);
        class->wants_all |= rule->tags_all;
    }
}

static struct rule_class *class_new(const struct rules *rules, struct text name)
{
    const size_t fields = rules->field_count * sizeof(uint16_t);
    const size_t points = rules->point_count * sizeof(struct rule_point *);
    struct rule_class *class = malloc(sizeof(*class) + points + 2 * fields + name.length);
    char *end;

    if (!class)
        return NULL;
    *class = (struct rule_class){.points = (const struct rule_point **)(void *)(class + 1)};
    class->slots = (uint16_t *)(void *)((char *)(class + 1) + points);
    class->fields = class->slots + rules->field_count;
    memset(class->slots, 0xff, fields);
    end = (char *)(class->fields + rules->field_count);
    class->name = (struct text){end, name.length};
    (void)text_copy(end, name);
    return class;
}

static struct rule_class *class_make(const struct rules *rules, struct text name)
{
    struct rule_class *class = class_new(rules, name);

    if (!class)
        return NULL;
    for (int kind = POINT_LOOKUP; kind <= POINT_MARK; kind++) {
        for (size_t i = 0; i < rules->point_count; i++) {
            if ((int)rules->points[i].kind == kind && pattern_fits(rules->points[i].pattern, name))
                class->points[class->point_count++] = &rules->points[i];
        }
    }
    for (size_t i = 0; i < class->point_count; i++)
        class_add_first(class, rules, class->points[i]);
    class->first_count = class->field_count;
    for (size_t i = 0; i < class->point_count; i++)
        class_add_all(class, rules, class->points[i]);
    return class;
}

static bool rules_have_name(const struct rules *rules, struct text name)
{
    for (size_t i = 0; i < rules->point_count; i++) {
        if (pattern_fits(rules->points[i].pattern, name))
            return true;
    }
    return false;
}

const struct rule_class *rules_class(struct rules *rules, struct text name, bool *has_no_memory)
{
    const uint64_t hash = hash_text(rules->classes.seed, name);
    struct rule_class *class;

    table_find(class, &rules->classes, hash, in_table, text_equal(class->name, name));
    if (class || !rules_have_name(rules, name))
        return class;
    class = class_make(rules, name);
    if (class)
        table_add(&rules->classes, &class->in_table, hash);
    else
        *has_no_memory = true;
    return class;
}
