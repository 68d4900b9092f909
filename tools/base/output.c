/* SPDX-License-Identifier: BSD-2-Clause */
#include "output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int output_flush(const char *command, int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    fprintf(stderr, "%s: cannot write: %s\n", command, strerror(errno));
    return 1;
}

static bool fail(const struct output *output, const char *what)
{
    fprintf(stderr, "%s: cannot write %s: %s\n", output->command,
            output->path ? output->path : "the output", what);
    return false;
}

/* Opens a temporary file beside the path, so that rename(2) works. */
static bool open_part(struct output *output, mode_t mode)
{
    int fd;

    if (asprintf(&output->part, "%s.XXXXXX", output->path) < 0) {
        output->part = NULL;
        errno = ENOMEM;
        return false;
    }
    fd = mkstemp(output->part);
    if (fd < 0)
        return false;
    (void)fchmod(fd, mode);
    output->file = fdopen(fd, "w");
    return output->file != NULL;
}

bool output_open(struct output *output, const char *command, const char *path)
{
    const mode_t mask = umask(077);
    mode_t mode = 0666 & ~mask; /* as a shell's redirection; an existing file keeps its mode */
    struct stat found;

    (void)umask(mask);
    *output = (struct output){.file = stdout, .command = command, .path = path};
    if (!path)
        return true;
    /* a pipe or a device cannot be replaced */
    if (stat(path, &found) == 0) {
        if (!S_ISREG(found.st_mode)) {
            output->file = fopen(path, "w");
            return output->file || fail(output, strerror(errno));
        }
        mode = found.st_mode & 0777;
    }
    if (open_part(output, mode))
        return true;
    (void)fail(output, strerror(errno));
    free(output->part);
    return false;
}

bool output_close(struct output *output, bool is_whole)
{
    errno = 0;
    if (fflush(output->file) || ferror(output->file))
        is_whole = is_whole && fail(output, strerror(errno ? errno : EIO));
    if (output->path)
        (void)fclose(output->file);
    if (output->part) {
        if (is_whole && rename(output->part, output->path) != 0)
            is_whole = fail(output, strerror(errno));
        if (!is_whole)
            (void)unlink(output->part);
    }
    free(output->part);
    return is_whole;
}
