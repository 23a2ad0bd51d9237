/*
 * test-qmp.c: the QMP client against a peer that does everything a peer can do
 *
 * The peer is a thread at the other end of a socket pair that runs a script. Each script ends when
 * the client closes its end.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <vmspool/vsp-error.h>

#include "testutil.h"
#include "vspfd.h"
#include "vspio.h"
#include "vspqmp.h"
#include "vspqmpconnect.h"

#define GREETING                                                                                   \
    "{\"QMP\": {\"version\": {\"qemu\": {\"micro\": 22, \"minor\": 2, \"major\": 7}, "             \
    "\"package\": \"x\"}, \"capabilities\": [\"oob\"]}}\r\n"

/* No wait of these tests comes near this, unless something hangs. */
#define LIMIT_MS 30000

typedef struct _peer peer;
typedef void (*peerScript)(peer *p);

struct _peer {
    int fd;
    peerScript script;
    GThread *thread;
    gsize cut; /* for the scripts that end early */
    gsize sent;
    int received; /* descriptors that came in */
    gboolean rodeFirst;
    GCancellable *cancellable;
};

static gpointer
peerThread(gpointer opaque)
{
    peer *p = opaque;

    p->script(p);
    vspFdClose(&p->fd);
    return NULL;
}

static void
peerStart(peer *p, int *client, peerScript script)
{
    int pair[2];

    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), ==, 0);
    *client = pair[0];
    p->fd = pair[1];
    p->script = script;
    p->thread = g_thread_new("peer", peerThread, p);
}

static void
peerJoin(peer *p)
{
    g_thread_join(p->thread);
}

/* FALSE when the client is gone, or at the cut. */
static gboolean
peerSend(peer *p, const char *text, gsize piece)
{
    gsize len = strlen(text);

    for (gsize done = 0; done < len;) {
        gsize n = MIN(piece, len - done);

        if (p->cut)
            n = MIN(n, p->cut - p->sent);
        if (n == 0 || send(p->fd, text + done, n, MSG_NOSIGNAL) != (ssize_t)n)
            return FALSE;
        done += n;
        p->sent += n;
    }
    return !p->cut || p->sent < p->cut;
}

/* Reads one command, byte by byte, counting the descriptors that ride with it; returns its id, NULL
 * when the client is gone. */
static char *
peerReadCommand(peer *p)
{
    g_autoptr(GString) line = g_string_new(NULL);
    const char *id;

    for (;;) {
        union {
            struct cmsghdr align;
            char room[CMSG_SPACE(4 * sizeof(int))];
        } control;
        char byte;
        struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
        struct msghdr msg = { .msg_iov = &iov,
                              .msg_iovlen = 1,
                              .msg_control = control.room,
                              .msg_controllen = sizeof(control.room) };

        if (recvmsg(p->fd, &msg, MSG_CMSG_CLOEXEC) != 1)
            return NULL;
        for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
            int fds[4];
            gsize count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

            memcpy(fds, CMSG_DATA(c), count * sizeof(int));
            p->rodeFirst = line->len == 0;
            for (gsize i = 0; i < count; i++) {
                p->received++;
                vspFdClose(&fds[i]);
            }
        }
        if (byte == '\n')
            break;
        g_string_append_c(line, byte);
    }

    id = strstr(line->str, "\"id\":\"");
    g_assert_nonnull(id);
    id += strlen("\"id\":\"");
    return g_strndup(id, strcspn(id, "\""));
}

static gboolean
peerReply(peer *p, const char *id, const char *what, gsize piece)
{
    g_autofree char *text = g_strdup_printf("{\"id\": \"%s\", %s}\r\n", id, what);

    return peerSend(p, text, piece);
}

static gboolean
peerGreet(peer *p, gsize piece)
{
    g_autofree char *id = NULL;

    if (!peerSend(p, GREETING, piece))
        return FALSE;
    id = peerReadCommand(p);
    return id && peerReply(p, id, "\"return\": {}", piece);
}

static void
peerWaitEnd(peer *p)
{
    char byte;

    while (read(p->fd, &byte, 1) == 1)
        ;
}

static vspQmp *
openPeer(peer *p, peerScript script)
{
    g_autoptr(GError) error = NULL;
    vspQmp *qmp;
    int fd;

    peerStart(p, &fd, script);
    qmp = vspQmpOpenFd(&fd, "peer", LIMIT_MS, NULL, &error);
    g_assert_no_error(error);
    g_assert_nonnull(qmp);
    g_assert_cmpint(fd, ==, -1);
    return qmp;
}

static guint
countFds(void)
{
    g_autoptr(GDir) dir = g_dir_open("/proc/self/fd", 0, NULL);
    guint count = 0;

    while (g_dir_read_name(dir))
        count++;
    return count;
}

/* --- the scripts and their tests --- */

static void
scriptPieces(peer *p)
{
    g_autofree char *id = NULL;

    if (!peerGreet(p, 1))
        return;
    id = peerReadCommand(p);
    peerSend(p, "{\"event\": \"STOP\", \"timestamp\": {}}\r\n", 1);
    /* As a monitor in pretty mode writes, with all that could mislead who looks for the end. */
    peerReply(p, id, "\n \"return\": {\n  \"status\": \"}{\\\"}\\\\\",\n \"n\": 5}\n", 1);
    peerWaitEnd(p);
}

static void
testPieces(void)
{
    peer p = { 0 };
    g_autoptr(vspQmp) qmp = openPeer(&p, scriptPieces);
    g_autoptr(GError) error = NULL;
    g_autoptr(GVariant) result = vspQmpExecute(qmp, "query-status", NULL, &error);
    g_autoptr(GVariant) event = NULL;

    g_assert_no_error(error);
    g_assert_cmpstr(vspQmpGetString(result, "status"), ==, "}{\"}\\");
    g_assert_cmpuint(vspQmpGetNumber(result, "n"), ==, 5);
    g_assert_cmpuint(vspQmpGetNumber(result, "status"), ==, 0);
    g_assert_null(vspQmpGetString(result, "n"));
    g_assert_cmpstr(vspQmpGetVersion(qmp), ==, "7.2.22");

    event = vspQmpTakeEvent(qmp);
    g_assert_cmpstr(vspQmpGetString(event, "event"), ==, "STOP");
    g_assert_null(vspQmpTakeEvent(qmp));
    g_clear_pointer(&qmp, vspQmpFree);
    peerJoin(&p);
}

static void
scriptFlood(peer *p)
{
    g_autofree char *id = NULL;

    if (!peerGreet(p, G_MAXSIZE))
        return;
    id = peerReadCommand(p);
    for (int i = 1; i <= 10000; i++) {
        g_autofree char *event =
            g_strdup_printf("{\"event\": \"RTC_CHANGE\", \"data\": {\"n\": %d}}\r\n", i);

        if (!peerSend(p, event, G_MAXSIZE))
            return;
    }
    peerReply(p, id, "\"return\": {}", G_MAXSIZE);
    peerWaitEnd(p);
}

static void
testFlood(void)
{
    peer p = { 0 };
    g_autoptr(vspQmp) qmp = openPeer(&p, scriptFlood);
    g_autoptr(GError) error = NULL;
    GVariant *event;
    guint count = 0;
    guint64 last = 0;

    g_assert_cmpint(vspQmpRun(qmp, "query-status", NULL, &error), ==, 0);
    g_assert_no_error(error);
    while ((event = vspQmpTakeEvent(qmp))) {
        g_autoptr(GVariant) data = vspQmpGetDict(event, "data");

        last = vspQmpGetNumber(data, "n");
        count++;
        g_variant_unref(event);
    }
    g_assert_cmpuint(count, ==, VSP_QMP_EVENTS);
    g_assert_cmpuint(last, ==, 10000);
    g_clear_pointer(&qmp, vspQmpFree);
    peerJoin(&p);
}

static void
scriptCut(peer *p)
{
    g_autofree char *id = NULL;

    if (!peerGreet(p, G_MAXSIZE))
        return;
    id = peerReadCommand(p);
    if (id && peerReply(p, id, "\"return\": {\"running\": true}", G_MAXSIZE))
        peerWaitEnd(p);
}

static void
testDeath(void)
{
    guint before = countFds();
    gboolean whole = FALSE;

    /* Until the conversation is short enough to be complete. */
    for (gsize cut = 1; !whole; cut++) {
        peer p = { .cut = cut };
        g_autoptr(vspQmp) qmp = NULL;
        g_autoptr(GVariant) result = NULL;
        g_autoptr(GError) error = NULL;
        int fd;

        g_assert_cmpuint(cut, <, 1000);
        peerStart(&p, &fd, scriptCut);
        qmp = vspQmpOpenFd(&fd, "peer", LIMIT_MS, NULL, &error);
        if (qmp)
            result = vspQmpExecute(qmp, "query-status", NULL, &error);
        if (result) {
            whole = TRUE;
            g_assert_no_error(error);
        } else {
            g_assert_error(error, VSP_ERROR, VSP_ERROR_QEMU_LOST);
            if (qmp)
                g_assert_true(vspQmpIsLost(qmp));
        }
        g_clear_pointer(&qmp, vspQmpFree);
        peerJoin(&p);
    }
    g_assert_cmpuint(countFds(), ==, before);
}

static void
scriptIds(peer *p)
{
    g_autofree char *first = NULL;
    g_autofree char *second = NULL;
    g_autofree char *third = NULL;

    if (!peerGreet(p, G_MAXSIZE))
        return;
    first = peerReadCommand(p);
    peerReply(p, "someone-else", "\"return\": {\"n\": 1}", G_MAXSIZE);
    peerSend(p, "{\"return\": {\"n\": 2}}\r\n", G_MAXSIZE);
    peerReply(p, first, "\"return\": {\"n\": 3}", G_MAXSIZE);
    /* The same again: whoever comes next must not take it. */
    peerReply(p, first, "\"return\": {\"n\": 4}", G_MAXSIZE);
    second = peerReadCommand(p);
    peerReply(p, second, "\"error\": {\"class\": \"GenericError\", \"desc\": \"no way\"}",
              G_MAXSIZE);
    third = peerReadCommand(p);
    peerSend(p, "{\"error\": {\"class\": \"GenericError\", \"desc\": \"not JSON\"}}\r\n",
             G_MAXSIZE);
    peerWaitEnd(p);
}

static void
testIds(void)
{
    peer p = { 0 };
    g_autoptr(vspQmp) qmp = openPeer(&p, scriptIds);
    g_autoptr(GError) error = NULL;
    g_autoptr(GVariant) result = vspQmpExecute(qmp, "one", NULL, &error);

    g_assert_no_error(error);
    g_assert_cmpuint(vspQmpGetNumber(result, "n"), ==, 3);

    g_assert_cmpint(vspQmpRun(qmp, "two", NULL, &error), ==, -1);
    g_assert_error(error, VSP_ERROR, VSP_ERROR_QEMU);
    g_assert_nonnull(strstr(error->message, "'two'"));
    g_assert_nonnull(strstr(error->message, "no way"));
    g_clear_error(&error);

    g_assert_cmpint(vspQmpRun(qmp, "three", NULL, &error), ==, -1);
    g_assert_error(error, VSP_ERROR, VSP_ERROR_QEMU);
    g_assert_nonnull(strstr(error->message, "not JSON"));
    g_assert_false(vspQmpIsLost(qmp));
    g_clear_pointer(&qmp, vspQmpFree);
    peerJoin(&p);
}

static void
scriptAnswerAll(peer *p)
{
    if (!peerGreet(p, G_MAXSIZE))
        return;
    for (;;) {
        g_autofree char *id = peerReadCommand(p);

        if (!id || !peerReply(p, id, "\"return\": {}", G_MAXSIZE))
            return;
    }
}

/* A command too large for the socket's buffer: it goes out in parts. */
static GVariant *
hugeArguments(void)
{
    g_autofree char *filler = g_strnfill(768 * 1024, 'x');

    return g_variant_new_parsed("{'fdname': <'f'>, 'filler': <%s>}", filler);
}

static void
testPassFd(gconstpointer huge)
{
    guint before = countFds();
    peer p = { 0 };
    g_autoptr(vspQmp) qmp = openPeer(&p, scriptAnswerAll);
    g_autoptr(GError) error = NULL;
    g_autoptr(GVariant) result = NULL;
    g_auto(vspFd) fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    result = vspQmpExecuteFull(qmp, "getfd",
                               huge ? hugeArguments() : g_variant_new_parsed("{'fdname': <'f'>}"),
                               fd, LIMIT_MS, &error);
    g_assert_no_error(error);
    g_assert_nonnull(result);
    g_assert_cmpint(vspQmpRun(qmp, "next", NULL, &error), ==, 0);
    /* Borrowed. */
    g_assert_cmpint(fcntl(fd, F_GETFD), >=, 0);
    g_clear_pointer(&qmp, vspQmpFree);
    peerJoin(&p);
    g_assert_cmpint(p.received, ==, 1);
    g_assert_true(p.rodeFirst);
    vspFdClose(&fd);
    g_assert_cmpuint(countFds(), ==, before);
}

static void
scriptLate(peer *p)
{
    g_autofree char *first = NULL;
    g_autofree char *second = NULL;

    if (!peerGreet(p, G_MAXSIZE))
        return;
    first = peerReadCommand(p);
    second = peerReadCommand(p);
    peerReply(p, first, "\"return\": {\"n\": 1}", G_MAXSIZE);
    peerReply(p, second, "\"return\": {\"n\": 2}", G_MAXSIZE);
    peerWaitEnd(p);
}

static void
testTimeout(void)
{
    peer p = { 0 };
    g_autoptr(vspQmp) qmp = openPeer(&p, scriptLate);
    g_autoptr(GError) error = NULL;
    g_autoptr(GVariant) result = NULL;

    g_assert_null(vspQmpExecuteFull(qmp, "slow", NULL, -1, 50, &error));
    g_assert_error(error, VSP_ERROR, VSP_ERROR_TIMED_OUT);
    g_assert_nonnull(strstr(error->message, "'slow'"));
    g_clear_error(&error);

    /* The reply that comes late is not taken for that of the next command. */
    result = vspQmpExecute(qmp, "next", NULL, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(vspQmpGetNumber(result, "n"), ==, 2);
    g_clear_pointer(&qmp, vspQmpFree);
    peerJoin(&p);
}

/* Cancels once the command has come in. */
static void
scriptCancel(peer *p)
{
    g_autofree char *first = NULL;
    g_autofree char *second = NULL;

    if (!peerGreet(p, G_MAXSIZE))
        return;
    first = peerReadCommand(p);
    g_cancellable_cancel(p->cancellable);
    second = peerReadCommand(p);
    peerReply(p, first, "\"return\": {\"n\": 1}", G_MAXSIZE);
    peerReply(p, second, "\"return\": {\"n\": 2}", G_MAXSIZE);
    peerWaitEnd(p);
}

static void
testCancel(void)
{
    g_autoptr(GCancellable) cancellable = g_cancellable_new();
    peer p = { .cancellable = cancellable };
    g_autoptr(vspQmp) qmp = openPeer(&p, scriptCancel);
    g_autoptr(GError) error = NULL;
    g_autoptr(GVariant) result = NULL;

    vspQmpSetCancellable(qmp, cancellable);
    g_assert_cmpint(vspQmpRun(qmp, "stop", NULL, &error), ==, -1);
    g_assert_error(error, VSP_ERROR, VSP_ERROR_ABORTED);
    g_clear_error(&error);
    /* Nothing goes out any more while it is cancelled. */
    g_assert_cmpint(vspQmpRun(qmp, "never", NULL, &error), ==, -1);
    g_assert_error(error, VSP_ERROR, VSP_ERROR_ABORTED);
    g_clear_error(&error);

    vspQmpSetCancellable(qmp, NULL);
    result = vspQmpExecute(qmp, "cont", NULL, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(vspQmpGetNumber(result, "n"), ==, 2);
    g_clear_pointer(&qmp, vspQmpFree);
    peerJoin(&p);
}

/* Does not read until it is told to, by a cancel. */
static void
scriptStuck(peer *p)
{
    if (!peerGreet(p, G_MAXSIZE))
        return;
    while (!g_cancellable_is_cancelled(p->cancellable))
        g_usleep(1000);
    for (;;) {
        g_autofree char *id = peerReadCommand(p);
        g_autofree char *what = NULL;

        if (!id)
            return;
        what = g_strdup_printf("\"return\": {\"id\": \"%s\"}", id);
        if (!peerReply(p, id, what, G_MAXSIZE))
            return;
    }
}

static void
testPartialSend(void)
{
    g_autoptr(GCancellable) released = g_cancellable_new();
    peer p = { .cancellable = released };
    g_autoptr(vspQmp) qmp = openPeer(&p, scriptStuck);
    g_autoptr(GError) error = NULL;
    g_autoptr(GVariant) result = NULL;

    /* Given up in the middle of a command, whose rest then has to go out before the next one. */
    g_assert_null(vspQmpExecuteFull(qmp, "huge", hugeArguments(), -1, 50, &error));
    g_assert_error(error, VSP_ERROR, VSP_ERROR_TIMED_OUT);
    g_clear_error(&error);
    g_assert_null(vspQmpExecuteFull(qmp, "small", NULL, -1, 50, &error));
    g_assert_error(error, VSP_ERROR, VSP_ERROR_TIMED_OUT);
    g_clear_error(&error);

    g_cancellable_cancel(released);
    result = vspQmpExecute(qmp, "next", NULL, &error);
    g_assert_no_error(error);
    /* Greeting, huge, small, next. */
    g_assert_cmpstr(vspQmpGetString(result, "id"), ==, "vmspool-4");
    g_clear_pointer(&qmp, vspQmpFree);
    peerJoin(&p);
}

static void
scriptSilent(peer *p)
{
    peerWaitEnd(p);
}

static void
scriptHuman(peer *p)
{
    peerSend(p, "QEMU 7.2.22 monitor - type 'help' for more information\r\n(qemu) ", G_MAXSIZE);
    peerWaitEnd(p);
}

static void
scriptOtherJson(peer *p)
{
    peerSend(p, "{\"hello\": \"world\"}\r\n", G_MAXSIZE);
    peerWaitEnd(p);
}

static void
scriptEndless(peer *p)
{
    g_autofree char *filler = g_strnfill(1024 * 1024, 'x');

    if (!peerSend(p, "{\"QMP\": \"", G_MAXSIZE))
        return;
    while (peerSend(p, filler, G_MAXSIZE))
        ;
}

static void
testNotQmp(void)
{
    static const struct {
        peerScript script;
        guint timeout;
        vspError code;
    } cases[] = {
        { scriptSilent, 50, VSP_ERROR_TIMED_OUT },
        { scriptHuman, LIMIT_MS, VSP_ERROR_QEMU },
        { scriptOtherJson, LIMIT_MS, VSP_ERROR_QEMU },
        { scriptEndless, LIMIT_MS, VSP_ERROR_QEMU },
    };
    guint before = countFds();

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        peer p = { 0 };
        g_autoptr(GError) error = NULL;
        int fd;

        peerStart(&p, &fd, cases[i].script);
        g_assert_null(vspQmpOpenFd(&fd, "peer", cases[i].timeout, NULL, &error));
        g_assert_error(error, VSP_ERROR, (int)cases[i].code);
        g_assert_cmpint(fd, ==, -1);
        peerJoin(&p);
    }
    g_assert_cmpuint(countFds(), ==, before);
}

static gboolean
takeWatched(gpointer opaque)
{
    int *pipefd = opaque;
    char byte;

    g_assert_cmpint(read(pipefd[0], &byte, 1), ==, 1);
    return byte == '!';
}

static void
testWatch(void)
{
    peer p = { 0 };
    g_autoptr(vspQmp) qmp = openPeer(&p, scriptAnswerAll);
    g_autoptr(GError) error = NULL;
    int fds[2];

    g_assert_cmpint(pipe2(fds, O_CLOEXEC), ==, 0);
    vspQmpSetWatch(qmp, fds[0], takeWatched, fds);
    g_assert_cmpint(vspQmpWait(qmp, vspDeadline(10), &error), ==, 0);

    /* Taken in, and of no interest. */
    g_assert_cmpint(write(fds[1], ".", 1), ==, 1);
    g_assert_cmpint(vspQmpWait(qmp, vspDeadline(10), &error), ==, 0);
    /* Of interest: but a command is seen through. */
    g_assert_cmpint(write(fds[1], "!", 1), ==, 1);
    g_assert_cmpint(vspQmpRun(qmp, "query-status", NULL, &error), ==, 0);
    g_assert_cmpint(vspQmpWait(qmp, vspDeadline(LIMIT_MS), &error), ==, 1);
    g_assert_no_error(error);

    vspQmpSetWatch(qmp, -1, NULL, NULL);
    g_assert_cmpint(vspQmpWait(qmp, vspDeadline(10), &error), ==, 0);
    g_clear_pointer(&qmp, vspQmpFree);
    peerJoin(&p);
    vspFdClose(&fds[0]);
    vspFdClose(&fds[1]);
}

/* It dies with the command half read: to the client that is a reset, where otherwise it is an end. */
static void
scriptUnread(peer *p)
{
    char byte;

    if (peerGreet(p, G_MAXSIZE))
        g_assert_cmpint(recv(p->fd, &byte, 1, 0), ==, 1);
}

static void
testUnread(void)
{
    peer p = { 0 };
    g_autoptr(vspQmp) qmp = openPeer(&p, scriptUnread);
    g_autoptr(GError) error = NULL;

    g_assert_cmpint(vspQmpRun(qmp, "cont", NULL, &error), ==, -1);
    g_assert_error(error, VSP_ERROR, VSP_ERROR_QEMU_LOST);
    g_assert_nonnull(strstr(error->message, "QEMU ended"));
    g_clear_pointer(&qmp, vspQmpFree);
    peerJoin(&p);
}

/* The last words are heard, and the end is noticed without a deadline being reached. */
static void
scriptLastWords(peer *p)
{
    g_autofree char *id = NULL;

    if (!peerGreet(p, G_MAXSIZE))
        return;
    id = peerReadCommand(p);
    peerSend(p, "{\"event\": \"SHUTDOWN\"}\r\n", G_MAXSIZE);
    peerReply(p, id, "\"return\": {}", G_MAXSIZE);
}

static void
testEnd(void)
{
    peer p = { 0 };
    g_autoptr(vspQmp) qmp = openPeer(&p, scriptLastWords);
    g_autoptr(GError) error = NULL;
    g_autoptr(GVariant) event = NULL;

    g_assert_cmpint(vspQmpRun(qmp, "quit", NULL, &error), ==, 0);
    g_assert_true(vspQmpWaitEnd(qmp, vspDeadline(LIMIT_MS)));
    g_assert_true(vspQmpIsLost(qmp));
    event = vspQmpTakeEvent(qmp);
    g_assert_nonnull(event);
    g_assert_cmpint(vspQmpWait(qmp, vspDeadline(LIMIT_MS), &error), ==, -1);
    g_assert_error(error, VSP_ERROR, VSP_ERROR_QEMU_LOST);
    g_clear_error(&error);
    g_assert_cmpint(vspQmpRun(qmp, "cont", NULL, &error), ==, -1);
    g_assert_error(error, VSP_ERROR, VSP_ERROR_QEMU_LOST);
    peerJoin(&p);
}

static void
testConnect(void)
{
    g_autofree char *top = g_dir_make_tmp("vspqmp-XXXXXX", NULL);
    g_autofree char *deep = g_strdup_printf("%s/%0100d", top, 0);
    g_autofree char *file = g_build_filename(deep, "m", NULL);
    g_autofree char *local = g_strdup_printf("%s/short", top);
    g_autoptr(GError) error = NULL;
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    g_auto(vspFd) listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    g_auto(vspFd) fd = -1;

    g_assert_cmpint(vspQmpConnect(local, NULL, &error), ==, -1);
    g_assert_error(error, VSP_ERROR, VSP_ERROR_NOT_FOUND);
    g_clear_error(&error);

    /* A path too long for an address. */
    g_assert_cmpint(mkdir(deep, 0700), ==, 0);
    strcpy(address.sun_path, local);
    g_assert_cmpint(bind(listener, (struct sockaddr *)&address, sizeof(address)), ==, 0);
    g_assert_cmpint(rename(local, file), ==, 0);
    g_assert_cmpint(vspQmpConnect(file, NULL, &error), ==, -1);
    g_assert_error(error, VSP_ERROR, VSP_ERROR_NOT_FOUND);
    g_assert_nonnull(strstr(error->message, "nobody listens"));
    g_clear_error(&error);

    g_assert_cmpint(listen(listener, 1), ==, 0);
    fd = vspQmpConnect(file, NULL, &error);
    g_assert_no_error(error);
    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(fcntl(fd, F_GETFD) & FD_CLOEXEC, ==, FD_CLOEXEC);

    unlink(file);
    rmdir(deep);
    rmdir(top);
}

int
main(int argc, char **argv)
{
    vspTestInit(&argc, &argv);
    /* Nothing here may hang; if something does, this tells which. */
    alarm(120);

    g_test_add_func("/qmp/pieces", testPieces);
    g_test_add_func("/qmp/flood", testFlood);
    g_test_add_func("/qmp/death", testDeath);
    g_test_add_func("/qmp/ids", testIds);
    g_test_add_data_func("/qmp/pass-fd", NULL, testPassFd);
    g_test_add_data_func("/qmp/pass-fd-huge", "huge", testPassFd);
    g_test_add_func("/qmp/timeout", testTimeout);
    g_test_add_func("/qmp/cancel", testCancel);
    g_test_add_func("/qmp/partial-send", testPartialSend);
    g_test_add_func("/qmp/not-qmp", testNotQmp);
    g_test_add_func("/qmp/watch", testWatch);
    g_test_add_func("/qmp/unread", testUnread);
    g_test_add_func("/qmp/end", testEnd);
    g_test_add_func("/qmp/connect", testConnect);
    return vspTestRun();
}
