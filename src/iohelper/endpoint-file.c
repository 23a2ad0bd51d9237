/*
 * endpoint-file.c: a regular file
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <unistd.h>

#include "seekable.h"

static int
fileTruncate(vspEndpoint *ep, off_t end)
{
    struct stat st;
    int rc;

    /* Asked first: on some file systems setting the length that is there already costs a commit. */
    if (fstat(ep->fd, &st) == 0 && st.st_size == end)
        return 0;
    do {
        rc = ftruncate(ep->fd, end);
    } while (rc < 0 && errno == EINTR);
    return rc < 0 ? -errno : 0;
}

static const vspEndpointOps fileOps = {
    .kind = "file",
    .read = vspSeekableRead,
    .write = vspSeekableWrite,
    .pread = vspSeekablePread,
    .pwrite = vspSeekablePwrite,
    .complete = vspPlainComplete,
    .truncate = fileTruncate,
    .sync = vspSeekableSync,
    .close = vspPlainClose,
    .free = vspPlainFree,
};

vspEndpoint *
vspEndpointFileNew(int fd, const struct stat *st)
{
    return S_ISREG(st->st_mode) ? vspSeekableNew(&fileOps, fd) : NULL;
}
