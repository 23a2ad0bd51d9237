/*
 * fifo.c: bytes from one thread to another
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <string.h>

#include "fifo.h"

struct _vspFifo {
    GMutex lock;
    GCond changed;
    char *memory;
    gsize size;
    gsize first; /* where the oldest byte lies */
    gsize count;
    gboolean ended;
    int endErrnum;
    int giveUpErrnum; /* 0: the taker still takes */
};

vspFifo *
vspFifoNew(gsize size)
{
    vspFifo *fifo = g_new0(vspFifo, 1);

    g_mutex_init(&fifo->lock);
    g_cond_init(&fifo->changed);
    fifo->memory = g_malloc(size);
    fifo->size = size;
    return fifo;
}

void
vspFifoFree(vspFifo *fifo)
{
    if (!fifo)
        return;
    g_mutex_clear(&fifo->lock);
    g_cond_clear(&fifo->changed);
    g_free(fifo->memory);
    g_free(fifo);
}

int
vspFifoPut(vspFifo *fifo, const void *data, gsize len)
{
    g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new(&fifo->lock);

    while (len > 0) {
        gsize at, n;

        while (fifo->count == fifo->size && !fifo->giveUpErrnum)
            g_cond_wait(&fifo->changed, &fifo->lock);
        if (fifo->giveUpErrnum)
            return -fifo->giveUpErrnum;
        at = (fifo->first + fifo->count) % fifo->size;
        n = MIN(len, MIN(fifo->size - fifo->count, fifo->size - at));
        /* With the lock: a piece is small, and the other side has work of its own. */
        memcpy(fifo->memory + at, data, n);
        fifo->count += n;
        data = (const char *) data + n;
        len -= n;
        g_cond_signal(&fifo->changed);
    }
    return 0;
}

ssize_t
vspFifoTake(vspFifo *fifo, void *buf, gsize len)
{
    g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new(&fifo->lock);
    gsize n;

    while (fifo->count == 0 && !fifo->ended)
        g_cond_wait(&fifo->changed, &fifo->lock);
    if (fifo->count == 0)
        return -fifo->endErrnum;
    n = MIN(len, MIN(fifo->count, fifo->size - fifo->first));
    memcpy(buf, fifo->memory + fifo->first, n);
    fifo->first = (fifo->first + n) % fifo->size;
    fifo->count -= n;
    g_cond_signal(&fifo->changed);
    return n;
}

void
vspFifoEnd(vspFifo *fifo, int errnum)
{
    g_mutex_lock(&fifo->lock);
    fifo->ended = TRUE;
    fifo->endErrnum = errnum;
    g_cond_signal(&fifo->changed);
    g_mutex_unlock(&fifo->lock);
}

void
vspFifoGiveUp(vspFifo *fifo, int errnum)
{
    g_mutex_lock(&fifo->lock);
    fifo->giveUpErrnum = errnum;
    g_cond_signal(&fifo->changed);
    g_mutex_unlock(&fifo->lock);
}
