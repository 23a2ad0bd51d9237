/*
 * engine-zerocopy.c: from the page cache into the stream without a copy
 *
 * sendfile() to a socket and splice() to a pipe hand over references to the pages of the cache. That has
 * two consequences.
 *
 * - What lies in the stream is still the file: who changes the file changes what the reader will get.
 *   So success is not told before the reader has taken everything out. After that the transfer was as
 *   good as a copy.
 * - It pays only for pages that are in the cache. The engine is chosen when nearly all of them are.
 *
 * A rate limit that is set meanwhile counts as a refusal: the engines that copy obey it.
 *
 * There is no pipe of our own in between, so a refusal in mid-stream leaves nothing parked: position
 * counts what the stream took, and another engine goes on from there.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine.h"
#include "vspio.h"

/* Per call. The stream blocks long before; only progress waits for a call to return. */
#define CHUNK (8 * 1024 * 1024)

/* Between looks at a stream that is not yet drained, from the first to the longest. There is no event
 * for "empty". */
#define DRAIN_WAIT_MIN_US 50
#define DRAIN_WAIT_MAX_US 5000

/* Refusals that say "not between these two", as opposed to a failure of the transfer. */
static gboolean
isRefusal(int errnum)
{
    return errnum == EINVAL || errnum == ENOSYS || errnum == EOPNOTSUPP || errnum == EXDEV ||
           errnum == EBADF;
}

/* Bytes in the stream that the reader has not taken; -errno where that can't be known. */
static int
inFlight(const vspJob *job, gboolean socket)
{
    int bytes = 0;

    if (ioctl(job->stream->fd, socket ? SIOCOUTQ : FIONREAD, &bytes) < 0)
        return -errno;
    return bytes;
}

/* A socket whose reader closes it with bytes unread drops them, and looks as empty as one that was
 * read; only the pending error tells. */
static int
pendingError(const vspJob *job)
{
    int err = 0;
    socklen_t len = sizeof(err);

    if (getsockopt(job->stream->fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0)
        return errno;
    return err;
}

static int
waitUntilDrained(vspJob *job, gboolean socket)
{
    guint wait = DRAIN_WAIT_MIN_US;
    guint64 began = vspNow();
    int left;

    while ((left = inFlight(job, socket)) > 0) {
        int revents = vspPollOne(job->stream->fd, 0, 0);

        if (revents > 0 && revents & (POLLERR | POLLHUP))
            return vspJobFail(job, VSP_OPERATION_WRITE, VSP_SIDE_STREAM,
                              job->statistics.bytesOut - MIN((guint64) left, job->statistics.bytesOut),
                              EPIPE, NULL);
        g_usleep(wait);
        wait = MIN(wait * 2, DRAIN_WAIT_MAX_US);
    }
    job->statistics.stallSinkNs += vspNow() - began;
    if (left == 0 && socket)
        left = -pendingError(job);
    if (left < 0)
        return vspJobFail(job, VSP_OPERATION_WRITE, VSP_SIDE_STREAM, job->statistics.bytesOut, -left,
                          NULL);
    return 0;
}

/* One step. Bytes moved, 0 at the end of the file, -errno. */
static ssize_t
step(vspJob *job, gboolean socket, gsize len)
{
    for (;;) {
        off_t offset = job->position;
        ssize_t n = socket ? sendfile(job->stream->fd, job->file->fd, &offset, len)
                           : splice(job->file->fd, &offset, job->stream->fd, NULL, len,
                                    SPLICE_F_MOVE | SPLICE_F_MORE);

        if (n >= 0)
            return n;
        if (errno == EAGAIN && vspPollOne(job->stream->fd, POLLOUT, -1) > 0)
            continue;
        if (errno != EINTR)
            return -errno;
    }
}

static int
zerocopyRestore(vspJob *job)
{
    guint64 left = job->length - job->statistics.bytesOut;
    struct stat st;
    gboolean socket = fstat(job->stream->fd, &st) == 0 && S_ISSOCK(st.st_mode);
    guint fruitless = 0;

    /* A stage has to see the bytes. */
    if (!job->stream->transparent) {
        job->engine = vspEngineFallback(job);
        return job->engine->restore(job);
    }
    while (left > 0) {
        gsize want = MIN(left, CHUNK);
        guint64 began = vspNow();
        /* Asked beforehand: what is in the stream can't be taken back. */
        ssize_t n = vspEndpointComplete(job->file, VSP_OPERATION_READ, job->position, want, want);

        if (n > 0)
            n = vspControlGetRate(job->control) == 0 ? step(job, socket, n) : -EOPNOTSUPP;
        if (n < 0 && vspJobTryAgain(-n, &fruitless))
            continue;
        if (n < 0 && isRefusal(-n)) {
            job->engine = vspEngineFallback(job);
            return job->engine->restore(job);
        }
        if (n < 0) {
            gboolean reader = n == -EPIPE || n == -ECONNRESET;

            return vspJobFail(job, reader ? VSP_OPERATION_WRITE : VSP_OPERATION_READ,
                              reader ? VSP_SIDE_STREAM : VSP_SIDE_FILE,
                              reader ? job->statistics.bytesOut : (guint64) job->position, -n, NULL);
        }
        if (n == 0)
            break;
        vspJobPassed(job, n, vspNow() - began);
        fruitless = 0;
        left -= n;
    }
    job->atEnd = TRUE;
    return waitUntilDrained(job, socket);
}

/* The other way there is nothing to gain: a stream's pages do not become a file's. */
static int
zerocopySave(vspJob *job)
{
    job->engine = vspEngineFallback(job);
    return job->engine->save(job);
}

const vspEngine vspEngineZerocopy = {
    .name = "zerocopy",
    .save = zerocopySave,
    .restore = zerocopyRestore,
};
