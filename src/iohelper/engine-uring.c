/*
 * engine-uring.c: a ring of buffers with several file I/Os in flight, by io_uring
 *
 * Save.     One thread fills a free buffer from the stream while the disk works on the others. The
 *           copy out of the stream is what the processor does; the writes are the device's.
 * Restore.  Reads run ahead, a buffer each; they are handed to the stream in order.
 *
 * A slot is free, in flight, or (restore) holds data. Its buffer is touched only while it is not in
 * flight: file systems checksum what they are writing.
 *
 * A completion may be short, or fail because the file was on a rung of the cache ladder that the
 * file system refuses. Both are sent again from where they stopped, each slot remembering the rung
 * that it was sent on: several are in flight when the first comes back refused.
 *
 * The file is not registered with the ring: at one I/O per buffer that saves nothing, and the kernel
 * gives a registered file back some time after the process has ended, so that an umount right after
 * a save would find the file system busy.
 *
 * The ring is made only when a first buffer is full. A small file never pays for it.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <liburing.h>
#include <string.h>

#include "cache.h"
#include "engine.h"

/* Slots with nothing to show for so many completions are stuck. */
#define FRUITLESS_MAX 16

typedef struct {
    char *buf;
    off_t offset;
    gsize len;   /* to move */
    gsize done;  /* moved, and where the I/O under way began */
    gsize valid; /* restore: bytes in the buffer; more than done while a block is read again */
    vspCacheMode rung;
    guint fruitless;
    gboolean inFlight;
    gboolean ended; /* reading met the end of the file */
} Slot;

typedef struct {
    vspJob *job;
    struct io_uring ring;
    gboolean fixedBuffers;
    Slot *slots;
    guint inFlight;
} Uring;

/* 0 or -errno. */
static int
openRing(Uring *u)
{
    vspJob *job = u->job;
    struct io_uring_params params;
    g_autofree struct iovec *iov = NULL;
    int rc;

    /* Deferred task work (Linux 6.1): completions are run when we ask for them and not by interrupting
     * the copy. */
    memset(&params, 0, sizeof(params));
    params.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
    rc = io_uring_queue_init_params(job->buffers, &u->ring, &params);
    if (rc == -EINVAL)
        rc = io_uring_queue_init(job->buffers, &u->ring, 0);
    if (rc < 0)
        return rc;

    /* Pinned once instead of for each I/O. Refused beyond RLIMIT_MEMLOCK: then without. */
    iov = g_new0(struct iovec, job->buffers);
    for (guint i = 0; i < job->buffers; i++)
        iov[i] = (struct iovec){ vspJobBuffer(job, i), job->bufferSize };
    u->fixedBuffers = io_uring_register_buffers(&u->ring, iov, job->buffers) == 0;
    if (u->fixedBuffers)
        job->statistics.flags |= VSP_STATISTICS_REGISTERED_BUFFERS;

    u->slots = g_new0(Slot, job->buffers);
    for (guint i = 0; i < job->buffers; i++)
        u->slots[i].buf = vspJobBuffer(job, i);
    return 0;
}

static void
closeRing(Uring *u)
{
    io_uring_queue_exit(&u->ring);
    g_free(u->slots);
}

/* Sends what is left of @slot. */
static int
submit(Uring *u, Slot *slot)
{
    vspJob *job = u->job;
    struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);
    int fd = job->file->fd;
    guint index = slot - u->slots;
    char *buf = slot->buf + slot->done;
    gsize len = slot->len - slot->done;
    off_t offset = slot->offset + slot->done;
    int rc;

    /* As many entries as slots, and a slot has one at the most. */
    g_assert(sqe);
    if (job->writing) {
        if (u->fixedBuffers)
            io_uring_prep_write_fixed(sqe, fd, buf, len, offset, index);
        else
            io_uring_prep_write(sqe, fd, buf, len, offset);
    } else {
        if (u->fixedBuffers)
            io_uring_prep_read_fixed(sqe, fd, buf, len, offset, index);
        else
            io_uring_prep_read(sqe, fd, buf, len, offset);
    }
    sqe->rw_flags = vspCacheGetRwFlags(job->file->cache);
    io_uring_sqe_set_data(sqe, slot);
    slot->rung = vspCacheGetMode(job->file->cache);
    slot->inFlight = TRUE;
    u->inFlight++;
    job->statistics.maxInFlight = MAX(job->statistics.maxInFlight, u->inFlight);

    do {
        rc = io_uring_submit(&u->ring);
    } while (rc == -EINTR || rc == -EAGAIN);
    if (rc < 0) {
        slot->inFlight = FALSE;
        u->inFlight--;
        return vspJobFail(job, job->writing ? VSP_OPERATION_WRITE : VSP_OPERATION_READ, VSP_SIDE_FILE,
                          offset, -rc, "io_uring_submit");
    }
    return 0;
}

/* What came of @slot's I/O. Sent again where there is more to do. 0 or -1. */
static int
completed(Uring *u, Slot *slot, int result)
{
    vspJob *job = u->job;
    vspOperation op = job->writing ? VSP_OPERATION_WRITE : VSP_OPERATION_READ;
    gsize before = slot->done;
    gsize reached;
    ssize_t n;

    slot->inFlight = FALSE;
    u->inFlight--;
    n = vspEndpointComplete(job->file, op, slot->offset + slot->done, slot->len - slot->done, result);

    if (n == -EINTR || n == -EAGAIN ||
        (n < 0 && vspCacheStepDown(job->file->cache, slot->rung, -n))) {
        if (++slot->fruitless < FRUITLESS_MAX)
            return submit(u, slot);
        return vspJobFail(job, op, VSP_SIDE_FILE, slot->offset + slot->done, EIO, NULL);
    }
    if (n < 0)
        return vspJobFail(job, op, VSP_SIDE_FILE, slot->offset + slot->done, -n, NULL);

    reached = slot->done + n;
    if (!job->writing && reached < slot->len) {
        /* Short: more may follow, so it is asked for until nothing comes. In direct mode a block that
         * was read in part is read again, and the end shows by its being no longer than before. */
        if (reached <= slot->valid) {
            slot->ended = TRUE;
            return 0;
        }
        slot->valid = reached;
        slot->done = vspJobResumePoint(job, reached);
        return submit(u, slot);
    }
    if (reached == slot->len) {
        slot->done = slot->valid = reached;
        if (job->writing)
            job->statistics.bytesOut += reached;
        return 0;
    }
    slot->done = vspJobResumePoint(job, reached);
    if (slot->done > before)
        slot->fruitless = 0;
    else if (++slot->fruitless == FRUITLESS_MAX)
        return vspJobFail(job, op, VSP_SIDE_FILE, slot->offset + slot->done, EIO, NULL);
    return submit(u, slot);
}

/* Takes in completions: at least one if @wait, all that are there. 0 or -1. */
static int
reap(Uring *u, gboolean wait)
{
    guint64 began = vspNow();
    struct io_uring_cqe *cqe;
    int rc = 0;

    if (wait && u->inFlight > 0) {
        do {
            rc = io_uring_wait_cqe(&u->ring, &cqe);
        } while (rc == -EINTR);
        if (rc < 0)
            return vspJobFail(u->job, VSP_OPERATION_NONE, VSP_SIDE_FILE, u->job->position, -rc,
                              "io_uring_wait_cqe");
    }
    while (u->inFlight > 0 && io_uring_peek_cqe(&u->ring, &cqe) == 0) {
        Slot *slot = io_uring_cqe_get_data(cqe);
        int result = cqe->res;

        io_uring_cqe_seen(&u->ring, cqe);
        if (completed(u, slot, result) < 0)
            rc = -1;
    }
    if (u->job->writing)
        u->job->statistics.stallSinkNs += vspNow() - began;
    else
        u->job->statistics.stallSourceNs += vspNow() - began;
    return rc;
}

/* No buffer may be in the kernel's hands when the engine returns. */
static void
settle(Uring *u)
{
    while (u->inFlight > 0 && u->slots) {
        guint before = u->inFlight;

        if (reap(u, TRUE) < 0 && u->inFlight == before)
            break;
    }
}

/* All before this is written. */
static off_t
lowWater(const Uring *u, off_t next)
{
    for (guint i = 0; i < u->job->buffers; i++) {
        if (u->slots[i].inFlight)
            next = MIN(next, u->slots[i].offset);
    }
    return next;
}

/* A free slot, waiting for one if need be. NULL after a failure. */
static Slot *
freeSlot(Uring *u)
{
    for (;;) {
        for (guint i = 0; i < u->job->buffers; i++) {
            if (!u->slots[i].inFlight)
                return &u->slots[i];
        }
        if (reap(u, TRUE) < 0)
            return NULL;
    }
}

static void
aim(Slot *slot, off_t offset, gsize len)
{
    slot->offset = offset;
    slot->len = len;
    slot->done = slot->valid = 0;
    slot->fruitless = 0;
    slot->ended = FALSE;
}

/* The first buffer holds @n bytes already. */
static int
saveThroughRing(Uring *u, ssize_t n)
{
    vspJob *job = u->job;
    Slot *slot = &u->slots[0];
    off_t next = job->position;
    gsize whole;

    for (;;) {
        /* The stream's last partial block can't be written directly: it is left for the end. */
        whole = job->atEnd ? vspJobResumePoint(job, n) : (gsize) n;
        if (whole > 0) {
            aim(slot, next, whole);
            if (submit(u, slot) < 0)
                return -1;
            next += whole;
        }
        if (job->atEnd)
            break;
        if (reap(u, FALSE) < 0)
            return -1;
        vspJobWritten(job, 0, lowWater(u, next));
        slot = freeSlot(u);
        if (!slot)
            return -1;
        n = vspJobFill(job, slot->buf, job->bufferSize);
        if (n < 0)
            return -1;
    }
    while (u->inFlight > 0) {
        if (reap(u, TRUE) < 0)
            return -1;
    }
    vspJobWritten(job, 0, next);
    if (whole < (gsize) n)
        return vspJobWriteAt(job, slot->buf + whole, n - whole, next);
    return 0;
}

/* Without a ring: the reference engine goes on from job->position. Only if the user did not insist. */
static int
refused(vspJob *job, int errnum)
{
    if (job->engineForced)
        return vspJobFail(job, VSP_OPERATION_SETUP, VSP_SIDE_NONE, 0, errnum, "io_uring");
    job->statistics.flags |= VSP_STATISTICS_NO_URING;
    job->engine = &vspEngineSync;
    return 0;
}

static int
uringSave(vspJob *job)
{
    Uring u = { .job = job };
    ssize_t n = vspJobFill(job, vspJobBuffer(job, 0), job->bufferSize);
    int rc;

    if (n < 0)
        return -1;
    if (job->atEnd)
        return n > 0 ? vspJobWriteAt(job, vspJobBuffer(job, 0), n, job->position) : 0;

    rc = openRing(&u);
    if (rc < 0) {
        if (refused(job, -rc) < 0 || vspJobWriteAt(job, vspJobBuffer(job, 0), n, job->position) < 0)
            return -1;
        return job->engine->save(job);
    }
    rc = saveThroughRing(&u, n);
    settle(&u);
    closeRing(&u);
    return rc;
}

static int
restoreThroughRing(Uring *u)
{
    vspJob *job = u->job;
    guint64 left = job->length - job->statistics.bytesOut;
    off_t base = vspJobResumePoint(job, job->position);
    gsize skip = job->position - base;
    off_t next = base; /* of the read to send */
    /* Nothing is sent beyond what is wanted, nor after the end was seen. */
    off_t stop = left < (guint64) (G_MAXINT64 - job->position) ? job->position + (off_t) left : G_MAXINT64;
    guint emit = 0, sent = 0;

    for (;;) {
        Slot *slot;
        gsize got;

        while (!job->atEnd && sent - emit < job->buffers && next < stop) {
            slot = &u->slots[sent % job->buffers];
            aim(slot, next, job->bufferSize);
            if (submit(u, slot) < 0)
                return -1;
            next += job->bufferSize;
            sent++;
        }
        if (emit == sent)
            return 0;
        slot = &u->slots[emit % job->buffers];
        while (slot->inFlight) {
            if (reap(u, TRUE) < 0)
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

static int
uringRestore(vspJob *job)
{
    Uring u = { .job = job };
    int rc;

    if (!worthARing(job))
        return vspEngineSync.restore(job);
    rc = openRing(&u);
    if (rc < 0)
        return refused(job, -rc) < 0 ? -1 : job->engine->restore(job);
    rc = restoreThroughRing(&u);
    settle(&u);
    closeRing(&u);
    return rc;
}

const vspEngine vspEngineUring = {
    .name = "uring",
    .save = uringSave,
    .restore = uringRestore,
};
