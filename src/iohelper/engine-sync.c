/*
 * engine-sync.c: the reference: one buffer, read it full, write it out
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "engine.h"

static int
syncSave(vspJob *job)
{
    while (!job->atEnd) {
        char *buf = vspJobBuffer(job, 0);
        ssize_t n = vspJobFill(job, buf, job->bufferSize);

        if (n < 0 || (n > 0 && vspJobWriteAt(job, buf, n, job->position) < 0))
            return -1;
    }
    return 0;
}

static int
syncRestore(vspJob *job)
{
    guint64 left = job->length - job->statistics.bytesOut;

    while (!job->atEnd && left > 0) {
        char *buf = vspJobBuffer(job, 0);
        /* From the boundary below: direct I/O reads whole blocks. */
        off_t base = vspJobResumePoint(job, job->position);
        gsize skip = job->position - base;
        ssize_t n = vspJobReadAt(job, buf, job->bufferSize, base);
        gsize got;

        if (n < 0)
            return -1;
        if ((gsize) n < job->bufferSize)
            job->atEnd = TRUE;
        got = MIN((gsize) n > skip ? n - skip : 0, left);
        job->statistics.bytesIn += got;
        if (got > 0 && vspJobDrain(job, buf + skip, got) < 0)
            return -1;
        job->position += got;
        left -= got;
    }
    return 0;
}

const vspEngine vspEngineSync = {
    .name = "sync",
    .save = syncSave,
    .restore = syncRestore,
};
