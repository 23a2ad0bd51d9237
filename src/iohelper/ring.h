/*
 * ring.h: a ring of buffers with several file I/Os in flight
 *
 * What the engines `uring` and `threads` share: everything but how an I/O is started and how its end
 * is learned.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef RING_H
#define RING_H

#include <vmspool/vsp-filewrapper.h>

#include "job.h"

typedef struct {
    char *buf;
    off_t offset;
    gsize len;   /* where the I/O under way is to end, from offset */
    gsize end;   /* where the slot's data ends; more than len while zeros are left out */
    gsize done;  /* moved, and where the I/O under way began */
    gsize valid; /* restore: bytes in the buffer; more than done while a block is read again */
    vspCacheMode rung;
    guint fruitless;
    gboolean inFlight;
    gboolean ended; /* restore: met the end of the file */

    /* For the backend: the I/O under way, and what came of it. */
    char *ioBuf;
    gsize ioLen;
    off_t ioOffset;
    int ioFlags; /* RWF_* */
    ssize_t ioResult;
} vspSlot;

typedef struct _vspRing vspRing;

typedef struct {
    /* Makes ready for job->buffers slots. 0 or -errno; then nothing is left behind. */
    int (*open)(vspRing *ring);

    /* Starts the I/O described in @slot's io fields. 0 or -errno. */
    int (*submit)(vspRing *ring, vspSlot *slot);

    /* The next slot whose I/O has ended, with ioResult set; NULL if there is none and @wait is
     * FALSE. With @wait something is in flight, and an end is waited for. */
    vspSlot *(*next)(vspRing *ring, gboolean wait);

    void (*close)(vspRing *ring);
} vspRingBackend;

struct _vspRing {
    vspJob *job;
    const vspRingBackend *backend;
    void *state; /* the backend's */
    vspSlot *slots;
    guint inFlight;
    guint settled; /* slots whose I/O has ended since the ring was opened */
};

/* The two calls of an engine (engine.h). Where the backend can't open, the engine that the user named
 * fails, and one that was chosen is replaced by @fallback. */
int vspRingSave(vspJob *job, const vspRingBackend *backend, const vspEngine *fallback);
int vspRingRestore(vspJob *job, const vspRingBackend *backend, const vspEngine *fallback);

#endif /* RING_H */
