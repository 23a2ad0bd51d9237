/*
 * endpoint-stream.c: a pipe, a socket, a terminal: bytes in order, once
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "seekable.h"
#include "vspio.h"

/* After a call that moved nothing: is it worth another try? We may have been given an end that
 * somebody made non-blocking. */
static gboolean
tryAgain(vspEndpoint *ep, short events)
{
    if (errno == EINTR)
        return TRUE;
    return (errno == EAGAIN || errno == EWOULDBLOCK) && vspPollOne(ep->fd, events, -1) > 0;
}

static ssize_t
streamRead(vspEndpoint *ep, void *buf, gsize len)
{
    ssize_t n;

    do {
        n = read(ep->fd, buf, len);
    } while (n < 0 && tryAgain(ep, POLLIN));
    return n < 0 ? -errno : n;
}

static ssize_t
streamWrite(vspEndpoint *ep, const void *buf, gsize len)
{
    ssize_t n;

    do {
        n = write(ep->fd, buf, len);
    } while (n < 0 && tryAgain(ep, POLLOUT));
    return n < 0 ? -errno : n;
}

static ssize_t
streamPread(vspEndpoint *ep,
            void *buf G_GNUC_UNUSED,
            gsize len G_GNUC_UNUSED,
            off_t offset G_GNUC_UNUSED)
{
    vspEndpointImpossible(ep, "read at an offset");
}

static ssize_t
streamPwrite(vspEndpoint *ep,
             const void *buf G_GNUC_UNUSED,
             gsize len G_GNUC_UNUSED,
             off_t offset G_GNUC_UNUSED)
{
    vspEndpointImpossible(ep, "write at an offset");
}

static int
streamZero(vspEndpoint *ep, off_t offset G_GNUC_UNUSED, gsize len G_GNUC_UNUSED)
{
    vspEndpointImpossible(ep, "make a hole");
}

static int
streamTruncate(vspEndpoint *ep G_GNUC_UNUSED, off_t end G_GNUC_UNUSED)
{
    return 0;
}

/* Nothing to sync: fdatasync() on a pipe is EINVAL. */
static int
streamSync(vspEndpoint *ep G_GNUC_UNUSED)
{
    return 0;
}

static const vspEndpointOps streamOps = {
    .kind = "stream",
    .read = streamRead,
    .write = streamWrite,
    .pread = streamPread,
    .pwrite = streamPwrite,
    .complete = vspPlainComplete,
    .zero = streamZero,
    .isHole = vspPlainIsHole,
    .finish = vspPlainFinish,
    .truncate = streamTruncate,
    .sync = streamSync,
    .close = vspPlainClose,
    .free = vspPlainFree,
};

vspEndpoint *
vspEndpointStreamNew(int fd, const struct stat *st)
{
    vspEndpoint *ep;

    if (!S_ISFIFO(st->st_mode) && !S_ISSOCK(st->st_mode) && !S_ISCHR(st->st_mode))
        return NULL;
    ep = g_new0(vspEndpoint, 1);
    ep->ops = &streamOps;
    ep->fd = fd;
    ep->transparent = TRUE;
    return ep;
}
