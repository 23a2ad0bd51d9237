/*
 * fakeqemu.c: a double of QEMU that fails in every way there is
 *
 * Two threads: one serves the monitor, one moves the bytes of a migration or dump. "lock" guards
 * all that both touch.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "fakeqemu.h"
#include "vspfd.h"
#include "vspio.h"
#include "vspjson.h"
#include "vspqmp.h"

#define PIECE 65536

struct _fakeQemu {
    fakeQemuPlan plan;
    char *path;
    int listener;
    int client; /* -1 without */
    GThread *monitor;
    GThread *mover;

    GMutex lock;
    GCond changed;
    gboolean ending;
    gboolean dead;
    gboolean quit;
    const char *state;
    gboolean resume;    /* after a dump */
    GHashTable *counts; /* command → number */
    GHashTable *fds;    /* name → descriptor */

    const char *migrate; /* status */
    const char *dump;
    gsize detour;
    gboolean cancelled;
    gboolean incoming;
    int stream; /* the mover's */
    gsize moved;
    GByteArray *received;

    gboolean events, xbzrle, hadSettings;
    gint64 bandwidth;
};

#define BANDWIDTH 134217728

guint8
fakeQemuByte(gsize offset)
{
    /* Of a period that no block size divides, and beginning as a migration does. */
    return offset < 4 ? (guint8) "QEVM"[offset] : offset % 251;
}

/* --- talking --- */

static void
sayLine(fakeQemu *qemu, const char *text)
{
    g_autofree char *line = g_strconcat(text, "\r\n", NULL);

    if (qemu->client >= 0 && send(qemu->client, line, strlen(line), MSG_NOSIGNAL) < 0)
        return;
}

static void
sayEvent(fakeQemu *qemu, const char *name, const char *data)
{
    g_autofree char *line = g_strdup_printf("{\"event\": \"%s\", \"data\": %s}", name, data);

    sayLine(qemu, line);
}

/* With the lock held. As of a process that is gone: nobody sees any of its descriptors again. */
static void
die(fakeQemu *qemu)
{
    GHashTableIter iter;
    gpointer fd;

    qemu->dead = TRUE;
    if (qemu->client >= 0)
        shutdown(qemu->client, SHUT_RDWR);
    shutdown(qemu->listener, SHUT_RDWR);
    if (!qemu->mover)
        vspFdClose(&qemu->stream);
    g_hash_table_iter_init(&iter, qemu->fds);
    while (g_hash_table_iter_next(&iter, NULL, &fd)) {
        int one = GPOINTER_TO_INT(fd);

        vspFdClose(&one);
    }
    g_hash_table_remove_all(qemu->fds);
    g_cond_broadcast(&qemu->changed);
}

static void
setMigrate(fakeQemu *qemu, const char *status)
{
    g_autofree char *data = g_strdup_printf("{\"status\": \"%s\"}", status);

    qemu->migrate = status;
    if (qemu->events && !qemu->plan.noEvents)
        sayEvent(qemu, "MIGRATION", data);
}

static gboolean
isRunning(fakeQemu *qemu)
{
    return g_str_equal(qemu->state, "running");
}

/* --- moving --- */

/* The helper is a child of this process and of any of its threads. */
static void
killHelper(void)
{
    g_autoptr(GDir) tasks = g_dir_open("/proc/self/task", 0, NULL);
    const char *task;

    while ((task = g_dir_read_name(tasks))) {
        g_autofree char *path = g_strdup_printf("/proc/self/task/%s/children", task);
        g_autofree char *text = NULL;
        g_auto(GStrv) pids = NULL;

        if (!g_file_get_contents(path, &text, NULL, NULL))
            continue;
        pids = g_strsplit(g_strstrip(text), " ", -1);
        for (gsize i = 0; pids[i]; i++) {
            if (*pids[i])
                kill(atoi(pids[i]), SIGKILL);
        }
    }
}

/* What is to happen at this byte. With the lock held; FALSE when it is the end of the VM. */
static gboolean
reach(fakeQemu *qemu, gsize before, gsize now)
{
    const fakeQemuPlan *plan = &qemu->plan;

#define PASSES(at) ((at) && before < (at) && now >= (at))
    if (PASSES(plan->cancelAtByte))
        g_cancellable_cancel(plan->cancellable);
    if (PASSES(plan->killHelperAtByte))
        killHelper();
    if (PASSES(plan->dieAtByte))
        die(qemu);
    while (PASSES(plan->stallAtByte) && !qemu->cancelled && !qemu->dead && !qemu->ending)
        g_cond_wait(&qemu->changed, &qemu->lock);
#undef PASSES
    return !qemu->dead && !qemu->ending;
}

/* One piece out; FALSE at an error. */
static gboolean
moveOut(fakeQemu *qemu, gsize *done)
{
    guint8 piece[PIECE];
    gsize len = MIN(sizeof(piece), qemu->plan.streamLength - *done);

    for (gsize i = 0; i < len; i++)
        piece[i] = fakeQemuByte(*done + i);
    if (vspWriteFull(qemu->stream, piece, len) < 0)
        return FALSE;
    *done += len;
    return TRUE;
}

/* One piece in; FALSE at the end. */
static gboolean
moveIn(fakeQemu *qemu, gsize *done)
{
    guint8 piece[PIECE];
    gsize len = sizeof(piece);
    ssize_t n;

    if (qemu->plan.streamLength)
        len = MIN(len, qemu->plan.streamLength - *done);
    n = len ? vspReadFull(qemu->stream, piece, len) : 0;
    if (n <= 0)
        return FALSE;
    g_mutex_lock(&qemu->lock);
    g_byte_array_append(qemu->received, piece, n);
    g_mutex_unlock(&qemu->lock);
    *done += n;
    return TRUE;
}

/* Everything until an end or an error. TRUE if all that was planned has gone. */
static gboolean
moveAll(fakeQemu *qemu)
{
    gsize done = 0;
    gboolean alive = TRUE;

    for (;;) {
        gsize before = done;
        gboolean stop;

        if (!qemu->incoming && done >= qemu->plan.streamLength)
            return TRUE;
        if (!(qemu->incoming ? moveIn(qemu, &done) : moveOut(qemu, &done)))
            return qemu->incoming;
        g_mutex_lock(&qemu->lock);
        qemu->moved = done;
        alive = reach(qemu, before, done);
        stop = !alive || qemu->cancelled;
        g_mutex_unlock(&qemu->lock);
        if (stop)
            return FALSE;
    }
}

static gpointer
migrateThread(gpointer opaque)
{
    fakeQemu *qemu = opaque;
    gboolean well = moveAll(qemu);
    int stream;

    g_mutex_lock(&qemu->lock);
    /* Closed before the last word, as QEMU may do: the helper's verdict can come first. */
    stream = vspFdSteal(&qemu->stream);
    vspFdClose(&stream);
    if (!qemu->dead && !qemu->ending) {
        const char *end = qemu->plan.endStatus ? qemu->plan.endStatus : "completed";

        if (!well)
            end = qemu->cancelled ? "cancelled" : "failed";
        if (g_str_equal(end, "completed"))
            qemu->state = qemu->incoming ? "paused" : "postmigrate";
        setMigrate(qemu, end);
        if (qemu->plan.cancelAtEnd)
            g_cancellable_cancel(qemu->plan.cancellable);
    }
    g_mutex_unlock(&qemu->lock);
    return NULL;
}

static void
sayDumpCompleted(fakeQemu *qemu)
{
    g_autofree char *failure =
        qemu->plan.endReason ? g_strdup_printf(", \"error\": \"%s\"", qemu->plan.endReason) : NULL;
    g_autofree char *data =
        g_strdup_printf("{\"result\": {\"status\": \"%s\", \"total\": 10, \"completed\": 10}%s}",
                        qemu->dump, failure ? failure : "");

    sayEvent(qemu, "DUMP_COMPLETED", data);
}

static gpointer
dumpThread(gpointer opaque)
{
    fakeQemu *qemu = opaque;
    gboolean well = moveAll(qemu);
    int stream;

    g_mutex_lock(&qemu->lock);
    stream = vspFdSteal(&qemu->stream);
    if (!qemu->dead && !qemu->ending) {
        qemu->dump = well ? (qemu->plan.endStatus ? qemu->plan.endStatus : "completed") : "failed";
        if (!qemu->plan.noEvents && !qemu->plan.dumpEventFirst)
            sayDumpCompleted(qemu);
        if (qemu->resume && !qemu->plan.stayPaused) {
            qemu->state = "running";
            sayEvent(qemu, "RESUME", "{}");
        }
    }
    vspFdClose(&stream);
    g_mutex_unlock(&qemu->lock);
    return NULL;
}

/* --- commands; with the lock held; each returns the value of "return", NULL for an error --- */

static char *
answerStatus(fakeQemu *qemu)
{
    return g_strdup_printf("{\"status\": \"%s\", \"running\": %s}", qemu->state,
                           isRunning(qemu) ? "true" : "false");
}

static char *
answerMigrate(fakeQemu *qemu)
{
    const char *status = qemu->migrate;
    GString *text;

    /* Detours come first, whatever has become of it meanwhile. */
    if (status && qemu->plan.detours && qemu->plan.detours[qemu->detour])
        status = qemu->plan.detours[qemu->detour++];
    text = g_string_new("{");
    if (status)
        g_string_append_printf(text, "\"status\": \"%s\", ", status);
    if (g_strcmp0(status, "failed") == 0 && qemu->plan.endReason)
        g_string_append_printf(text, "\"error-desc\": \"%s\", ", qemu->plan.endReason);
    if (qemu->plan.blockedReason)
        g_string_append_printf(text, "\"blocked-reasons\": [\"%s\"], ", qemu->plan.blockedReason);
    g_string_append_printf(
        text, "\"ram\": {\"total\": %" G_GSIZE_FORMAT ", \"remaining\": %" G_GSIZE_FORMAT "}}",
        qemu->plan.streamLength, qemu->plan.streamLength - qemu->moved);
    return g_string_free(text, FALSE);
}

static char *
answerSetCapabilities(fakeQemu *qemu, GVariant *arguments)
{
    g_autoptr(GVariant) list =
        g_variant_lookup_value(arguments, "capabilities", G_VARIANT_TYPE("av"));
    gsize count = list ? g_variant_n_children(list) : 0;

    for (gsize i = 0; i < count; i++) {
        g_autoptr(GVariant) box = g_variant_get_child_value(list, i);
        g_autoptr(GVariant) entry = g_variant_get_variant(box);
        const char *name = vspQmpGetString(entry, "capability");

        if (g_strcmp0(name, "events") == 0)
            qemu->events = vspQmpGetBoolean(entry, "state");
        if (g_strcmp0(name, "xbzrle") == 0)
            qemu->xbzrle = vspQmpGetBoolean(entry, "state");
    }
    return g_strdup("{}");
}

/* The descriptor behind "fd:NAME", which is then no longer under that name. */
static gboolean
takeStream(fakeQemu *qemu, const char *uri)
{
    gpointer fd;

    if (!uri || !g_str_has_prefix(uri, "fd:") ||
        !g_hash_table_steal_extended(qemu->fds, uri + strlen("fd:"), NULL, &fd))
        return FALSE;
    /* The name of a stolen entry is not freed with it; the table has none of its own. */
    qemu->stream = GPOINTER_TO_INT(fd);
    return TRUE;
}

static char *
startMigration(fakeQemu *qemu, GVariant *arguments, gboolean incoming)
{
    if (!takeStream(qemu, vspQmpGetString(arguments, "uri")))
        return NULL;
    qemu->incoming = incoming;
    qemu->hadSettings = qemu->bandwidth > BANDWIDTH && !qemu->xbzrle && qemu->events;
    setMigrate(qemu, "setup");
    setMigrate(qemu, "active");
    qemu->mover = g_thread_new("migrate", migrateThread, qemu);
    return g_strdup("{}");
}

static char *
startDump(fakeQemu *qemu, GVariant *arguments)
{
    if (!vspQmpGetBoolean(arguments, "detach") || vspQmpGetBoolean(arguments, "paging") ||
        !takeStream(qemu, vspQmpGetString(arguments, "protocol")))
        return NULL;
    qemu->dump = "active";
    qemu->resume = isRunning(qemu);
    if (qemu->resume)
        qemu->state = "save-vm";
    qemu->mover = g_thread_new("dump", dumpThread, qemu);
    if (qemu->plan.dumpEventFirst) {
        qemu->dump = "completed";
        sayDumpCompleted(qemu);
    }
    return g_strdup("{}");
}

static char *
setState(fakeQemu *qemu, const char *state, const char *event)
{
    if (!g_str_equal(qemu->state, state)) {
        qemu->state = state;
        sayEvent(qemu, event, "{}");
    }
    return g_strdup("{}");
}

static char *
obey(fakeQemu *qemu, const char *command, GVariant *arguments, int *fd)
{
    if (g_str_equal(command, "qmp_capabilities") || g_str_equal(command, "query-version"))
        return g_strdup("{}");
    if (g_str_equal(command, "query-status"))
        return answerStatus(qemu);
    if (g_str_equal(command, "query-name"))
        return g_strdup("{\"name\": \"double\"}");
    if (g_str_equal(command, "query-memory-size-summary"))
        return g_strdup_printf("{\"base-memory\": %" G_GUINT64_FORMAT "}", qemu->plan.memory);
    if (g_str_equal(command, "query-migrate"))
        return answerMigrate(qemu);
    if (g_str_equal(command, "query-migrate-capabilities"))
        return g_strdup_printf("[{\"capability\": \"xbzrle\", \"state\": %s}, "
                               "{\"capability\": \"events\", \"state\": %s}]",
                               qemu->xbzrle ? "true" : "false", qemu->events ? "true" : "false");
    if (g_str_equal(command, "migrate-set-capabilities"))
        return answerSetCapabilities(qemu, arguments);
    if (g_str_equal(command, "query-migrate-parameters"))
        return g_strdup_printf("{\"max-bandwidth\": %" G_GINT64_FORMAT ", \"tls-creds\": \"\"}",
                               qemu->bandwidth);
    if (g_str_equal(command, "migrate-set-parameters")) {
        qemu->bandwidth = vspQmpGetNumber(arguments, "max-bandwidth");
        return g_strdup("{}");
    }
    if (g_str_equal(command, "stop"))
        return setState(qemu, "paused", "STOP");
    if (g_str_equal(command, "cont"))
        return setState(qemu, "running", "RESUME");
    if (g_str_equal(command, "getfd")) {
        const char *name = vspQmpGetString(arguments, "fdname");

        if (*fd < 0 || g_hash_table_contains(qemu->fds, name))
            return NULL;
        g_hash_table_insert(qemu->fds, (gpointer)g_intern_string(name),
                            GINT_TO_POINTER(vspFdSteal(fd)));
        return g_strdup("{}");
    }
    if (g_str_equal(command, "closefd")) {
        gpointer found;
        int one;

        if (!g_hash_table_steal_extended(qemu->fds, vspQmpGetString(arguments, "fdname"), NULL,
                                         &found))
            return NULL;
        one = GPOINTER_TO_INT(found);
        vspFdClose(&one);
        return g_strdup("{}");
    }
    if (g_str_equal(command, "migrate") || g_str_equal(command, "migrate-incoming"))
        return startMigration(qemu, arguments, g_str_equal(command, "migrate-incoming"));
    if (g_str_equal(command, "migrate_cancel")) {
        qemu->cancelled = TRUE;
        g_cond_broadcast(&qemu->changed);
        return g_strdup("{}");
    }
    if (g_str_equal(command, "query-dump-guest-memory-capability"))
        return g_strdup("{\"formats\": [\"elf\", \"kdump-zlib\", \"win-dmp\"]}");
    if (g_str_equal(command, "query-dump"))
        return g_strdup_printf("{\"status\": \"%s\", \"completed\": %" G_GSIZE_FORMAT
                               ", \"total\": %" G_GSIZE_FORMAT "}",
                               qemu->dump, qemu->moved, qemu->plan.streamLength);
    if (g_str_equal(command, "dump-guest-memory"))
        return startDump(qemu, arguments);
    if (g_str_equal(command, "quit")) {
        qemu->quit = TRUE;
        return g_strdup("{}");
    }
    return NULL;
}

/* --- the monitor --- */

static gboolean
planNames(const char *planned, const char *command)
{
    return planned && g_str_equal(planned, command);
}

static void
serveCommand(fakeQemu *qemu, GVariant *message, int *fd)
{
    const fakeQemuPlan *plan = &qemu->plan;
    const char *command = vspQmpGetString(message, "execute");
    const char *id = vspQmpGetString(message, "id");
    g_autoptr(GVariant) arguments = vspQmpGetDict(message, "arguments");
    g_autofree char *answer = NULL;
    g_autofree char *line = NULL;
    guint count;

    g_mutex_lock(&qemu->lock);
    count = GPOINTER_TO_UINT(g_hash_table_lookup(qemu->counts, command));
    g_hash_table_insert(qemu->counts, (gpointer)g_intern_string(command),
                        GUINT_TO_POINTER(count + 1));
    if (planNames(plan->cancelAt, command))
        g_cancellable_cancel(plan->cancellable);
    if (planNames(plan->dieAt, command))
        die(qemu);
    if (!qemu->dead && !planNames(plan->ignore, command)) {
        if (!planNames(plan->refuse, command) && !planNames(plan->refuseToo, command))
            answer = obey(qemu, command, arguments, fd);
        if (answer)
            line = g_strdup_printf("{\"return\": %s, \"id\": \"%s\"}", answer, id);
        else
            line = g_strdup_printf("{\"error\": {\"class\": \"GenericError\", \"desc\": "
                                   "\"the double refuses\"}, \"id\": \"%s\"}",
                                   id);
        sayLine(qemu, line);
        if (planNames(plan->dieAfter, command) || qemu->quit)
            die(qemu);
    }
    g_mutex_unlock(&qemu->lock);
}

/* One line, and the descriptor that came with it. NULL at the end of the connection. */
static char *
readLine(fakeQemu *qemu, int *fd)
{
    g_autoptr(GString) line = g_string_new(NULL);

    for (;;) {
        union {
            struct cmsghdr align;
            char room[CMSG_SPACE(sizeof(int))];
        } control;
        char byte;
        struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
        struct msghdr msg = { .msg_iov = &iov,
                              .msg_iovlen = 1,
                              .msg_control = control.room,
                              .msg_controllen = sizeof(control.room) };
        struct cmsghdr *cmsg;

        if (recvmsg(qemu->client, &msg, MSG_CMSG_CLOEXEC) != 1)
            return NULL;
        cmsg = CMSG_FIRSTHDR(&msg);
        if (cmsg) {
            vspFdClose(fd);
            memcpy(fd, CMSG_DATA(cmsg), sizeof(int));
        }
        if (byte == '\n')
            return g_string_free(g_steal_pointer(&line), FALSE);
        g_string_append_c(line, byte);
    }
}

static void
serveClient(fakeQemu *qemu)
{
    sayLine(qemu, "{\"QMP\": {\"version\": {\"qemu\": {\"major\": 7, \"minor\": 2, \"micro\": 0}}, "
                  "\"capabilities\": []}}");
    for (;;) {
        g_auto(vspFd) fd = -1;
        g_autofree char *line = readLine(qemu, &fd);
        g_autoptr(GVariant) message = NULL;

        if (!line)
            return;
        message = vspJsonParse(line, strlen(line), NULL);
        g_assert_nonnull(message);
        serveCommand(qemu, message, &fd);
    }
}

static gpointer
monitorThread(gpointer opaque)
{
    fakeQemu *qemu = opaque;

    for (;;) {
        int client = accept4(qemu->listener, NULL, NULL, SOCK_CLOEXEC);

        if (client < 0)
            return NULL;
        g_mutex_lock(&qemu->lock);
        qemu->client = client;
        g_mutex_unlock(&qemu->lock);
        serveClient(qemu);
        g_mutex_lock(&qemu->lock);
        vspFdClose(&qemu->client);
        g_mutex_unlock(&qemu->lock);
    }
}

/* --- life --- */

fakeQemu *
fakeQemuNew(const char *path, const fakeQemuPlan *plan)
{
    fakeQemu *qemu = g_new0(fakeQemu, 1);
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    qemu->plan = *plan;
    qemu->path = g_strdup(path);
    qemu->client = qemu->stream = -1;
    qemu->state = plan->state ? plan->state : "running";
    qemu->migrate = plan->migrateStatus;
    qemu->dump = plan->dumpStatus ? plan->dumpStatus : "none";
    qemu->xbzrle = TRUE;
    qemu->bandwidth = BANDWIDTH;
    qemu->counts = g_hash_table_new(g_str_hash, g_str_equal);
    qemu->fds = g_hash_table_new(g_str_hash, g_str_equal);
    qemu->received = g_byte_array_new();
    g_mutex_init(&qemu->lock);
    g_cond_init(&qemu->changed);

    qemu->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    g_assert_cmpuint(strlen(path), <, sizeof(address.sun_path));
    strcpy(address.sun_path, path);
    unlink(path);
    g_assert_cmpint(bind(qemu->listener, (struct sockaddr *)&address, sizeof(address)), ==, 0);
    g_assert_cmpint(listen(qemu->listener, 1), ==, 0);
    qemu->monitor = g_thread_new("monitor", monitorThread, qemu);
    return qemu;
}

void
fakeQemuFree(fakeQemu *qemu)
{
    if (!qemu)
        return;
    g_mutex_lock(&qemu->lock);
    qemu->ending = TRUE;
    die(qemu);
    g_mutex_unlock(&qemu->lock);
    g_thread_join(qemu->monitor);
    if (qemu->mover)
        g_thread_join(qemu->mover);
    vspFdClose(&qemu->listener);
    vspFdClose(&qemu->client);
    vspFdClose(&qemu->stream);
    unlink(qemu->path);
    g_hash_table_unref(qemu->counts);
    g_hash_table_unref(qemu->fds);
    g_byte_array_unref(qemu->received);
    g_mutex_clear(&qemu->lock);
    g_cond_clear(&qemu->changed);
    g_free(qemu->path);
    g_free(qemu);
}

gboolean
fakeQemuIsAlive(fakeQemu *qemu)
{
    G_GNUC_UNUSED g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&qemu->lock);

    return !qemu->dead;
}

gboolean
fakeQemuHasQuit(fakeQemu *qemu)
{
    G_GNUC_UNUSED g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&qemu->lock);

    return qemu->quit;
}

const char *
fakeQemuGetState(fakeQemu *qemu)
{
    G_GNUC_UNUSED g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&qemu->lock);

    return qemu->state;
}

guint
fakeQemuCount(fakeQemu *qemu, const char *command)
{
    G_GNUC_UNUSED g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&qemu->lock);

    return GPOINTER_TO_UINT(g_hash_table_lookup(qemu->counts, command));
}

guint
fakeQemuCountFds(fakeQemu *qemu)
{
    G_GNUC_UNUSED g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&qemu->lock);

    return g_hash_table_size(qemu->fds);
}

gboolean
fakeQemuHasSettings(fakeQemu *qemu)
{
    G_GNUC_UNUSED g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&qemu->lock);

    return qemu->bandwidth == BANDWIDTH && qemu->xbzrle && !qemu->events;
}

gboolean
fakeQemuHadSettings(fakeQemu *qemu)
{
    G_GNUC_UNUSED g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&qemu->lock);

    return qemu->hadSettings;
}

GBytes *
fakeQemuGetReceived(fakeQemu *qemu)
{
    G_GNUC_UNUSED g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&qemu->lock);

    return g_bytes_new(qemu->received->data, qemu->received->len);
}
