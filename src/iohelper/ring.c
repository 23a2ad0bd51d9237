/*
 * ring.c: a ring of buffers with several file I/Os in flight
 *
 * Save.     One thread fills a free buffer from the stream while the disk works on the others. The
 *           copy out of the stream is what the processor does; the writes are the device's.
 * Restore.  Reads run ahead, a buffer each; they are handed to the stream in order.
 *
 * A slot is free, in flight, or (restore) holds data. Its buffer is touched only while it is not in
 * flight: file systems checksum what they are writing. All bookkeeping is done by the one thread that
 * runs the engine; a backend does I/O and nothing else.
 *
 * An I/O may end short, or fail because the file was on a rung of the cache ladder that the file system
 * refuses. Both are sent again from where they stopped, each slot remembering the rung that it was sent
 * on: several are in flight when the first comes back refused.
 *
 * In sparse mode a slot's data is written in pieces, one after the other, with the zeros between them
 * left out (zeros.c).
 *
 * The backend is opened only when a first buffer is full. A small file never pays for it.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "cache.h"
#include "engine.h"
#include "ring.h"
#include "zeros.h"

/* Slots with nothing to show for so many I/Os are stuck. */
#define FRUITLESS_MAX 16

static vspOperation
operation(const vspRing *ring)
{
    return ring->job->writing ? VSP_OPERATION_WRITE : VSP_OPERATION_READ;
}

/* Of several that fail while they are in flight together the first of the file is told, and not the
 * first to come back: up to there the data is. Always -1. */
static int
failAt(vspRing *ring, vspCacheMode rung, off_t offset, int errnum)
{
    vspJob *job = ring->job;

    if (job->failed && job->failure.side == VSP_SIDE_FILE && (guint64)offset < job->failure.offset)
        job->failed = FALSE;
    return vspJobFailFile(job, operation(ring), rung, offset, errnum);
}

/* 0 or -errno. */
static int
openRing(vspRing *ring)
{
    vspJob *job = ring->job;
    int rc;

    ring->slots = g_new0(vspSlot, job->buffers);
    for (guint i = 0; i < job->buffers; i++)
        ring->slots[i].buf = vspJobBuffer(job, i);
    rc = ring->backend->open(ring);
    if (rc < 0)
        g_clear_pointer(&ring->slots, g_free);
    return rc;
}

static void
aim(vspSlot *slot, off_t offset, gsize end)
{
    slot->offset = offset;
    slot->len = slot->end = end;
    slot->done = slot->valid = 0;
    slot->fruitless = 0;
    slot->ended = FALSE;
}

/* Sends what is left of @slot's I/O. 0 or -1. */
static int
submit(vspRing *ring, vspSlot *slot)
{
    vspJob *job = ring->job;
    int rc;

    slot->ioBuf = slot->buf + slot->done;
    slot->ioLen = slot->len - slot->done;
    slot->ioOffset = slot->offset + slot->done;
    slot->ioFlags = vspCacheGetRwFlags(job->file->cache);
    slot->rung = vspCacheGetMode(job->file->cache);
    slot->inFlight = TRUE;
    ring->inFlight++;
    job->statistics.maxInFlight = MAX(job->statistics.maxInFlight, ring->inFlight);

    rc = ring->backend->submit(ring, slot);
    if (rc < 0) {
        slot->inFlight = FALSE;
        ring->inFlight--;
        return failAt(ring, slot->rung, slot->ioOffset, -rc);
    }
    return 0;
}

/* Sends the next piece of a slot that is being written: in sparse mode the next that is not zero. */
static int
submitWrite(vspRing *ring, vspSlot *slot)
{
    vspJob *job = ring->job;
    gsize granule = vspJobGranule(job);
    gsize zeros;

    while (job->sparse &&
           (zeros = vspZerosAt(slot->buf + slot->done, slot->end - slot->done, granule)) > 0) {
        if (!vspJobZero(job, slot->offset + slot->done, zeros))
            break;
        job->statistics.bytesOut += zeros;
        slot->done += zeros;
    }
    if (slot->done == slot->end)
        return 0;
    slot->len = slot->end;
    if (job->sparse)
        slot->len = slot->done +
                    vspZerosBefore(slot->buf + slot->done, slot->end - slot->done, granule);
    return submit(ring, slot);
}

/* What came of a read. */
static int
afterRead(vspRing *ring, vspSlot *slot, gsize reached)
{
    if (reached < slot->len) {
        /* Short: more may follow, so it is asked for until nothing comes. In direct mode a block
         * that was read in part is read again. If it is no longer than before, the very next byte
         * is asked for without O_DIRECT: the block may have been all that the file system gives at
         * once. */
        if (reached <= slot->valid) {
            if (slot->done == slot->valid || vspCacheSuspendDirect(ring->job->file->cache) < 0) {
                slot->ended = TRUE;
                return 0;
            }
            slot->done = slot->valid;
            return submit(ring, slot);
        }
        slot->valid = reached;
        slot->done = vspJobResumePoint(ring->job, reached);
        return submit(ring, slot);
    }
    slot->done = slot->valid = reached;
    return 0;
}

/* What came of a write. */
static int
afterWrite(vspRing *ring, vspSlot *slot, gsize reached)
{
    vspJob *job = ring->job;
    gsize before = slot->done;

    if (reached == slot->len) {
        job->statistics.bytesOut += reached - before;
        slot->done = reached;
        return reached == slot->end ? 0 : submitWrite(ring, slot);
    }
    slot->done = vspJobResumePoint(job, reached);
    job->statistics.bytesOut += slot->done - before;
    if (slot->done > before)
        slot->fruitless = 0;
    else if (++slot->fruitless == FRUITLESS_MAX)
        return failAt(ring, slot->rung, slot->offset + slot->done, EIO);
    return submit(ring, slot);
}

/* @slot's I/O has ended. Sent again where there is more to do. 0 or -1. */
static int
completed(vspRing *ring, vspSlot *slot)
{
    vspJob *job = ring->job;
    ssize_t n;

    slot->inFlight = FALSE;
    ring->inFlight--;
    ring->settled++;
    n = vspEndpointComplete(job->file, operation(ring), slot->ioOffset, slot->ioLen, slot->ioResult);

    if (n < 0 && (vspCacheStepDown(job->file->cache, slot->rung, -n) ||
                  vspJobTryAgain(-n, &slot->fruitless)))
        return submit(ring, slot);
    if (n < 0)
        return failAt(ring, slot->rung, slot->ioOffset, -n);
    return job->writing ? afterWrite(ring, slot, slot->done + n) : afterRead(ring, slot, slot->done + n);
}

/* Takes in what has ended: at least one if @wait and anything is under way. 0 or -1. */
static int
reap(vspRing *ring, gboolean wait)
{
    vspJob *job = ring->job;
    guint64 began = vspNow();
    vspSlot *slot;
    int rc = 0;

    while (ring->inFlight > 0 && (slot = ring->backend->next(ring, wait))) {
        if (completed(ring, slot) < 0)
            rc = -1;
        wait = FALSE;
    }
    if (job->writing)
        job->statistics.stallSinkNs += vspNow() - began;
    else
        job->statistics.stallSourceNs += vspNow() - began;
    return rc;
}

/* No buffer may be in the kernel's hands when the engine returns. */
static void
closeRing(vspRing *ring)
{
    while (ring->inFlight > 0)
        reap(ring, TRUE);
    ring->backend->close(ring);
    g_free(ring->slots);
}

/* All before this is written. */
static off_t
lowWater(const vspRing *ring, off_t next)
{
    for (guint i = 0; i < ring->job->buffers; i++) {
        if (ring->slots[i].inFlight)
            next = MIN(next, ring->slots[i].offset);
    }
    return next;
}

/* A free slot, waiting for one if need be. NULL after a failure. */
static vspSlot *
freeSlot(vspRing *ring)
{
    for (;;) {
        for (guint i = 0; i < ring->job->buffers; i++) {
            if (!ring->slots[i].inFlight)
                return &ring->slots[i];
        }
        if (reap(ring, TRUE) < 0)
            return NULL;
    }
}

/* The first buffer holds @n bytes already. */
static int
save(vspRing *ring, ssize_t n)
{
    vspJob *job = ring->job;
    vspSlot *slot = &ring->slots[0];
    off_t next = job->position;
    gsize whole;

    for (;;) {
        /* The stream's last partial block can't be written directly: it is left for the end. */
        whole = job->atEnd ? vspJobResumePoint(job, n) : (gsize) n;
        if (whole > 0) {
            aim(slot, next, whole);
            if (submitWrite(ring, slot) < 0)
                return -1;
            next += whole;
        }
        if (job->atEnd)
            break;
        if (reap(ring, FALSE) < 0)
            return -1;
        vspJobWritten(job, 0, lowWater(ring, next));
        slot = freeSlot(ring);
        if (!slot)
            return -1;
        n = vspJobFill(job, slot->buf, job->bufferSize);
        if (n < 0)
            return -1;
    }
    while (ring->inFlight > 0) {
        if (reap(ring, TRUE) < 0)
            return -1;
    }
    vspJobWritten(job, 0, next);
    if (whole < (gsize) n)
        return vspJobWriteAt(job, slot->buf + whole, n - whole, next);
    return 0;
}

/* Without a backend: @fallback goes on from job->position, unless the user insisted. */
static int
refused(vspJob *job, const vspRingBackend *backend, const vspEngine *fallback, int errnum)
{
    if (job->engineForced)
        return vspJobFail(job, VSP_OPERATION_SETUP, VSP_SIDE_NONE, 0, errnum, job->engine->name);
    if (g_str_equal(job->engine->name, "uring"))
        job->statistics.flags |= VSP_STATISTICS_NO_URING;
    job->engine = fallback;
    return 0;
}

int
vspRingSave(vspJob *job, const vspRingBackend *backend, const vspEngine *fallback)
{
    vspRing ring = { .job = job, .backend = backend };
    char *first = vspJobBuffer(job, 0);
    ssize_t n = vspJobFill(job, first, job->bufferSize);
    int rc;

    if (n < 0)
        return -1;
    if (job->atEnd)
        return n > 0 ? vspJobWriteAt(job, first, n, job->position) : 0;

    rc = openRing(&ring);
    if (rc < 0) {
        if (refused(job, backend, fallback, -rc) < 0 ||
            vspJobWriteAt(job, first, n, job->position) < 0)
            return -1;
        return job->engine->save(job);
    }
    rc = save(&ring, n);
    closeRing(&ring);
    return rc;
}

/* Starts reading a slot, unless a hole lies there. */
static int
submitRead(vspRing *ring, vspSlot *slot, off_t offset)
{
    vspJob *job = ring->job;

    aim(slot, offset, job->bufferSize);
    if (vspJobIsHole(job, offset, job->bufferSize)) {
        memset(slot->buf, 0, job->bufferSize);
        slot->done = slot->valid = job->bufferSize;
        return 0;
    }
    return submit(ring, slot);
}

static int
restore(vspRing *ring)
{
    vspJob *job = ring->job;
    guint64 left = job->length - job->statistics.bytesOut;
    off_t base = vspJobResumePoint(job, job->position);
    gsize skip = job->position - base;
    off_t next = base; /* of the read to send */
    /* Nothing is sent beyond what is wanted, nor after the end was seen. */
    off_t stop =
        left < (guint64) (G_MAXINT64 - job->position) ? job->position + (off_t) left : G_MAXINT64;
    guint emit = 0, sent = 0;

    for (;;) {
        vspSlot *slot;
        gsize got;

        while (!job->atEnd && sent - emit < job->buffers && next < stop) {
            if (submitRead(ring, &ring->slots[sent % job->buffers], next) < 0)
                return -1;
            next += job->bufferSize;
            sent++;
        }
        if (emit == sent)
            return 0;
        slot = &ring->slots[emit % job->buffers];
        while (slot->inFlight) {
            if (reap(ring, TRUE) < 0)
                return -1;
        }
        emit++;
        if (job->atEnd)
            continue; /* sent before the end was seen */
        if (slot->ended)
            job->atEnd = TRUE;
        got = MIN(slot->valid > skip ? slot->valid - skip : 0, left);
        job->statistics.bytesIn += got;
        if (got > 0 && vspJobDrain(job, slot->buf + skip, got) < 0)
            return -1;
        job->position += got;
        left -= got;
        skip = 0;
        vspCacheAdvance(job->file->cache, job->position);
    }
}

/* Is there more than one buffer to read? */
static gboolean
worthARing(const vspJob *job)
{
    struct stat st;

    if (job->length <= job->bufferSize)
        return FALSE;
    return fstat(job->file->fd, &st) < 0 || !S_ISREG(st.st_mode) ||
           st.st_size - job->position > (off_t) job->bufferSize;
}

int
vspRingRestore(vspJob *job, const vspRingBackend *backend, const vspEngine *fallback)
{
    vspRing ring = { .job = job, .backend = backend };
    int rc;

    if (!worthARing(job))
        return vspEngineSync.restore(job);
    rc = openRing(&ring);
    if (rc < 0)
        return refused(job, backend, fallback, -rc) < 0 ? -1 : job->engine->restore(job);
    rc = restore(&ring);
    closeRing(&ring);
    return rc;
}
