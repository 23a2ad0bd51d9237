/*
 * engine-uring.c: the ring, driven by io_uring
 *
 * The file is not registered with the kernel's ring: at one I/O per buffer that saves nothing, and the
 * kernel gives a registered file back some time after the process has ended, so that an umount right
 * after a save would find the file system busy.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <liburing.h>
#include <string.h>

#include "engine.h"
#include "ring.h"

typedef struct {
    struct io_uring uring;
    gboolean fixedBuffers;
} UringState;

static int
uringOpen(vspRing *ring)
{
    vspJob *job = ring->job;
    UringState *state = g_new0(UringState, 1);
    struct io_uring_params params;
    g_autofree struct iovec *iov = NULL;
    int rc;

    /* Deferred task work (Linux 6.1): completions are run when we ask for them and not by interrupting
     * the copy. */
    memset(&params, 0, sizeof(params));
    params.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
    rc = io_uring_queue_init_params(job->buffers, &state->uring, &params);
    if (rc == -EINVAL)
        rc = io_uring_queue_init(job->buffers, &state->uring, 0);
    if (rc < 0) {
        g_free(state);
        return rc;
    }
    /* Pinned once instead of for each I/O. Refused beyond RLIMIT_MEMLOCK: then without. */
    iov = g_new0(struct iovec, job->buffers);
    for (guint i = 0; i < job->buffers; i++)
        iov[i] = (struct iovec){ vspJobBuffer(job, i), job->bufferSize };
    state->fixedBuffers = io_uring_register_buffers(&state->uring, iov, job->buffers) == 0;
    if (state->fixedBuffers)
        job->statistics.flags |= VSP_STATISTICS_REGISTERED_BUFFERS;
    ring->state = state;
    return 0;
}

static int
uringSubmit(vspRing *ring, vspSlot *slot)
{
    UringState *state = ring->state;
    struct io_uring_sqe *sqe = io_uring_get_sqe(&state->uring);
    int fd = ring->job->file->fd;
    guint index = slot - ring->slots;
    int rc;

    /* As many entries as slots, and a slot has one at the most. */
    g_assert(sqe);
    if (ring->job->writing) {
        if (state->fixedBuffers)
            io_uring_prep_write_fixed(sqe, fd, slot->ioBuf, slot->ioLen, slot->ioOffset, index);
        else
            io_uring_prep_write(sqe, fd, slot->ioBuf, slot->ioLen, slot->ioOffset);
    } else {
        if (state->fixedBuffers)
            io_uring_prep_read_fixed(sqe, fd, slot->ioBuf, slot->ioLen, slot->ioOffset, index);
        else
            io_uring_prep_read(sqe, fd, slot->ioBuf, slot->ioLen, slot->ioOffset);
    }
    sqe->rw_flags = slot->ioFlags;
    io_uring_sqe_set_data(sqe, slot);
    do {
        rc = io_uring_submit(&state->uring);
    } while (rc == -EINTR || rc == -EAGAIN);
    return rc < 0 ? rc : 0;
}

static vspSlot *
uringNext(vspRing *ring, gboolean wait)
{
    UringState *state = ring->state;
    struct io_uring_cqe *cqe;
    vspSlot *slot;
    int rc;

    do {
        rc = wait ? io_uring_wait_cqe(&state->uring, &cqe) : io_uring_peek_cqe(&state->uring, &cqe);
    } while (rc == -EINTR);
    if (rc == -EAGAIN)
        return NULL;
    /* Nothing that a caller could bring about: the ring itself is broken, and buffers are in the
     * kernel's hands. No verdict means failure. */
    if (rc < 0)
        g_error("io_uring: waiting failed: %s", g_strerror(-rc));
    slot = io_uring_cqe_get_data(cqe);
    slot->ioResult = cqe->res;
    io_uring_cqe_seen(&state->uring, cqe);
    return slot;
}

static void
uringClose(vspRing *ring)
{
    UringState *state = ring->state;

    io_uring_queue_exit(&state->uring);
    g_free(state);
}

static const vspRingBackend backend = {
    .open = uringOpen,
    .submit = uringSubmit,
    .next = uringNext,
    .close = uringClose,
};

static int
uringSave(vspJob *job)
{
    return vspRingSave(job, &backend, &vspEngineThreads);
}

static int
uringRestore(vspJob *job)
{
    return vspRingRestore(job, &backend, &vspEngineThreads);
}

const vspEngine vspEngineUring = {
    .name = "uring",
    .save = uringSave,
    .restore = uringRestore,
};
