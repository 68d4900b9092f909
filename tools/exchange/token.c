/*
 * A recorder's token.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "token.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TOKEN_MIN 16 /* shorter tokens could be guessed */

static bool token_check_file(int fd, const char *key, const char *path, struct error *error)
{
    struct stat status;

    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
        return error_set(error, "%s \"%s\": expected a file", key, path);
    if ((status.st_mode & 077) == 0)
        return true;
    return error_set(error,
                     "%s \"%s\": other users may read or write it (mode %03o): chmod 600 it, and "
                     "make a new token if they may have read it",
                     key, path, (unsigned)status.st_mode & 0777);
}

int token_open(const char *key, const char *path, struct error *error)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

    if (fd < 0) {
        error_set(error, "%s \"%s\": cannot read it: %s", key, path, strerror(errno));
        return -1;
    }
    if (token_check_file(fd, key, path, error))
        return fd;
    close(fd);
    return -1;
}

bool token_check(const char *key, const char *path, const char *text, struct error *error)
{
    const size_t length = strlen(text);

    for (size_t i = 0; i < length; i++) {
        if (!isgraph((unsigned char)text[i]))
            return error_set(
                error, "%s \"%s\": expected one line of printable ASCII without blanks", key, path);
    }
    if (length >= TOKEN_MIN)
        return true;
    return error_set(
        error, "%s \"%s\": expected at least %d characters: openssl rand -hex 32 makes a good one",
        key, path, TOKEN_MIN);
}

bool token_read(struct token *token, const char *path, struct error *error)
{
    static const char key[] = "hub-token-file";
    const int fd = token_open(key, path, error);
    ssize_t got;
    bool is_right = false;

    if (fd < 0)
        return false;
    got = read(fd, token->text, sizeof(token->text) - 1);
    if (got < 0) {
        error_set(error, "%s \"%s\": cannot read it: %s", key, path, strerror(errno));
    } else {
        while (got && isspace((unsigned char)token->text[got - 1]))
            got--;
        token->text[got] = '\0';
        is_right = token_check(key, path, token->text, error);
    }
    close(fd);
    if (!is_right)
        explicit_bzero(token, sizeof(*token));
    return is_right;
}
