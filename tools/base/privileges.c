/*
 * The user of a service, and the privileges that a child gives up.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "privileges.h"

#include "folders.h"
#include "say.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

void privileges_give_up(void)
{
    const struct rlimit none = {0, 0};
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    const struct __user_cap_data_struct data[2] = {{0}};

    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    (void)syscall(SYS_capset, &header, data);
    (void)setrlimit(RLIMIT_CORE, &none);
    (void)prctl(PR_SET_DUMPABLE, 0);
}

bool privileges_become_owner(const char *state_dir, const char *runtime_dir)
{
    const struct passwd *user;
    struct stat status;
    bool is_new;

    if (geteuid() != 0 || stat(state_dir, &status) != 0 || status.st_uid == 0)
        return true;
    user = getpwuid(status.st_uid);
    if (user && folder_make_runtime(runtime_dir, &is_new) && is_new)
        (void)!chown(runtime_dir, user->pw_uid, user->pw_gid);
    if (!user || initgroups(user->pw_name, user->pw_gid) != 0 || setgid(user->pw_gid) != 0 ||
        setuid(user->pw_uid) != 0 || setenv("HOME", user->pw_dir, 1) != 0) {
        say(BK1030, "state-dir \"%s\" belongs to user %u: cannot become that user: %s", state_dir,
            (unsigned)status.st_uid, user ? strerror(errno) : "no such user");
        return false;
    }
    (void)umask(077); /* as in the service's unit */
    say(BK1031, "runs as user %s, the owner of state-dir \"%s\"", user->pw_name, state_dir);
    return true;
}
