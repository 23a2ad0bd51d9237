/*
 * cancel.c: Ctrl-C as a cancellation, so that the VM and the file are put in order first
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <pthread.h>
#include <signal.h>

#include "tool.h"

static void
cancelSignals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGHUP);
}

/* A thread and not a handler: cancelling takes locks. A second signal changes nothing: what is under
 * way already is the orderly end, and it is bounded. */
static gpointer
waitForSignals(gpointer opaque)
{
    sigset_t set;
    int signum;

    cancelSignals(&set);
    for (;;) {
        if (sigwait(&set, &signum) == 0)
            g_cancellable_cancel(opaque);
    }
    return NULL;
}

GCancellable *
vspToolCancellable(void)
{
    static GCancellable *cancellable;
    sigset_t set;

    if (!cancellable) {
        cancellable = g_cancellable_new();
        cancelSignals(&set);
        pthread_sigmask(SIG_BLOCK, &set, NULL);
        g_thread_unref(g_thread_new("signals", waitForSignals, cancellable));
    }
    return cancellable;
}
