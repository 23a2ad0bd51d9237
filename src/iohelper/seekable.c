/*
 * seekable.c: what files and block devices have in common
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "cache.h"
#include "seekable.h"
#include "vspfd.h"

vspEndpoint *
vspSeekableNew(const vspEndpointOps *ops, int fd)
{
    off_t start = lseek(fd, 0, SEEK_CUR);
    int flags = fcntl(fd, F_GETFL);
    struct stat st;
    vspEndpoint *ep;

    if (start < 0 || flags < 0)
        return NULL;
    ep = g_new0(vspEndpoint, 1);
    ep->ops = ops;
    ep->fd = fd;
    ep->seekable = TRUE;
    ep->transparent = TRUE;
    ep->start = start;
    ep->size = fstat(fd, &st) == 0 ? st.st_size : 0;
    ep->cache = vspCacheNew(fd, (flags & O_ACCMODE) != O_RDONLY);
    return ep;
}

ssize_t
vspSeekableRead(vspEndpoint *ep, void *buf, gsize len)
{
    ssize_t n;

    do {
        n = read(ep->fd, buf, len);
    } while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

ssize_t
vspSeekableWrite(vspEndpoint *ep, const void *buf, gsize len)
{
    ssize_t n;

    do {
        n = write(ep->fd, buf, len);
    } while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

ssize_t
vspSeekablePread(vspEndpoint *ep, void *buf, gsize len, off_t offset)
{
    struct iovec iov = { .iov_base = buf, .iov_len = len };
    ssize_t n;

    do {
        n = preadv2(ep->fd, &iov, 1, offset, vspCacheGetRwFlags(ep->cache));
    } while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

ssize_t
vspSeekablePwrite(vspEndpoint *ep, const void *buf, gsize len, off_t offset)
{
    struct iovec iov = { .iov_base = (void *) buf, .iov_len = len };
    ssize_t n;

    do {
        n = pwritev2(ep->fd, &iov, 1, offset, vspCacheGetRwFlags(ep->cache));
    } while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

ssize_t
vspPlainComplete(vspEndpoint *ep G_GNUC_UNUSED,
                 vspOperation op G_GNUC_UNUSED,
                 off_t offset G_GNUC_UNUSED,
                 gsize len G_GNUC_UNUSED,
                 ssize_t result)
{
    return result;
}

gboolean
vspPlainIsHole(vspEndpoint *ep G_GNUC_UNUSED, off_t offset G_GNUC_UNUSED, gsize len G_GNUC_UNUSED)
{
    return FALSE;
}

int
vspSeekableSync(vspEndpoint *ep)
{
    int rc;

    do {
        rc = fdatasync(ep->fd);
    } while (rc < 0 && errno == EINTR);
    return rc < 0 ? -errno : 0;
}

/* Nothing is held back. */
int
vspPlainFinish(vspEndpoint *ep G_GNUC_UNUSED)
{
    return 0;
}

int
vspPlainClose(vspEndpoint *ep)
{
    return vspFdCloseChecked(&ep->fd) < 0 ? -errno : 0;
}

void
vspPlainFree(vspEndpoint *ep)
{
    vspCacheFree(ep->cache);
    vspFdClose(&ep->fd);
    g_free(ep);
}
