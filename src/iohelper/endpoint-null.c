/*
 * endpoint-null.c: /dev/null: takes everything, has nothing
 *
 * The kernel's own null device is asked all the same, so that a benchmark against it pays for the
 * system calls that a file would cost.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <sys/sysmacros.h>

#include "seekable.h"

/* Major and minor of /dev/null, fixed on Linux. */
#define NULL_MAJOR 1
#define NULL_MINOR 3

static int
nullZero(vspEndpoint *ep G_GNUC_UNUSED, off_t offset G_GNUC_UNUSED, gsize len G_GNUC_UNUSED)
{
    return 0;
}

static int
nullTruncate(vspEndpoint *ep G_GNUC_UNUSED, off_t end G_GNUC_UNUSED)
{
    return 0;
}

/* fdatasync() on the null device is EINVAL, and there is nothing to lose. */
static int
nullSync(vspEndpoint *ep G_GNUC_UNUSED)
{
    return 0;
}

static const vspEndpointOps nullOps = {
    .kind = "null",
    .read = vspSeekableRead,
    .write = vspSeekableWrite,
    .pread = vspSeekablePread,
    .pwrite = vspSeekablePwrite,
    .complete = vspPlainComplete,
    .zero = nullZero,
    .isHole = vspPlainIsHole,
    .finish = vspPlainFinish,
    .truncate = nullTruncate,
    .sync = nullSync,
    .close = vspPlainClose,
    .free = vspPlainFree,
};

vspEndpoint *
vspEndpointNullNew(int fd, const struct stat *st)
{
    if (!S_ISCHR(st->st_mode) || st->st_rdev != makedev(NULL_MAJOR, NULL_MINOR))
        return NULL;
    return vspSeekableNew(&nullOps, fd);
}
