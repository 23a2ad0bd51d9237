/*
 * testdeny.h: system calls that fail on request
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_TESTDENY_H
#define VSP_TESTDENY_H

#include <glib.h>

typedef struct {
    guint argument; /* 0 to 5 */
    guint32 mask;   /* 0, with a value of 0: always */
    guint32 value;
} vspTestCondition;

/* From here on the system call @number fails with @errnum, in this process and in all that it
 * starts, where each argument, masked, is the value. Can't be taken back: for a forked child. FALSE
 * where the kernel has no such filter. */
gboolean vspTestDenyIf(long number, const vspTestCondition *conditions, guint count, int errnum);

/* The same with one condition. */
gboolean vspTestDeny(long number, guint argument, guint32 mask, guint32 value, int errnum);

#endif /* VSP_TESTDENY_H */
