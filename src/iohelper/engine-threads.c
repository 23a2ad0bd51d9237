/*
 * engine-threads.c: the ring, driven by threads that read and write
 *
 * For hosts where io_uring is refused. A thread per buffer takes I/Os from one queue and puts them into
 * another; it touches nothing of a slot but its io fields, and those only between the two queues.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <sys/uio.h>
#include <unistd.h>

#include "engine.h"
#include "ring.h"

typedef struct {
    GAsyncQueue *todo; /* slots; a pointer to `quit` ends a thread */
    GAsyncQueue *done;
    GPtrArray *threads;
    int fd;
    gboolean writing;
    char quit;
} ThreadsState;

static gpointer
work(gpointer opaque)
{
    ThreadsState *state = opaque;
    void *item;

    while ((item = g_async_queue_pop(state->todo)) != &state->quit) {
        vspSlot *slot = item;
        struct iovec iov = { .iov_base = slot->ioBuf, .iov_len = slot->ioLen };
        ssize_t n;

        n = state->writing ? pwritev2(state->fd, &iov, 1, slot->ioOffset, slot->ioFlags)
                           : preadv2(state->fd, &iov, 1, slot->ioOffset, slot->ioFlags);
        slot->ioResult = n < 0 ? -errno : n;
        g_async_queue_push(state->done, slot);
    }
    return NULL;
}

static void
threadsClose(vspRing *ring)
{
    ThreadsState *state = ring->state;

    for (guint i = 0; i < state->threads->len; i++)
        g_async_queue_push(state->todo, &state->quit);
    for (guint i = 0; i < state->threads->len; i++)
        g_thread_join(state->threads->pdata[i]);
    g_ptr_array_unref(state->threads);
    g_async_queue_unref(state->todo);
    g_async_queue_unref(state->done);
    g_free(state);
}

static int
threadsOpen(vspRing *ring)
{
    ThreadsState *state = g_new0(ThreadsState, 1);
    sigset_t all, before;

    ring->state = state;
    state->todo = g_async_queue_new();
    state->done = g_async_queue_new();
    state->threads = g_ptr_array_new();
    state->fd = ring->job->file->fd;
    state->writing = ring->job->writing;

    /* Signals are the main thread's. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (guint i = 0; i < ring->job->buffers; i++) {
        GThread *thread = g_thread_try_new("io", work, state, NULL);

        if (!thread)
            break;
        g_ptr_array_add(state->threads, thread);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    /* One is enough to go on. */
    if (state->threads->len > 0)
        return 0;
    threadsClose(ring);
    return -EAGAIN;
}

static int
threadsSubmit(vspRing *ring, vspSlot *slot)
{
    ThreadsState *state = ring->state;

    g_async_queue_push(state->todo, slot);
    return 0;
}

static vspSlot *
threadsNext(vspRing *ring, gboolean wait)
{
    ThreadsState *state = ring->state;

    return wait ? g_async_queue_pop(state->done) : g_async_queue_try_pop(state->done);
}

static const vspRingBackend backend = {
    .open = threadsOpen,
    .submit = threadsSubmit,
    .next = threadsNext,
    .close = threadsClose,
};

static int
threadsSave(vspJob *job)
{
    return vspRingSave(job, &backend, &vspEngineSync);
}

static int
threadsRestore(vspJob *job)
{
    return vspRingRestore(job, &backend, &vspEngineSync);
}

const vspEngine vspEngineThreads = {
    .name = "threads",
    .save = threadsSave,
    .restore = threadsRestore,
};
