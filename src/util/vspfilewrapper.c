/*
 * vspfilewrapper.c: a file descriptor replaced by a pipe or socket with an iohelper behind it
 *
 * Life of a wrapper:
 *
 *   New ── spawn, hello ──▶ running ── verdict ──▶ closed
 *                              └────── abort ────▶ closed (with an error)
 *
 * Invariants
 * - "outcome" is set once: the first verdict is the one repeated. (Abort alone adds to its own text
 *   when it finds that the helper can't be ended.)
 * - After New the caller's process holds no descriptor of the file, and no call here can touch it.
 * - The verdict comes by the status channel alone. The exit status only words the message for a
 *   helper that died, so an application that takes it from us (SIGCHLD ignored, waitpid(-1)) costs
 *   a detail of the text and nothing else.
 *
 * A wrapper is used by one thread at a time, except GetProgress and Abort, which any thread may
 * call while another is in Close: "lock" guards the state, and is never held while waiting.
 * "childLock" guards the child, is held while waiting for its end, and is the first to be taken of
 * the two.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gi18n-lib.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vsperrorpriv.h"
#include "vspfd.h"
#include "vspfilewrapperpriv.h"
#include "vsphelperpath.h"
#include "vspio.h"
#include "vspspawn.h"
#include "vspstatus.h"
#include "vsptransport.h"

/* The helper says hello within milliseconds; a file system that hangs in its first look at the file
 * is the only reason for more. */
#define HELLO_TIMEOUT_MS 30000
/* After its verdict or SIGKILL nothing but a hung disk keeps the helper alive. */
#define EXIT_TIMEOUT_MS 2000

struct _vspFileWrapperFd {
    char *name; /* escaped, for messages */
    vspChild *child;
    GPid pid;
    int statusFd;
    vspFileWrapperOptions *options;

    /* The caller's end, to recognise it if it is still open in Close. */
    int endFd;
    char *endLink; /* as vspFdGetLink() tells it */

    /* Constant after New. */
    gboolean hasTransport;
    vspTransportPair transport; /* for its figures; both ends are given away */

    GMutex childLock; /* guards child and what follows */
    gboolean aborted;
    GMutex lock; /* guards what follows */
    gboolean finished;
    GError *outcome; /* with finished: NULL is a success */
    vspProgress progress;
    vspStatusStatistics statistics;
    gboolean haveStatistics;
};

int
vspFileDirectFdFlag(void)
{
    return O_DIRECT;
}

/* With lock held. The first outcome stays. */
static void
setOutcome(vspFileWrapperFd *wfd, GError *outcome)
{
    if (wfd->finished) {
        g_clear_error(&outcome);
        return;
    }
    wfd->finished = TRUE;
    wfd->outcome = outcome;
    if (!outcome)
        wfd->progress.stage = VSP_STAGE_DONE;
}

/* What to say about a helper that ended without a verdict, after @bytes. Without lock: it waits
 * until the helper has ended. */
static GError *
describeDeath(vspFileWrapperFd *wfd, guint64 bytes)
{
    G_GNUC_UNUSED g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&wfd->childLock);
    int status = 0;
    vspChildState state = vspChildWait(wfd->child, vspDeadline(EXIT_TIMEOUT_MS), &status);
    g_autofree char *text = vspChildGetStderr(wfd->child);
    g_autofree char *how = NULL;

    if (state == VSP_CHILD_EXITED)
        how = vspChildStatusText(status);
    else if (state == VSP_CHILD_LOST)
        how = g_strdup(_("ended (its exit status went to another part of the program)"));
    else
        how = g_strdup(_("closed its status channel without ending"));

    if (*text)
        return g_error_new(VSP_ERROR, VSP_ERROR_HELPER_DIED,
                           _("the iohelper of '%s' %s after %llu bytes: %s"), wfd->name, how,
                           (unsigned long long)bytes, text);
    return g_error_new(VSP_ERROR, VSP_ERROR_HELPER_DIED,
                       _("the iohelper of '%s' %s after %llu bytes"), wfd->name, how,
                       (unsigned long long)bytes);
}

/* With lock held. */
static void
takeVerdict(vspFileWrapperFd *wfd, const vspStatusVerdict *verdict)
{
    GError *outcome = NULL;

    wfd->statistics = verdict->statistics;
    wfd->haveStatistics = TRUE;
    wfd->progress.bytesIn = verdict->statistics.bytesIn;
    wfd->progress.bytesOut = verdict->statistics.bytesOut;
    if (!verdict->ok)
        vspStatusVerdictToError(verdict, wfd->name, &outcome);
    setOutcome(wfd, outcome);
}

/* Takes in what the helper has reported. TRUE once there is an outcome; a hangup is left in the
 * channel with *@gone set, for who can afford to wait for the helper's end. */
static gboolean
takeReports(vspFileWrapperFd *wfd, gboolean *gone)
{
    g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new(&wfd->lock);

    *gone = FALSE;
    while (!wfd->finished) {
        vspStatusRecord record;
        g_autoptr(GError) local = NULL;
        int rc = vspStatusReceive(wfd->statusFd, &record, &local);

        if (rc == 0)
            return FALSE;
        if (g_error_matches(local, VSP_ERROR, VSP_ERROR_HELPER_DIED)) {
            *gone = TRUE;
            return FALSE;
        }
        if (rc < 0) {
            setOutcome(wfd, g_steal_pointer(&local));
        } else if (record.header.type == VSP_STATUS_PROGRESS) {
            wfd->progress.stage = record.progress.stage;
            wfd->progress.bytesIn = record.progress.bytesIn;
            wfd->progress.bytesOut = record.progress.bytesOut;
        } else if (record.header.type == VSP_STATUS_VERDICT) {
            takeVerdict(wfd, &record.verdict);
        }
    }
    return TRUE;
}

gboolean
vspFileWrapperFdProcess(vspFileWrapperFd *wfd)
{
    gboolean gone;
    GError *death;

    if (takeReports(wfd, &gone))
        return TRUE;
    if (!gone)
        return FALSE;
    death = describeDeath(wfd, vspFileWrapperFdGetBytes(wfd));
    g_mutex_lock(&wfd->lock);
    setOutcome(wfd, death);
    g_mutex_unlock(&wfd->lock);
    return TRUE;
}

/* Waits for hello, or for the refusal that a helper sends in its place. */
static int
waitForHello(vspFileWrapperFd *wfd, GError **error)
{
    gint64 deadline = vspDeadline(HELLO_TIMEOUT_MS);

    for (;;) {
        vspStatusRecord record;
        g_autoptr(GError) local = NULL;
        int rc = vspStatusReceive(wfd->statusFd, &record, &local);

        if (rc > 0 && record.header.type == VSP_STATUS_HELLO)
            return 0;
        if (rc > 0 && record.header.type == VSP_STATUS_VERDICT) {
            vspStatusVerdictToError(&record.verdict, wfd->name, error);
            return -1;
        }
        if (rc < 0) {
            if (g_error_matches(local, VSP_ERROR, VSP_ERROR_HELPER_DIED))
                g_propagate_error(error, describeDeath(wfd, 0));
            else
                g_propagate_error(error, g_steal_pointer(&local));
            return -1;
        }
        if (rc == 0 && vspPollOne(wfd->statusFd, POLLIN, deadline) == 0) {
            vspSetError(error, VSP_ERROR_TIMED_OUT,
                        _("the iohelper of '%s' (pid %d) did not start within %d seconds"), wfd->name,
                        (int) wfd->pid, HELLO_TIMEOUT_MS / 1000);
            return -1;
        }
    }
}

/* The helper's command line. Of the environment it gets nothing: it needs nothing. */
static GPtrArray *
helperArguments(const char *path, const char *name, const vspFileWrapperOptions *options, int fd)
{
    GPtrArray *argv = g_ptr_array_new_with_free_func(g_free);

    g_ptr_array_add(argv, g_strdup(path));
    g_ptr_array_add(argv, g_strdup("--status-fd=3"));
    g_ptr_array_add(argv, g_strdup_printf("--cache=%s",
                                          vspCacheModeToString(
                                              vspFileWrapperOptionsGetCacheMode(options))));
    if (options->strict)
        g_ptr_array_add(argv, g_strdup("--strict"));
    if (options->engine)
        g_ptr_array_add(argv, g_strdup_printf("--engine=%s", options->engine));
    if (options->buffers)
        g_ptr_array_add(argv, g_strdup_printf("--buffers=%u", options->buffers));
    if (options->bufferSize)
        g_ptr_array_add(argv, g_strdup_printf("--buffer-size=%" G_GSIZE_FORMAT, options->bufferSize));
    if (options->flags & VSP_FILE_WRAPPER_SPARSE)
        g_ptr_array_add(argv, g_strdup("--sparse"));
    if (options->rateLimit)
        g_ptr_array_add(argv, g_strdup_printf("--rate-limit=%" G_GUINT64_FORMAT, options->rateLimit));
    if (options->ioPriority)
        g_ptr_array_add(argv, g_strdup_printf("--io-priority=%s", options->ioPriority));
    if (options->length != G_MAXUINT64)
        g_ptr_array_add(argv, g_strdup_printf("--length=%" G_GUINT64_FORMAT, options->length));
    if (options->compression)
        g_ptr_array_add(argv, g_strdup_printf("--compress=%s", options->compression));
    if (options->decompression)
        g_ptr_array_add(argv, g_strdup_printf("--decompress=%s", options->decompression));
    if (options->digest)
        g_ptr_array_add(argv, g_strdup("--digest"));
    if (options->plainLength)
        g_ptr_array_add(argv, g_strdup_printf("--plain-length=%" G_GUINT64_FORMAT, options->plainLength));
    g_ptr_array_add(argv, g_strdup("--"));
    g_ptr_array_add(argv, g_strdup(name));
    g_ptr_array_add(argv, g_strdup_printf("%d", fd));
    g_ptr_array_add(argv, NULL);
    return argv;
}

/* Starts the helper between @file and @stream (both borrowed) and waits for its hello. */
static int
startHelper(vspFileWrapperFd *wfd, int file, int stream, gboolean writing, GError **error)
{
    g_autofree char *path = vspHelperPathFind(wfd->options->helperPath, error);
    g_autoptr(GPtrArray) argv = NULL;
    static const char *const noEnvironment[] = { NULL };
    g_auto(vspFd) helperStatus = -1;
    int targets[3] = { STDIN_FILENO, STDOUT_FILENO, 3 };
    int sources[3];

    if (!path)
        return -1;
    if (vspStatusPair(&wfd->statusFd, &helperStatus) < 0) {
        vspSetErrno(error, errno, _("cannot create the status channel to the iohelper"));
        return -1;
    }
    sources[0] = writing ? stream : file;
    sources[1] = writing ? file : stream;
    sources[2] = helperStatus;
    argv = helperArguments(path, wfd->name, wfd->options, writing ? 1 : 0);

    wfd->child = vspChildSpawn((const char *const *) argv->pdata, noEnvironment, 0, sources, targets,
                               3, error);
    if (!wfd->child) {
        /* Not there, not allowed, not a program; but not a lack of descriptors, which is ours. */
        if (error && *error && !g_error_matches(*error, VSP_ERROR, VSP_ERROR_IO))
            (*error)->code = VSP_ERROR_HELPER_MISSING;
        return -1;
    }
    wfd->pid = vspChildGetPid(wfd->child);
    /* Closed here and not at the end: hangup must be seen while waiting for hello. */
    vspFdClose(&helperStatus);
    return waitForHello(wfd, error);
}

static vspFileWrapperFd *
newWrapper(const char *name, const vspFileWrapperOptions *options)
{
    vspFileWrapperFd *wfd = g_new0(vspFileWrapperFd, 1);

    g_mutex_init(&wfd->childLock);
    g_mutex_init(&wfd->lock);
    wfd->name = vspNameEscape(name);
    wfd->options = vspFileWrapperOptionsCopy(options);
    wfd->statusFd = wfd->endFd = -1;
    return wfd;
}

/* The direction, by the descriptor's access mode: 1 writing, 0 reading, -1 with @error. */
static int
directionOf(int fd, const char *name, GError **error)
{
    /* The only look at the file in this process; it asks the descriptor, not the file system. */
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0) {
        vspSetErrno(error, errno, _("cannot wrap '%s', descriptor %d"), name, fd);
        return -1;
    }
    switch (flags & O_ACCMODE) {
    case O_WRONLY:
        if (flags & O_APPEND) {
            vspSetError(error, VSP_ERROR_INVALID_ARGUMENT,
                        _("cannot wrap '%s': it is open for appending"), name);
            return -1;
        }
        return 1;
    case O_RDONLY:
        /* O_PATH reads as O_RDONLY and can't be read. */
        if (flags & O_PATH)
            break;
        return 0;
    default:
        break;
    }
    vspSetError(error, VSP_ERROR_INVALID_ARGUMENT,
                _("cannot wrap '%s': it must be open either for reading or for writing, not both"),
                name);
    return -1;
}

vspFileWrapperFd *
vspFileWrapperFdNewWithOptions(int *fd,
                               const char *name,
                               const vspFileWrapperOptions *options,
                               GError **error)
{
    g_autoptr(vspFileWrapperFd) wfd = NULL;
    vspTransport kind;
    vspTransportPair pair;
    int *callerEnd;
    int *helperEnd;
    int writing;
    int rc;

    g_return_val_if_fail(fd != NULL, NULL);
    g_return_val_if_fail(name != NULL, NULL);
    g_return_val_if_fail(error == NULL || *error == NULL, NULL);

    wfd = newWrapper(name, options);
    if (vspFileWrapperOptionsCheck(wfd->options, wfd->name, error) < 0 ||
        (writing = directionOf(*fd, wfd->name, error)) < 0)
        return NULL;

    kind = wfd->options->transport;
    if (kind == VSP_TRANSPORT_AUTO)
        kind = wfd->options->flags & VSP_FILE_WRAPPER_BIG_PIPE ? VSP_TRANSPORT_PIPE
                                                               : VSP_TRANSPORT_SOCKET;
    if (vspTransportOpen(kind, &pair, error) < 0)
        return NULL;
    callerEnd = writing ? &pair.writeEnd : &pair.readEnd;
    helperEnd = writing ? &pair.readEnd : &pair.writeEnd;

    rc = startHelper(wfd, *fd, *helperEnd, writing, error);
    /* From here on the helper alone holds its end: otherwise its death would not be seen. */
    vspFdClose(helperEnd);
    if (rc == 0 && wfd->options->flags & VSP_FILE_WRAPPER_NON_BLOCKING &&
        vspFdSetNonBlocking(*callerEnd, TRUE) < 0) {
        vspSetErrno(error, errno, _("cannot set up the transport for '%s'"), wfd->name);
        rc = -1;
    }
    if (rc < 0) {
        vspTransportClose(&pair);
        return NULL;
    }
    vspFdClose(fd);
    *fd = wfd->endFd = vspFdSteal(callerEnd);
    wfd->endLink = vspFdGetLink(*fd);
    wfd->transport = pair;
    wfd->hasTransport = TRUE;
    return g_steal_pointer(&wfd);
}

vspFileWrapperFd *
vspFileWrapperFdNew(int *fd, const char *name, unsigned int flags, GError **error)
{
    g_autoptr(vspFileWrapperOptions) options = vspFileWrapperOptionsNew();

    vspFileWrapperOptionsSetFlags(options, flags);
    return vspFileWrapperFdNewWithOptions(fd, name, options, error);
}

vspFileWrapperFd *
vspFileWrapperFdNewBetween(int file,
                           int stream,
                           const char *name,
                           const vspFileWrapperOptions *options,
                           gboolean writing,
                           GError **error)
{
    g_autoptr(vspFileWrapperFd) wfd = newWrapper(name, options);

    if (vspFileWrapperOptionsCheck(wfd->options, wfd->name, error) < 0 ||
        startHelper(wfd, file, stream, writing, error) < 0)
        return NULL;
    return g_steal_pointer(&wfd);
}

/* The number under which the caller's end, or a duplicate of it, is still open; -1 if it is not. */
static int
openEnd(const vspFileWrapperFd *wfd)
{
    g_autofree char *link = NULL;

    if (wfd->endFd < 0 || !wfd->endLink)
        return -1;
    link = vspFdGetLink(wfd->endFd);
    return g_strcmp0(link, wfd->endLink) == 0 ? wfd->endFd : vspFdFindLink(wfd->endLink);
}

int
vspFileWrapperFdClose(vspFileWrapperFd *wfd, GError **error)
{
    int rc, open;

    if (!wfd)
        return 0;
    g_return_val_if_fail(error == NULL || *error == NULL, -1);

    if (!vspFileWrapperFdProcess(wfd) && (open = openEnd(wfd)) >= 0) {
        vspSetError(error, VSP_ERROR_STILL_OPEN,
                    _("the stream of '%s' is still open as descriptor %d: close it first"),
                    wfd->name, open);
        return -1;
    }
    while (!vspFileWrapperFdProcess(wfd))
        vspPollOne(wfd->statusFd, POLLIN, -1);

    /* The outcome stands; this only collects the process. Who aborts has done so. */
    g_mutex_lock(&wfd->childLock);
    if (!wfd->aborted &&
        vspChildWait(wfd->child, vspDeadline(EXIT_TIMEOUT_MS), NULL) == VSP_CHILD_RUNNING)
        vspChildKill(wfd->child, SIGKILL);
    g_mutex_lock(&wfd->lock);
    rc = wfd->outcome ? -1 : 0;
    if (wfd->outcome && error)
        *error = g_error_copy(wfd->outcome);
    g_mutex_unlock(&wfd->lock);
    g_mutex_unlock(&wfd->childLock);
    return rc;
}

void
vspFileWrapperFdAbort(vspFileWrapperFd *wfd)
{
    gboolean ours;

    /* A verdict that is already here stands. */
    if (!wfd || vspFileWrapperFdProcess(wfd))
        return;

    g_mutex_lock(&wfd->childLock);
    g_mutex_lock(&wfd->lock);
    ours = !wfd->finished;
    setOutcome(wfd, g_error_new(VSP_ERROR, VSP_ERROR_ABORTED, _("the transfer of '%s' was aborted"),
                                wfd->name));
    g_mutex_unlock(&wfd->lock);
    if (ours) {
        wfd->aborted = TRUE;
        vspChildKill(wfd->child, SIGKILL);
        /* Wakes who waits in Close, whether or not the helper's end of the channel is ever closed.
         */
        shutdown(wfd->statusFd, SHUT_RDWR);
        if (vspChildWait(wfd->child, vspDeadline(EXIT_TIMEOUT_MS), NULL) == VSP_CHILD_RUNNING) {
            g_mutex_lock(&wfd->lock);
            g_clear_error(&wfd->outcome);
            wfd->outcome =
                g_error_new(VSP_ERROR, VSP_ERROR_ABORTED,
                            _("the transfer of '%s' was aborted, but its iohelper, pid %d, "
                              "hangs in the kernel"),
                            wfd->name, (int)wfd->pid);
            g_mutex_unlock(&wfd->lock);
        }
    }
    g_mutex_unlock(&wfd->childLock);
}

void
vspFileWrapperFdFree(vspFileWrapperFd *wfd)
{
    if (!wfd)
        return;
    if (wfd->child) {
        vspFileWrapperFdAbort(wfd);
        vspChildFree(wfd->child);
    }
    vspFdClose(&wfd->statusFd);
    vspFileWrapperOptionsFree(wfd->options);
    g_clear_error(&wfd->outcome);
    g_mutex_clear(&wfd->childLock);
    g_mutex_clear(&wfd->lock);
    g_free(wfd->endLink);
    g_free(wfd->name);
    g_free(wfd);
}

int
vspFileWrapperFdSetRateLimit(vspFileWrapperFd *wfd, guint64 bytesPerSecond, GError **error)
{
    vspStatusRecord record;

    memset(&record, 0, sizeof(record));
    record.control.rate = bytesPerSecond;
    if (vspFileWrapperFdProcess(wfd) ||
        vspStatusSend(wfd->statusFd, &record, VSP_STATUS_CONTROL, FALSE) < 0) {
        vspSetError(error, VSP_ERROR_FAILED, _("the transfer of '%s' has ended already"), wfd->name);
        return -1;
    }
    return 0;
}

int
vspFileWrapperFdGetStatusFd(vspFileWrapperFd *wfd)
{
    return wfd->statusFd;
}

const char *
vspFileWrapperFdGetNotice(vspFileWrapperFd *wfd)
{
    /* The helper speaks English; its words are in our catalogue. */
    return wfd->haveStatistics && wfd->statistics.notice[0] ? _(wfd->statistics.notice) : NULL;
}

const guint8 *
vspFileWrapperFdGetDigest(vspFileWrapperFd *wfd, guint64 *bytes)
{
    if (!wfd->haveStatistics || !(wfd->statistics.flags & VSP_STATISTICS_DIGEST))
        return NULL;
    if (bytes)
        *bytes = wfd->statistics.payloadBytes;
    return wfd->statistics.digest;
}

guint64
vspFileWrapperFdGetBytes(vspFileWrapperFd *wfd)
{
    g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new(&wfd->lock);

    return wfd->progress.bytesOut;
}

void
vspFileWrapperFdGetProgress(vspFileWrapperFd *wfd, vspProgress *progress)
{
    gboolean gone;

    takeReports(wfd, &gone);
    g_mutex_lock(&wfd->lock);
    *progress = wfd->progress;
    g_mutex_unlock(&wfd->lock);
}

GVariant *
vspFileWrapperFdGetStatistics(vspFileWrapperFd *wfd)
{
    GVariantBuilder builder;
    g_autoptr(GMutexLocker) locker = NULL;
    gboolean gone;

    takeReports(wfd, &gone);
    locker = g_mutex_locker_new(&wfd->lock);
    g_variant_builder_init(&builder, G_VARIANT_TYPE_VARDICT);
    if (wfd->haveStatistics)
        vspStatusStatisticsToReport(&wfd->statistics, &builder);
    if (wfd->hasTransport) {
        g_variant_builder_add(&builder, "{sv}", "transport",
                              g_variant_new_string(vspTransportToString(wfd->transport.kind)));
        g_variant_builder_add(&builder, "{sv}", "transport-asked",
                              g_variant_new_uint64(wfd->transport.asked));
        g_variant_builder_add(&builder, "{sv}", "transport-granted",
                              g_variant_new_uint64(wfd->transport.granted));
        if (wfd->transport.fallback)
            g_variant_builder_add(&builder, "{sv}", "transport-fallback",
                                  g_variant_new_string(wfd->transport.fallback));
    }
    return g_variant_ref_sink(g_variant_builder_end(&builder));
}
