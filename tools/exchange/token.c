/*
 * The secret that the hub and its recorders share.
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

#define TOKEN_MIN 16 /* of fewer characters it could be guessed */

static bool check_file(int fd, const char *path, struct error *error)
{
    struct stat status;

    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        error_set(error, "hub-token-file \"%s\": expected a file", path);
        return false;
    }
    if ((status.st_mode & 077) == 0)
        return true;
    error_set(error,
              "hub-token-file \"%s\": others than its owner may read or write it (mode %03o): "
              "chmod 600 it, and make a new token if others have seen it",
              path, (unsigned)status.st_mode & 0777);
    return false;
}

static bool check_text(char *text, size_t length, const char *path, struct error *error)
{
    while (length && isspace((unsigned char)text[length - 1]))
        length--;
    text[length] = '\0';
    for (size_t i = 0; i < length; i++) {
        if (!isgraph((unsigned char)text[i])) {
            error_set(error,
                      "hub-token-file \"%s\": expected one line of printable ASCII without blanks",
                      path);
            return false;
        }
    }
    if (length >= TOKEN_MIN)
        return true;
    error_set(error,
              "hub-token-file \"%s\": expected at least %d characters: openssl rand -hex 32 makes "
              "a good one",
              path, TOKEN_MIN);
    return false;
}

bool token_read(struct token *token, const char *path, struct error *error)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    ssize_t got = -1;
    bool is_right = false;

    if (fd < 0) {
        error_set(error, "hub-token-file \"%s\": cannot read it: %s", path, strerror(errno));
        return false;
    }
    if (check_file(fd, path, error)) {
        got = read(fd, token->text, sizeof(token->text) - 1);
        if (got < 0)
            error_set(error, "hub-token-file \"%s\": cannot read it: %s", path, strerror(errno));
        else
            is_right = check_text(token->text, (size_t)got, path, error);
    }
    close(fd);
    if (!is_right)
        explicit_bzero(token, sizeof(*token));
    return is_right;
}

bool token_is(const struct token *token, const char *given)
{
    const size_t length = strlen(token->text), given_length = strlen(given);
    volatile unsigned char differs = length != given_length;

    for (size_t i = 0; i < given_length; i++)
        differs |= (unsigned char)(given[i] ^ token->text[length ? i % length : 0]);
    return !differs;
}
