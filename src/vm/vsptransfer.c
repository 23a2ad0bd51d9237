/*
 * vsptransfer.c: a file, the iohelper on it, and the end of the stream that goes to QEMU
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <glib/gi18n-lib.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "vsperrorpriv.h"
#include "vspfd.h"
#include "vspfilewrapperpriv.h"
#include "vspio.h"
#include "vsptransfer.h"
#include "vspvmoptionspriv.h"

/* Between two looks at the progress while nothing else happens, ms. */
#define TICK 100

/* How long a helper whose stream broke may take to say why. Its verdict normally comes first.
 * Longer: the VM is paused longer when the disk hangs. */
#define VERDICT_MS 2000

/* For QEMU to let go of a descriptor. It does not answer while it loads a state, and then there is no use
 * in waiting: it has the descriptor in use, or will close it at its end. Longer: a cancel takes longer. */
#define TAKE_BACK_MS 3000

struct _vspTransfer {
    vspFlow *flow;
    vspFileWrapperFd *wfd;
    char *name;   /* for messages */
    char *fdName; /* what QEMU calls the descriptor */
    int stream;   /* -1 once handed over */
    gboolean handedOver;
    gboolean decided;
    GError *failure;
    vspProgress progress;
};

vspTransfer *
vspTransferNew(
    int *fd, const char *name, vspFlow *flow, const vspTransferShape *shape, GError **error)
{
    static int counter; /* atomic */
    g_autoptr(vspFileWrapperOptions) options = vspFileWrapperOptionsCopy(flow->options->wrapper);
    vspFileWrapperFd *wfd;
    vspTransfer *transfer;

    options->flags |= shape->flags;
    options->length = shape->length ? shape->length : G_MAXUINT64;
    options->plainLength = shape->plainLength;
    options->digest = shape->digest;
    if (shape->length)
        vspFileWrapperOptionsSetCompression(options, NULL);
    vspFileWrapperOptionsSetDecompression(options, shape->decompression);
    wfd = vspFileWrapperFdNewWithOptions(fd, name, options, error);
    if (!wfd)
        return NULL;

    transfer = g_new0(vspTransfer, 1);
    transfer->flow = flow;
    transfer->wfd = wfd;
    transfer->name = vspNameEscape(name);
    /* Of several clients that QEMU had one after the other, none must meet a name of another's. */
    transfer->fdName =
        g_strdup_printf("vmspool-%d-%d", (int)getpid(), g_atomic_int_add(&counter, 1));
    transfer->stream = vspFdSteal(fd);
    return transfer;
}

void
vspTransferFree(vspTransfer *transfer)
{
    if (!transfer)
        return;
    vspFdClose(&transfer->stream);
    vspFileWrapperFdFree(transfer->wfd);
    g_clear_error(&transfer->failure);
    g_free(transfer->fdName);
    g_free(transfer->name);
    g_free(transfer);
}

gboolean
vspTransferProcess(vspTransfer *transfer)
{
    if (transfer->decided)
        return TRUE;
    if (!vspFileWrapperFdProcess(transfer->wfd))
        return FALSE;
    transfer->decided = TRUE;
    vspFileWrapperFdClose(transfer->wfd, &transfer->failure);
    return TRUE;
}

gboolean
vspTransferWatch(gpointer transfer)
{
    return vspTransferProcess(transfer);
}

int
vspTransferGetFd(const vspTransfer *transfer)
{
    return vspFileWrapperFdGetStatusFd(transfer->wfd);
}

const GError *
vspTransferGetFailure(const vspTransfer *transfer)
{
    return transfer->failure;
}

void
vspTransferGetProgress(vspTransfer *transfer, vspProgress *progress)
{
    vspFileWrapperFdGetProgress(transfer->wfd, progress);
}

/* Waits until one of @fds is ready, at most @milliseconds, less if the flow is cancelled. The room
 * for the cancellable is the last of @fds. */
static int
transferPoll(vspTransfer *transfer, struct pollfd *fds, gsize count, int milliseconds)
{
    GCancellable *cancellable = transfer->flow->cancellable;
    GPollFD cancelFd = { .fd = -1 };
    int rc;

    if (cancellable && !g_cancellable_make_pollfd(cancellable, &cancelFd))
        cancelFd.fd = -1;
    fds[count - 1] = (struct pollfd){ .fd = cancelFd.fd, .events = POLLIN };
    rc = poll(fds, count, milliseconds);
    if (cancelFd.fd >= 0)
        g_cancellable_release_fd(cancellable);
    return rc;
}

/* Write without SIGPIPE, also to a pipe: blocked for this thread, and taken away if it was raised.
 */
static ssize_t
writeQuietly(int fd, const void *data, gsize len)
{
    sigset_t sigpipe, old, pending;
    ssize_t n;
    int saved;

    sigemptyset(&sigpipe);
    sigaddset(&sigpipe, SIGPIPE);
    sigpending(&pending);
    if (sigismember(&pending, SIGPIPE))
        return write(fd, data, len);

    pthread_sigmask(SIG_BLOCK, &sigpipe, &old);
    n = write(fd, data, len);
    saved = errno;
    if (n < 0 && saved == EPIPE) {
        static const struct timespec now = { 0 };

        while (sigtimedwait(&sigpipe, NULL, &now) < 0 && errno == EINTR)
            ;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    errno = saved;
    return n;
}

/* The reader of the stream is gone, or the wrapper has failed: its verdict is the cause. */
static int
transferFailWrite(vspTransfer *transfer, int errnum, GError **error)
{
    vspTransferSettle(transfer, VERDICT_MS);
    if (transfer->failure)
        g_propagate_error(error, g_error_copy(transfer->failure));
    else
        vspSetErrno(error, errnum, _("cannot write to the iohelper of '%s'"), transfer->name);
    return -1;
}

int
vspTransferWrite(vspTransfer *transfer, const void *data, gsize len, GError **error)
{
    gsize done = 0;

    /* The helper can hang on its disk: this must stay interruptible. QEMU sets the mode that it
     * wants by itself for a migration. */
    if (vspFdSetNonBlocking(transfer->stream, TRUE) < 0)
        return transferFailWrite(transfer, errno, error);

    while (done < len) {
        struct pollfd fds[3];
        ssize_t n = writeQuietly(transfer->stream, (const char *)data + done, len - done);

        if (n > 0) {
            done += n;
            continue;
        }
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return transferFailWrite(transfer, errno, error);
        if (vspFlowCheckCancelled(transfer->flow, error) < 0)
            return -1;
        fds[0] = (struct pollfd){ .fd = transfer->stream, .events = POLLOUT };
        fds[1] = (struct pollfd){ .fd = vspTransferGetFd(transfer), .events = POLLIN };
        transferPoll(transfer, fds, G_N_ELEMENTS(fds), TICK);
        if (vspTransferProcess(transfer))
            return transferFailWrite(transfer, EPIPE, error);
    }
    return 0;
}

int
vspTransferHandOver(vspTransfer *transfer, vspQmp *qmp, GError **error)
{
    g_autoptr(GVariant) result = NULL;

    transfer->handedOver = TRUE;
    result =
        vspQmpExecuteFull(qmp, "getfd", g_variant_new_parsed("{'fdname': <%s>}", transfer->fdName),
                          transfer->stream, VSP_QMP_TIMEOUT, error);
    vspFdClose(&transfer->stream);
    return result ? 0 : -1;
}

const char *
vspTransferGetFdName(const vspTransfer *transfer)
{
    return transfer->fdName;
}

void
vspTransferTakeBack(vspTransfer *transfer, vspQmp *qmp)
{
    g_autoptr(GVariant) done = NULL;

    vspFdClose(&transfer->stream);
    if (transfer->handedOver)
        done = vspQmpExecuteFull(qmp, "closefd",
                                 g_variant_new_parsed("{'fdname': <%s>}", transfer->fdName), -1,
                                 TAKE_BACK_MS, NULL);
    transfer->handedOver = FALSE;
}

int
vspTransferFinish(vspTransfer *transfer, vspQmp *qmp, guint64 total, GError **error)
{
    vspFdClose(&transfer->stream);
    while (!vspTransferProcess(transfer)) {
        struct pollfd fds[3] = {
            { .fd = vspTransferGetFd(transfer), .events = POLLIN },
            { .fd = qmp ? vspQmpGetFd(qmp) : -1, .events = POLLIN },
        };
        vspProgress progress;

        if (vspFlowCheckCancelled(transfer->flow, error) < 0)
            return -1;
        vspTransferGetProgress(transfer, &progress);
        vspFlowProgress(transfer->flow, VSP_STAGE_SYNC, progress.bytesIn, progress.bytesOut, total);
        transferPoll(transfer, fds, G_N_ELEMENTS(fds), TICK);
        if (qmp)
            vspQmpDrain(qmp);
    }
    if (transfer->failure) {
        g_propagate_error(error, g_error_copy(transfer->failure));
        return -1;
    }
    return 0;
}

void
vspTransferSettle(vspTransfer *transfer, guint milliseconds)
{
    gint64 deadline = vspDeadline(milliseconds);

    vspFdClose(&transfer->stream);
    while (!vspTransferProcess(transfer)) {
        if (vspPollOne(vspTransferGetFd(transfer), POLLIN, deadline) > 0)
            continue;
        vspFileWrapperFdAbort(transfer->wfd);
        /* Decided by now, unless something hangs in the kernel; Close says which. */
        transfer->decided = TRUE;
        vspFileWrapperFdClose(transfer->wfd, &transfer->failure);
    }
}

void
vspTransferRootCause(vspTransfer *transfer, GError **cause)
{
    const GError *failure;

    if (g_error_matches(*cause, VSP_ERROR, VSP_ERROR_ABORTED))
        return;
    vspTransferSettle(transfer, VERDICT_MS);
    failure = transfer->failure;
    if (!failure || g_error_matches(failure, VSP_ERROR, VSP_ERROR_ABORTED) ||
        g_error_matches(failure, VSP_ERROR, VSP_ERROR_READER_GONE) ||
        g_error_matches(*cause, failure->domain, failure->code))
        return;
    g_debug("in consequence: %s", (*cause)->message);
    g_clear_error(cause);
    *cause = g_error_copy(failure);
}

guint64
vspTransferGetBytes(const vspTransfer *transfer)
{
    return vspFileWrapperFdGetBytes(transfer->wfd);
}

const guint8 *
vspTransferGetDigest(const vspTransfer *transfer)
{
    return vspFileWrapperFdGetDigest(transfer->wfd, NULL);
}

void
vspTransferReport(vspTransfer *transfer)
{
    const char *notice = vspFileWrapperFdGetNotice(transfer->wfd);
    g_autoptr(GVariant) statistics = vspFileWrapperFdGetStatistics(transfer->wfd);

    if (notice)
        vspFlowNotice(transfer->flow, "%s", notice);
    vspFlowReportValue(transfer->flow, "transfer", statistics);
}
