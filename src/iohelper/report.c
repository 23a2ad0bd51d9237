/*
 * report.c: the helper's side of the status channel
 *
 * A thread of its own watches for the hangup of the daemon. The main thread can't: it may sit in a
 * read from a QEMU that lives on, or in a write to a disk that hangs, and in both cases nobody is
 * left who wants the file. What was written stays as it is, marked incomplete.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "report.h"
#include "vsperrorpriv.h"
#include "vspio.h"

/* Often enough for a progress bar, too seldom to cost anything. */
#define PROGRESS_INTERVAL_NS (100 * 1000 * 1000)

struct _vspReporter {
    int statusFd;
    char *name; /* escaped, for messages */
    guint64 started;
    guint64 lastProgress;
    vspStage lastStage;
};

guint64
vspNow(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (guint64) ts.tv_sec * 1000000000 + ts.tv_nsec;
}

vspReporter *
vspReporterNew(int statusFd, const char *name)
{
    vspReporter *reporter = g_new0(vspReporter, 1);

    reporter->statusFd = statusFd;
    reporter->name = vspNameEscape(name);
    return reporter;
}

void
vspReporterFree(vspReporter *reporter)
{
    if (!reporter)
        return;
    /* The watching thread polls it until the process ends: it is not closed. */
    g_free(reporter->name);
    g_free(reporter);
}

typedef struct {
    int fd;
    vspControl *control;
} Watch;

static gpointer
watchPeer(gpointer opaque)
{
    Watch *watch = opaque;

    for (;;) {
        vspStatusRecord record;
        int rc = vspStatusReceive(watch->fd, &record, NULL);

        if (rc < 0)
            _exit(1);
        if (rc > 0 && record.header.type == VSP_STATUS_CONTROL)
            vspControlSetRate(watch->control, record.control.rate);
        if (rc == 0)
            vspPollOne(watch->fd, POLLIN, -1);
    }
    return NULL;
}

int
vspReporterHello(vspReporter *reporter, vspControl *control)
{
    vspStatusRecord record;
    Watch *watch;
    GThread *thread;
    sigset_t all, before;

    if (reporter->statusFd < 0)
        return 0;
    /* Signals are the main thread's. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    watch = g_new0(Watch, 1); /* the thread's, for as long as the process lives */
    watch->fd = reporter->statusFd;
    watch->control = control;
    thread = g_thread_try_new("watch-peer", watchPeer, watch, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!thread) {
        g_free(watch);
        return -EAGAIN; /* all that pthread_create() knows */
    }
    g_thread_unref(thread);

    memset(&record, 0, sizeof(record));
    record.hello.pid = getpid();
    g_strlcpy(record.hello.release, VSP_VERSION, sizeof(record.hello.release));
    vspStatusSend(reporter->statusFd, &record, VSP_STATUS_HELLO, TRUE);
    return 0;
}

void
vspReporterProgress(vspReporter *reporter, vspStage stage, const vspStatusStatistics *statistics)
{
    vspStatusRecord record;
    guint64 now;

    if (reporter->statusFd < 0)
        return;
    now = vspNow();
    if (stage == reporter->lastStage && now - reporter->lastProgress < PROGRESS_INTERVAL_NS)
        return;
    reporter->lastStage = stage;
    reporter->lastProgress = now;

    memset(&record, 0, sizeof(record));
    record.progress.stage = stage;
    record.progress.bytesIn = statistics->bytesIn;
    record.progress.bytesOut = statistics->bytesOut;
    record.progress.stallSourceNs = statistics->stallSourceNs;
    record.progress.stallSinkNs = statistics->stallSinkNs;
    vspStatusSend(reporter->statusFd, &record, VSP_STATUS_PROGRESS, FALSE);
}

void
vspReporterVerdict(vspReporter *reporter, vspStatusVerdict *verdict)
{
    if (reporter->statusFd >= 0) {
        vspStatusRecord record;

        memset(&record, 0, sizeof(record));
        record.verdict = *verdict;
        vspStatusSend(reporter->statusFd, &record, VSP_STATUS_VERDICT, TRUE);
    } else if (!verdict->ok) {
        g_autoptr(GError) error = NULL;

        vspStatusVerdictToError(verdict, reporter->name, &error);
        fprintf(stderr, "vmspool_iohelper: %s\n", error->message);
    }
}
