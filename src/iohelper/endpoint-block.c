/*
 * endpoint-block.c: a block device
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "seekable.h"

/* A device has the length that it has; what lies behind the data stays. */
static int
blockTruncate(vspEndpoint *ep G_GNUC_UNUSED, off_t end G_GNUC_UNUSED)
{
    return 0;
}

static const vspEndpointOps blockOps = {
    .kind = "block",
    .read = vspSeekableRead,
    .write = vspSeekableWrite,
    .pread = vspSeekablePread,
    .pwrite = vspSeekablePwrite,
    .complete = vspPlainComplete,
    .truncate = blockTruncate,
    .sync = vspSeekableSync,
    .close = vspPlainClose,
    .free = vspPlainFree,
};

vspEndpoint *
vspEndpointBlockNew(int fd, const struct stat *st)
{
    return S_ISBLK(st->st_mode) ? vspSeekableNew(&blockOps, fd) : NULL;
}
