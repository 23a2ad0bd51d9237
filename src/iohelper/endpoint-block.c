/*
 * endpoint-block.c: a block device
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>

#include "seekable.h"

/* Discarded where the device then reads as zeros, else zeroed by the device itself. */
static int
blockZero(vspEndpoint *ep, off_t offset, gsize len)
{
    if (fallocate(ep->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, len) == 0 ||
        fallocate(ep->fd, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, offset, len) == 0)
        return 0;
    return -errno;
}

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
    .zero = blockZero,
    .isHole = vspPlainIsHole,
    .finish = vspPlainFinish,
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
