/*
 * vspio.c: whole reads and writes
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "vspio.h"

gint64
vspDeadline(guint milliseconds)
{
    return g_get_monotonic_time() + (gint64) milliseconds * 1000;
}

int
vspPollOne(int fd, short events, gint64 deadline)
{
    struct pollfd pfd = { .fd = fd, .events = events };

    for (;;) {
        int timeout = -1;
        int rc;

        if (deadline >= 0) {
            gint64 left = deadline - g_get_monotonic_time();

            /* Rounded up, so that the loop does not spin through the last millisecond. */
            timeout = left <= 0 ? 0 : (int) MIN((left + 999) / 1000, G_MAXINT);
        }
        rc = poll(&pfd, 1, timeout);
        if (rc > 0)
            return pfd.revents;
        if (rc == 0)
            return 0;
        if (errno != EINTR)
            return -1;
    }
}

/* What to do after a call moved nothing: retry, wait until the descriptor is ready, or give up. */
static gboolean
tryAgain(int fd, short events)
{
    if (errno == EINTR)
        return TRUE;
    if (errno == EAGAIN || errno == EWOULDBLOCK)
        return vspPollOne(fd, events, -1) > 0;
    return FALSE;
}

ssize_t
vspReadFull(int fd, void *buf, gsize len)
{
    gsize done = 0;

    while (done < len) {
        ssize_t n = read(fd, (char *) buf + done, len - done);

        if (n == 0)
            break;
        if (n > 0)
            done += n;
        else if (!tryAgain(fd, POLLIN))
            return -1;
    }
    return done;
}

ssize_t
vspPreadFull(int fd, void *buf, gsize len, off_t offset)
{
    gsize done = 0;

    while (done < len) {
        ssize_t n = pread(fd, (char *) buf + done, len - done, offset + done);

        if (n == 0)
            break;
        if (n > 0)
            done += n;
        else if (errno != EINTR)
            return -1;
    }
    return done;
}

int
vspWriteFull(int fd, const void *buf, gsize len)
{
    gsize done = 0;

    while (done < len) {
        ssize_t n = write(fd, (const char *) buf + done, len - done);

        if (n > 0)
            done += n;
        else if (n < 0 && !tryAgain(fd, POLLOUT))
            return -1;
    }
    return 0;
}

int
vspPwriteFull(int fd, const void *buf, gsize len, off_t offset)
{
    gsize done = 0;

    while (done < len) {
        ssize_t n = pwrite(fd, (const char *) buf + done, len - done, offset + done);

        if (n > 0) {
            done += n;
        } else if (n == 0) {
            /* A file system that takes nothing and names no error would keep us here for ever. */
            errno = EIO;
            return -1;
        } else if (errno != EINTR) {
            return -1;
        }
    }
    return 0;
}
