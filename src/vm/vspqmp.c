/*
 * vspqmp.c: a synchronous client of QEMU's machine monitor
 *
 * Everything waits in one place, qmpPump(): it polls the socket, the cancellable and the watch,
 * sends what is left to send, and takes in whatever has arrived, also while a command is being
 * sent: QEMU stops reading from a client that does not read its events.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gi18n-lib.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vsperrorpriv.h"
#include "vspfd.h"
#include "vspio.h"
#include "vspjson.h"
#include "vspqmp.h"
#include "vspqmpconnect.h"
#include "vspqmpframer.h"
#include "vspqmpmessage.h"

/* The longest message taken. QEMU's longest, the schema of all commands, has some 200 KiB. Larger:
 * a peer that is not QEMU makes us allocate more. */
#define MESSAGE_MAX (16 * 1024 * 1024)

struct _vspQmp {
    int fd; /* non-blocking; -1 when lost */
    char *name;
    char *version;
    GPid peerPid;
    GError *lost; /* why there is no connection any more */

    vspQmpFramer *framer;
    GByteArray *unsent; /* the rest of a command that was given up while it went out */

    guint64 lastId;
    char *pendingId; /* of the command being waited for, NULL when none is */
    GVariant *reply; /* the whole message that answers it */
    GVariant *greeting;
    GQueue events;

    GCancellable *cancellable;
    GPollFD cancelFd; /* fd is -1 without a cancellable */

    int watchFd; /* -1 when there is none, or when it has fired */
    gboolean watchFired;
    vspQmpWatchFunc watchFunc;
    gpointer watchOpaque;
};

/* --- the end of a connection --- */

static void
qmpLose(vspQmp *qmp, GError *reason)
{
    if (qmp->lost) {
        g_error_free(reason);
        return;
    }
    qmp->lost = reason;
    vspFdClose(&qmp->fd);
}

static void
qmpLoseErrno(vspQmp *qmp, int errnum)
{
    qmpLose(qmp, g_error_new(VSP_ERROR, VSP_ERROR_QEMU_LOST,
                             _("the connection to the monitor '%s' was lost: %s"), qmp->name,
                             vspErrnoText(errnum)));
}

static void
qmpLoseEnd(vspQmp *qmp)
{
    qmpLose(qmp,
            g_error_new(VSP_ERROR, VSP_ERROR_QEMU_LOST,
                        _("QEMU ended, or closed the connection to its monitor '%s'"), qmp->name));
}

static int
qmpFailLost(vspQmp *qmp, GError **error)
{
    if (error)
        *error = g_error_copy(qmp->lost);
    return -1;
}

/* --- messages coming in --- */

static void
qmpTakeEventIn(vspQmp *qmp, GVariant *message)
{
    if (g_queue_get_length(&qmp->events) >= VSP_QMP_EVENTS)
        g_variant_unref(g_queue_pop_head(&qmp->events));
    g_queue_push_tail(&qmp->events, g_variant_ref(message));
}

static void
qmpTakeReplyIn(vspQmp *qmp, GVariant *message)
{
    const char *id = vspQmpGetString(message, "id");
    g_autoptr(GVariant) failure = vspQmpGetDict(message, "error");

    /* An error without an id is QEMU's answer to something it could not parse, and the only thing
     * it can have been given is the command that waits. */
    if (qmp->pendingId && !qmp->reply && (id ? g_str_equal(id, qmp->pendingId) : failure != NULL))
        qmp->reply = g_variant_ref(message);
    else
        g_debug("%s: dropped a reply with the id '%s'", qmp->name, id ? id : "");
}

static void
qmpDispatch(vspQmp *qmp, const char *text, gsize len)
{
    g_autoptr(GError) local = NULL;
    g_autoptr(GVariant) message = vspJsonParse(text, len, &local);

    if (!message || !g_variant_is_of_type(message, G_VARIANT_TYPE_VARDICT)) {
        qmpLose(qmp, g_error_new(VSP_ERROR, VSP_ERROR_QEMU,
                                 _("the monitor '%s' sent something that is not JSON: %s"),
                                 qmp->name, local ? local->message : _("no object")));
        return;
    }

    if (vspQmpGetString(message, "event")) {
        qmpTakeEventIn(qmp, message);
    } else if (!qmp->greeting) {
        qmp->greeting = vspQmpGetDict(message, "QMP");
        if (!qmp->greeting)
            qmpLose(qmp, g_error_new(VSP_ERROR, VSP_ERROR_QEMU,
                                     _("what answers at '%s' is not QEMU's machine monitor"),
                                     qmp->name));
    } else {
        qmpTakeReplyIn(qmp, message);
    }
}

/* Takes in what the socket has, up to a bound, so that a peer that never stops talking can't keep
 * us from looking at the clock. */
static void
qmpReceive(vspQmp *qmp)
{
    static const int maxRounds = 16;
    char buf[32768];

    for (int i = 0; i < maxRounds && qmp->fd >= 0; i++) {
        /* Without room for control data the kernel drops descriptors that a peer might send. */
        ssize_t n = recv(qmp->fd, buf, sizeof(buf), 0);
        const char *text;
        gsize len;
        int rc = 0;

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return;
        /* A reset is an end too: of a peer that had not read all of what we sent. */
        if (n == 0 || (n < 0 && errno == ECONNRESET)) {
            qmpLoseEnd(qmp);
            return;
        }
        if (n < 0) {
            qmpLoseErrno(qmp, errno);
            return;
        }

        g_autoptr(GError) local = NULL;

        vspQmpFramerPush(qmp->framer, buf, n);
        while (qmp->fd >= 0 && (rc = vspQmpFramerNext(qmp->framer, &text, &len, &local)) > 0)
            qmpDispatch(qmp, text, len);
        if (rc < 0)
            qmpLose(qmp,
                    g_error_new(VSP_ERROR, VSP_ERROR_QEMU, "'%s': %s", qmp->name, local->message));
    }
}

/* --- waiting --- */

static int
qmpTimeoutUntil(gint64 deadline)
{
    gint64 left;

    if (deadline < 0)
        return -1;
    left = deadline - g_get_monotonic_time();
    return left <= 0 ? 0 : (int)MIN((left + 999) / 1000, G_MAXINT);
}

static int
qmpCheckCancelled(vspQmp *qmp, GError **error)
{
    if (!qmp->cancellable || !g_cancellable_is_cancelled(qmp->cancellable))
        return 0;
    vspSetError(error, VSP_ERROR_ABORTED, _("cancelled"));
    return -1;
}

/* One round of waiting. 1: something happened; 0: deadline; -1 with @error: lost or cancelled. With
 * @sending it also waits for room to send. */
static int
qmpPump(vspQmp *qmp, gboolean sending, gint64 deadline, GError **error)
{
    struct pollfd fds[3] = {
        { .fd = qmp->fd, .events = sending ? POLLIN | POLLOUT : POLLIN },
        { .fd = qmp->cancelFd.fd, .events = POLLIN },
        { .fd = qmp->watchFd, .events = POLLIN },
    };
    int rc;

    if (qmpCheckCancelled(qmp, error) < 0)
        return -1;
    if (qmp->lost)
        return qmpFailLost(qmp, error);

    do {
        rc = poll(fds, G_N_ELEMENTS(fds), qmpTimeoutUntil(deadline));
    } while (rc < 0 && errno == EINTR);
    if (rc < 0) {
        vspSetErrno(error, errno, _("cannot wait for the monitor '%s'"), qmp->name);
        return -1;
    }

    if (fds[2].revents) {
        if (qmp->watchFunc(qmp->watchOpaque)) {
            qmp->watchFired = TRUE;
            qmp->watchFd = -1;
        }
    }
    if (fds[0].revents & (POLLIN | POLLHUP | POLLERR))
        qmpReceive(qmp);
    if (qmpCheckCancelled(qmp, error) < 0)
        return -1;
    return rc > 0;
}

/* --- commands going out --- */

/* Sends without waiting. Returns the bytes sent, 0 if there is no room, -1 when the connection is
 * lost. */
static gssize
qmpSendSome(vspQmp *qmp, const void *data, gsize len, int fd)
{
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(int))];
    } control = { 0 };
    struct iovec iov = { .iov_base = (void *)data, .iov_len = len };
    struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

    if (fd >= 0) {
        struct cmsghdr *cmsg;

        msg.msg_control = control.room;
        msg.msg_controllen = sizeof(control.room);
        cmsg = CMSG_FIRSTHDR(&msg);
        cmsg->cmsg_level = SOL_SOCKET;
        cmsg->cmsg_type = SCM_RIGHTS;
        cmsg->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(cmsg), &fd, sizeof(int));
    }

    for (;;) {
        ssize_t n = sendmsg(qmp->fd, &msg, MSG_NOSIGNAL);

        if (n >= 0)
            return n;
        if (errno == EINTR)
            continue;
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            return 0;
        /* What the peer said last may still be there, and says more than EPIPE. */
        if (errno == EPIPE || errno == ECONNRESET) {
            qmpReceive(qmp);
            qmpLoseEnd(qmp);
        } else {
            qmpLoseErrno(qmp, errno);
        }
        return -1;
    }
}

/* Sends all of @data. What was not sent when a wait was given up is kept, if its first part is out.
 */
static int
qmpSend(vspQmp *qmp, const char *data, gsize len, int fd, gint64 deadline, GError **error)
{
    gsize done = 0;
    int rc = 1;

    while (done < len) {
        gssize n = qmpSendSome(qmp, data + done, len - done, done == 0 ? fd : -1);

        if (n < 0)
            return qmpFailLost(qmp, error);
        done += n;
        if (n > 0)
            continue;
        rc = qmpPump(qmp, TRUE, deadline, error);
        if (rc == 0)
            vspSetError(error, VSP_ERROR_TIMED_OUT, _("QEMU does not read from its monitor '%s'"),
                        qmp->name);
        if (rc <= 0)
            break;
    }
    if (done > 0 && done < len)
        g_byte_array_append(qmp->unsent, (const guint8 *)data + done, len - done);
    return rc > 0 ? 0 : -1;
}

/* Completes a command of which only a part went out. */
static int
qmpSendRest(vspQmp *qmp, gint64 deadline, GError **error)
{
    g_autoptr(GByteArray) rest = NULL;

    if (qmp->unsent->len == 0)
        return 0;
    rest = g_steal_pointer(&qmp->unsent);
    qmp->unsent = g_byte_array_new();
    if (qmpSend(qmp, (const char *)rest->data, rest->len, -1, deadline, error) == 0)
        return 0;
    /* Nothing of it went out: it is still the rest. */
    if (qmp->unsent->len == 0)
        g_byte_array_append(qmp->unsent, rest->data, rest->len);
    return -1;
}

GVariant *
vspQmpExecuteFull(
    vspQmp *qmp, const char *command, GVariant *arguments, int fd, guint timeout, GError **error)
{
    gint64 deadline = vspDeadline(timeout);
    g_autoptr(GVariant) owned = arguments ? g_variant_ref_sink(arguments) : NULL;
    g_autoptr(GVariant) reply = NULL;
    g_autofree char *id = g_strdup_printf("vmspool-%" G_GUINT64_FORMAT, ++qmp->lastId);
    g_autofree char *text = vspQmpMessageFormat(command, owned, id);
    int rc = 1;

    if (qmpCheckCancelled(qmp, error) < 0)
        return NULL;
    if (qmp->lost) {
        qmpFailLost(qmp, error);
        return NULL;
    }

    qmp->pendingId = id;
    if (qmpSendRest(qmp, deadline, error) < 0 ||
        qmpSend(qmp, text, strlen(text), fd, deadline, error) < 0) {
        rc = -1;
    } else {
        while (!qmp->reply && (rc = qmpPump(qmp, FALSE, deadline, error)) > 0)
            ;
        if (rc == 0)
            vspSetError(error, VSP_ERROR_TIMED_OUT, _("QEMU did not answer '%s' within %u seconds"),
                        command, (timeout + 999) / 1000);
    }
    qmp->pendingId = NULL;
    reply = g_steal_pointer(&qmp->reply);

    /* A reply counts even if the connection ended, or a cancel came, right behind it. */
    if (!reply)
        return NULL;
    if (rc < 0)
        g_clear_error(error);
    return vspQmpMessageGetResult(command, reply, error);
}

GVariant *
vspQmpExecute(vspQmp *qmp, const char *command, GVariant *arguments, GError **error)
{
    return vspQmpExecuteFull(qmp, command, arguments, -1, VSP_QMP_TIMEOUT, error);
}

int
vspQmpRun(vspQmp *qmp, const char *command, GVariant *arguments, GError **error)
{
    g_autoptr(GVariant) result = vspQmpExecute(qmp, command, arguments, error);

    return result ? 0 : -1;
}

/* --- events --- */

GVariant *
vspQmpTakeEvent(vspQmp *qmp)
{
    return g_queue_pop_head(&qmp->events);
}

int
vspQmpWait(vspQmp *qmp, gint64 deadline, GError **error)
{
    int rc;

    while (g_queue_is_empty(&qmp->events) && !qmp->watchFired) {
        rc = qmpPump(qmp, FALSE, deadline, error);
        if (rc <= 0)
            return rc;
    }
    if (qmpCheckCancelled(qmp, error) < 0)
        return -1;
    return 1;
}

void
vspQmpDrain(vspQmp *qmp)
{
    if (!qmp->lost)
        qmpReceive(qmp);
}

gboolean
vspQmpWaitEnd(vspQmp *qmp, gint64 deadline)
{
    vspQmpSetCancellable(qmp, NULL);
    vspQmpSetWatch(qmp, -1, NULL, NULL);
    while (!qmp->lost) {
        if (qmpPump(qmp, FALSE, deadline, NULL) <= 0)
            break;
    }
    return qmp->lost != NULL;
}

/* --- life --- */

void
vspQmpSetCancellable(vspQmp *qmp, GCancellable *cancellable)
{
    if (qmp->cancelFd.fd >= 0)
        g_cancellable_release_fd(qmp->cancellable);
    qmp->cancelFd.fd = -1;
    g_clear_object(&qmp->cancellable);
    if (!cancellable)
        return;

    qmp->cancellable = g_object_ref(cancellable);
    /* Out of descriptors: a cancel is then seen at the next thing that ends the wait. */
    if (!g_cancellable_make_pollfd(cancellable, &qmp->cancelFd))
        qmp->cancelFd.fd = -1;
}

void
vspQmpSetWatch(vspQmp *qmp, int fd, vspQmpWatchFunc func, gpointer opaque)
{
    qmp->watchFd = fd;
    qmp->watchFired = FALSE;
    qmp->watchFunc = func;
    qmp->watchOpaque = opaque;
}

gboolean
vspQmpIsLost(const vspQmp *qmp)
{
    return qmp->lost != NULL;
}

int
vspQmpGetFd(const vspQmp *qmp)
{
    return qmp->fd;
}

GPid
vspQmpGetPeerPid(const vspQmp *qmp)
{
    return qmp->peerPid;
}

const char *
vspQmpGetVersion(const vspQmp *qmp)
{
    return qmp->version;
}

static char *
qmpVersionFromGreeting(GVariant *greeting)
{
    g_autoptr(GVariant) version = vspQmpGetDict(greeting, "version");
    g_autoptr(GVariant) numbers = version ? vspQmpGetDict(version, "qemu") : NULL;

    if (!numbers)
        return g_strdup("");
    return g_strdup_printf("%" G_GUINT64_FORMAT ".%" G_GUINT64_FORMAT ".%" G_GUINT64_FORMAT,
                           vspQmpGetNumber(numbers, "major"), vspQmpGetNumber(numbers, "minor"),
                           vspQmpGetNumber(numbers, "micro"));
}

static int
qmpGreet(vspQmp *qmp, guint timeout, GError **error)
{
    gint64 deadline = vspDeadline(timeout);

    while (!qmp->greeting) {
        int rc = qmpPump(qmp, FALSE, deadline, error);

        if (rc == 0)
            vspSetError(error, VSP_ERROR_TIMED_OUT,
                        _("the monitor '%s' is silent: another client is connected to it, or QEMU "
                          "hangs"),
                        qmp->name);
        if (rc <= 0)
            return -1;
    }
    qmp->version = qmpVersionFromGreeting(qmp->greeting);
    return vspQmpRun(qmp, "qmp_capabilities", NULL, error);
}

vspQmp *
vspQmpOpenFd(int *fd, const char *name, guint timeout, GCancellable *cancellable, GError **error)
{
    g_autoptr(vspQmp) qmp = g_new0(vspQmp, 1);
    struct ucred peer;
    socklen_t len = sizeof(peer);

    qmp->fd = vspFdSteal(fd);
    qmp->name = vspNameEscape(name);
    qmp->framer = vspQmpFramerNew(MESSAGE_MAX);
    qmp->unsent = g_byte_array_new();
    qmp->cancelFd.fd = qmp->watchFd = -1;
    g_queue_init(&qmp->events);

    if (vspFdSetNonBlocking(qmp->fd, TRUE) < 0) {
        vspSetErrno(error, errno, _("cannot use the monitor '%s'"), qmp->name);
        return NULL;
    }
    if (getsockopt(qmp->fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0)
        qmp->peerPid = peer.pid;
    vspQmpSetCancellable(qmp, cancellable);
    if (qmpGreet(qmp, timeout, error) < 0)
        return NULL;
    return g_steal_pointer(&qmp);
}

vspQmp *
vspQmpOpen(const char *path, GCancellable *cancellable, GError **error)
{
    g_auto(vspFd) fd = vspQmpConnect(path, cancellable, error);

    if (fd < 0)
        return NULL;
    return vspQmpOpenFd(&fd, path, VSP_QMP_TIMEOUT_GREETING, cancellable, error);
}

void
vspQmpFree(vspQmp *qmp)
{
    if (!qmp)
        return;
    vspQmpSetCancellable(qmp, NULL);
    vspFdClose(&qmp->fd);
    g_clear_error(&qmp->lost);
    vspQmpFramerFree(qmp->framer);
    g_byte_array_unref(qmp->unsent);
    g_clear_pointer(&qmp->reply, g_variant_unref);
    g_clear_pointer(&qmp->greeting, g_variant_unref);
    g_queue_clear_full(&qmp->events, (GDestroyNotify)g_variant_unref);
    g_free(qmp->version);
    g_free(qmp->name);
    g_free(qmp);
}
