/*
 * testdeny.c: system calls that fail on request
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

#include "testdeny.h"

/* The low half of an argument: the numbers that are asked for fit in it. */
static guint32
offsetOfArgument(guint argument)
{
    guint32 offset = offsetof(struct seccomp_data, args) + argument * sizeof(guint64);

    return offset + (G_BYTE_ORDER == G_BIG_ENDIAN ? sizeof(guint32) : 0);
}

gboolean
vspTestDeny(long number, guint argument, guint32 mask, guint32 value, int errnum)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetOfArgument(argument)),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | errnum),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { .len = G_N_ELEMENTS(filter), .filter = filter };

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}
