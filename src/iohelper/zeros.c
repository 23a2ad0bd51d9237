/*
 * zeros.c: runs of zeros that are worth a hole
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <string.h>

#include "zeros.h"

/* Shorter runs are written. Half of 64 KiB, so that a run of that size which lies across the blocks
 * of the file (in an ELF core all memory does) still counts. Less saves more on memory that is zero
 * here and there, and costs an extent in the file and an I/O more for each hole. */
#define RUN_MIN (32 * 1024)

static gboolean
isZero(const char *buf, gsize len)
{
    /* Data mostly differs in its first bytes; zeros are compared at the speed of memory. */
    return buf[0] == 0 && memcmp(buf, buf + 1, len - 1) == 0;
}

gsize
vspZerosAt(const char *buf, gsize len, gsize granule)
{
    gsize n = 0;

    while (n + granule <= len && isZero(buf + n, granule))
        n += granule;
    return n >= RUN_MIN ? n : 0;
}

gsize
vspZerosBefore(const char *buf, gsize len, gsize granule)
{
    gsize n = 0;
    gsize run = 0; /* zeros that end at n */

    while (n + granule <= len) {
        run = isZero(buf + n, granule) ? run + granule : 0;
        n += granule;
        if (run >= RUN_MIN)
            return n - run;
    }
    return len;
}
