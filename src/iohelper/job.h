/*
 * job.h: one transfer: its two ends, its buffers, what it has moved, and its first failure
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef JOB_H
#define JOB_H

#include <glib.h>
#include <vmspool/vsp-filewrapper.h>

#include "control.h"
#include "endpoint.h"
#include "report.h"
#include "vspstatus.h"

typedef struct _vspJob vspJob;
typedef struct _vspEngine vspEngine;

struct _vspJob {
    vspEndpoint *file;   /* owned; the wrapped end: a file, a device, or whatever was given */
    vspEndpoint *stream; /* owned; the other end */
    gboolean writing;    /* stream to file; else file to stream */
    guint64 length;      /* reading: bytes to move, G_MAXUINT64 for all */
    const vspEngine *engine;
    gboolean engineForced; /* the user named it: no other will do */
    gboolean sparse;       /* writing: leave out runs of zeros */
    gboolean hot;          /* reading: nearly all of it is in the page cache */
    vspEndpoint *compress; /* the stages around the stream that are asked; borrowed, NULL without */
    vspEndpoint *digest;
    vspControl *control;   /* what may change meanwhile */

    /* The ring of buffers: count times size bytes, aligned for direct I/O. */
    char *memory;
    guint buffers;
    gsize bufferSize;

    off_t position;   /* in the file: everything before it is done */
    gboolean atEnd;   /* the source has no more */
    vspReporter *reporter;
    vspStatusStatistics statistics;

    gboolean failed; /* with the first failure in: */
    vspStatusVerdict failure;
};

/* Gets the memory. 0, or -1 with the failure recorded. */
int vspJobAllocate(vspJob *job);

/* Moves everything, makes it durable, closes both ends. 0, or -1 with the failure recorded. */
int vspJobRun(vspJob *job);

/* Records a failure; only the first one counts. @errnum is positive. Always returns -1. */
int vspJobFail(vspJob *job,
               vspOperation operation,
               vspSide side,
               guint64 offset,
               int errnum,
               const char *detail);

/* The same for an I/O on the file, done on @rung: in strict mode the rung may be what failed. */
int
vspJobFailFile(vspJob *job, vspOperation operation, vspCacheMode rung, guint64 offset, int errnum);

/* After a call that moved nothing: is it worth another try? Counts in *@fruitless, which progress
 * sets back to 0. */
gboolean vspJobTryAgain(int errnum, guint *fruitless);

char *vspJobBuffer(vspJob *job, guint index);

/* For engines. */

/* Fills @buf from the stream, up to the end; sets atEnd. The bytes, or -1. */
ssize_t vspJobFill(vspJob *job, void *buf, gsize len);

/* Hands all of @buf to the stream. 0 or -1. */
int vspJobDrain(vspJob *job, const void *buf, gsize len);

/* Writes @len bytes at @offset, whatever their length: in direct mode the aligned part goes out
 * directly and the rest, which must be the last of the stream, without O_DIRECT. 0 or -1. */
int vspJobWriteAt(vspJob *job, const void *buf, gsize len, off_t offset);

/* Reads up to @len bytes at @offset (both aligned in direct mode), less only at the end of the
 * file. The bytes, or -1. */
ssize_t vspJobReadAt(vspJob *job, void *buf, gsize len, off_t offset);

/* Given @done of @len bytes, where to go on so that a direct I/O is aligned again. */
gsize vspJobResumePoint(const vspJob *job, gsize done);

/* Zeros at [@offset, @offset + @len) without writing them. FALSE: they can't be had here (and from now
 * on nobody tries), so write them. */
gboolean vspJobZero(vspJob *job, off_t offset, gsize len);

/* Reading: that range is a hole, and needs no I/O. */
gboolean vspJobIsHole(vspJob *job, off_t offset, gsize len);

/* Smallest piece that may be left out. */
gsize vspJobGranule(const vspJob *job);

/* Reading: @bytes went from the file into the stream in @nanoseconds, not by way of a buffer. */
void vspJobPassed(vspJob *job, gsize bytes, guint64 nanoseconds);

/* @bytes more were written to the file, and all before @position is. */
void vspJobWritten(vspJob *job, gsize bytes, off_t position);

#endif /* JOB_H */
