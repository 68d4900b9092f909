/*
 * Starts a program under a seccomp filter that allows all system calls: inherits PROGRAM
 * ARGUMENT...
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char *argv[])
{
    struct sock_filter code[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {1, code};

    if (argc < 2 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
        return 126;
    execvp(argv[1], argv + 1);
    perror(argv[1]);
    return 127;
}
