/*
 * vsptransfer.h: a file, the iohelper on it, and the end of the stream that goes to QEMU
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_TRANSFER_H
#define VSP_TRANSFER_H

#include "vspflow.h"
#include "vspqmp.h"

typedef struct _vspTransfer vspTransfer;

/* What is particular to a flow's file. */
typedef struct {
    unsigned int flags;  /* added to those of the flow's options */
    guint64 length;      /* bytes to read, 0 for all; ignored when writing */
    guint64 plainLength; /* bytes of a header, which no stage touches */
    gboolean digest;
    const char *decompression; /* the format of what is read */
} vspTransferShape;

/* Wraps *@fd (consumed on success) as the flow's options and @shape say. */
vspTransfer *vspTransferNew(
    int *fd, const char *name, vspFlow *flow, const vspTransferShape *shape, GError **error);

/* Aborts what is not finished. */
void vspTransferFree(vspTransfer *transfer);

/* Writes into the stream before it is handed over. Cancellable by the flow; never raises SIGPIPE.
 * If the helper fails meanwhile, @error is its verdict. */
int vspTransferWrite(vspTransfer *transfer, const void *data, gsize len, GError **error);

/*
 * Gives QEMU the stream's end, by a name that vspTransferGetFdName() tells. Our copy is closed in
 * all cases, so that the helper sees the end of the stream when QEMU closes its own, or dies.
 */
int vspTransferHandOver(vspTransfer *transfer, vspQmp *qmp, GError **error);
const char *vspTransferGetFdName(const vspTransfer *transfer);

/* Has QEMU close the end in case it has not yet taken it up. Quiet. */
void vspTransferTakeBack(vspTransfer *transfer, vspQmp *qmp);

/* Takes in what the helper says, without blocking; TRUE once its verdict is known. */
gboolean vspTransferProcess(vspTransfer *transfer);

/* The descriptor to poll, and vspTransferProcess() in the shape of a vspQmpWatchFunc. */
int vspTransferGetFd(const vspTransfer *transfer);
gboolean vspTransferWatch(gpointer transfer);

/* The verdict: NULL while there is none, and for success. Owned by @transfer. */
const GError *vspTransferGetFailure(const vspTransfer *transfer);

/* What went through, as last reported. */
void vspTransferGetProgress(vspTransfer *transfer, vspProgress *progress);

/* Waits for the verdict; cancellable by the flow. @total: for the progress. Meanwhile takes in what
 * comes from @qmp (nullable), whose end does not matter here. 0: all is durable or delivered. */
int vspTransferFinish(vspTransfer *transfer, vspQmp *qmp, guint64 total, GError **error);

/* For a job that failed elsewhere: gives the helper @milliseconds to say what it knows, then aborts
 * it. vspTransferGetFailure() is then a root cause, or VSP_ERROR_ABORTED. */
void vspTransferSettle(vspTransfer *transfer, guint milliseconds);

/*
 * Of all that went wrong in a job, what went wrong first. QEMU sees a helper's failure as a broken
 * pipe, and a helper sees QEMU's as an early end or a reader that is gone. Waits a moment for the
 * helper's verdict, which may be about to come, and puts it into *@cause if it is a cause. A cancel
 * stays one.
 */
void vspTransferRootCause(vspTransfer *transfer, GError **cause);

/* Bytes handed to the destination, after the verdict. */
guint64 vspTransferGetBytes(const vspTransfer *transfer);

/* After a good verdict: the payload's digest, owned by @transfer; NULL if none was asked for. */
const guint8 *vspTransferGetDigest(const vspTransfer *transfer);

/* Adds "transfer" to the flow's report, and what was stepped down to its notices. */
void vspTransferReport(vspTransfer *transfer);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(vspTransfer, vspTransferFree)

#endif /* VSP_TRANSFER_H */
