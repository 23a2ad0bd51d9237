/*
 * vspcopy.c: the mover by itself
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gi18n-lib.h>
#include <poll.h>
#include <sys/stat.h>
#include <vmspool/vsp-copy.h>

#include "vsperrorpriv.h"
#include "vspfilewrapperpriv.h"

/* Between two reports of progress, ms. */
#define TICK 100

/* Whether @fd is something that the helper treats as a file. -1 with @error. */
static int
copyIsFile(int fd, const char *name, GError **error)
{
    struct stat st;

    if (fstat(fd, &st) < 0) {
        g_autofree char *printable = vspNameEscape(name);

        vspSetErrno(error, errno, _("cannot copy '%s'"), printable);
        return -1;
    }
    return S_ISREG(st.st_mode) || S_ISBLK(st.st_mode);
}

/* The total, if the source says so: a regular file, from where it stands. */
static guint64
copyTotal(int in)
{
    struct stat st;
    off_t position = lseek(in, 0, SEEK_CUR);

    if (fstat(in, &st) < 0 || !S_ISREG(st.st_mode) || position < 0 || position > st.st_size)
        return 0;
    return st.st_size - position;
}

static void
copyTell(vspFileWrapperFd *wfd, guint64 total, vspProgressFunc func, gpointer opaque)
{
    vspProgress progress;

    if (!func)
        return;
    vspFileWrapperFdGetProgress(wfd, &progress);
    progress.bytesTotal = total;
    if (total)
        progress.bytesTotal = MAX(total, MAX(progress.bytesIn, progress.bytesOut));
    func(&progress, opaque);
}

/* Waits for the verdict or a cancel. */
static void
copyWait(vspFileWrapperFd *wfd,
         guint64 total,
         vspProgressFunc func,
         gpointer opaque,
         GCancellable *cancellable)
{
    GPollFD cancelFd = { .fd = -1 };

    if (cancellable && !g_cancellable_make_pollfd(cancellable, &cancelFd))
        cancelFd.fd = -1;
    while (!vspFileWrapperFdProcess(wfd)) {
        struct pollfd fds[2] = {
            { .fd = vspFileWrapperFdGetStatusFd(wfd), .events = POLLIN },
            { .fd = cancelFd.fd, .events = POLLIN },
        };

        if (cancellable && g_cancellable_is_cancelled(cancellable)) {
            vspFileWrapperFdAbort(wfd);
            break;
        }
        copyTell(wfd, total, func, opaque);
        poll(fds, G_N_ELEMENTS(fds), TICK);
    }
    if (cancelFd.fd >= 0)
        g_cancellable_release_fd(cancellable);
    copyTell(wfd, total, func, opaque);
}

int
vspCopy(int in,
        const char *inName,
        int out,
        const char *outName,
        const vspFileWrapperOptions *options,
        vspProgressFunc progress,
        gpointer opaque,
        GCancellable *cancellable,
        GVariant **report,
        GError **error)
{
    g_autoptr(vspFileWrapperFd) wfd = NULL;
    gboolean writing;
    int inIsFile, outIsFile;
    int rc;

    g_return_val_if_fail(inName != NULL && outName != NULL, -1);
    g_return_val_if_fail(error == NULL || *error == NULL, -1);

    inIsFile = copyIsFile(in, inName, error);
    outIsFile = inIsFile < 0 ? -1 : copyIsFile(out, outName, error);
    if (inIsFile < 0 || outIsFile < 0)
        return -1;
    /* Of two files the one written counts: its cache mode, its durability. */
    writing = outIsFile || !inIsFile;

    if (writing)
        wfd = vspFileWrapperFdNewBetween(out, in, outName, options, TRUE, error);
    else
        wfd = vspFileWrapperFdNewBetween(in, out, inName, options, FALSE, error);
    if (!wfd)
        return -1;

    copyWait(wfd, copyTotal(in), progress, opaque, cancellable);
    rc = vspFileWrapperFdClose(wfd, error);
    if (report)
        *report = vspFileWrapperFdGetStatistics(wfd);
    return rc;
}
