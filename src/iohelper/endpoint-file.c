/*
 * endpoint-file.c: a regular file
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "cache.h"
#include "seekable.h"

/* Where the file had no bytes there is a hole already, if only it is not written. For buffered writes
 * XFS allocates ahead of them, and what it has taken is given back only if asked. */
static int
fileZero(vspEndpoint *ep, off_t offset, gsize len)
{
    gboolean isNew = offset >= ep->size;

    if (isNew && vspCacheGetMode(ep->cache) == VSP_CACHE_DIRECT)
        return 0;
    if (fallocate(ep->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, len) == 0 || isNew)
        return 0;
    return -errno;
}

static gboolean
fileIsHole(vspEndpoint *ep, off_t offset, gsize len)
{
    struct stat st;
    off_t data;

    /* A file that is stored whole has none. */
    if (fstat(ep->fd, &st) < 0 || offset + (off_t) len > st.st_size ||
        (gint64) st.st_blocks * 512 >= st.st_size)
        return FALSE;
    data = lseek(ep->fd, offset, SEEK_DATA);
    return data < 0 ? errno == ENXIO : data >= offset + (off_t) len;
}

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
    .zero = fileZero,
    .isHole = fileIsHole,
    .finish = vspPlainFinish,
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
