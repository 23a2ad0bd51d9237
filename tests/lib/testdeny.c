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

static void
add(GArray *filter, struct sock_filter instruction)
{
    g_array_append_val(filter, instruction);
}

gboolean
vspTestDenyIf(long number, const vspTestCondition *conditions, guint count, int errnum)
{
    g_autoptr(GArray) filter = g_array_new(FALSE, FALSE, sizeof(struct sock_filter));
    /* To the last instruction, from the one at hand. */
    guint last = 3 * count + 3;
    struct sock_fprog program;

    add(filter,
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)));
    add(filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, last - 2));
    for (guint i = 0; i < count; i++) {
        add(filter, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                                 offsetOfArgument(conditions[i].argument)));
        add(filter, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, conditions[i].mask));
        add(filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, conditions[i].value, 0,
                                                 last - filter->len - 1));
    }
    add(filter, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | errnum));
    add(filter, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    g_assert_cmpuint(filter->len, ==, last + 1);

    program = (struct sock_fprog){ .len = filter->len, .filter = (gpointer)filter->data };
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

gboolean
vspTestDeny(long number, guint argument, guint32 mask, guint32 value, int errnum)
{
    return vspTestDenyIf(number, &(vspTestCondition){ argument, mask, value }, 1, errnum);
}
