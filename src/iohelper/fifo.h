/*
 * fifo.h: bytes from one thread to another
 *
 * One thread puts, one takes. Either may give up, for good and with a reason that the other then gets.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef FIFO_H
#define FIFO_H

#include <glib.h>
#include <sys/types.h>

typedef struct _vspFifo vspFifo;

vspFifo *vspFifoNew(gsize size);
void vspFifoFree(vspFifo *fifo);

/* All of it, waiting for room. 0, or the -errno that the taker gave up with. */
int vspFifoPut(vspFifo *fifo, const void *data, gsize len);

/* Some, waiting for it. Bytes; 0 at the end; or the -errno that the putter ended with, once all that
 * was put before is taken. */
ssize_t vspFifoTake(vspFifo *fifo, void *buf, gsize len);

/* No more will be put: @errnum is 0 at the end of the data, else positive. */
void vspFifoEnd(vspFifo *fifo, int errnum);

/* No more will be taken. */
void vspFifoGiveUp(vspFifo *fifo, int errnum);

#endif /* FIFO_H */
