/*
 * job.c: one transfer
 *
 *   save:     engine, tail ──▶ length ──▶ sync ──▶ close
 *   restore:  engine ──▶ close
 *
 * The tail is the reason why vspJobWriteAt() takes any length: direct I/O moves whole blocks, and a
 * stream ends where it ends. The last partial block is written with O_DIRECT taken off, so that no
 * padding is ever in the file, not even for a moment, and nothing behind the data is touched on a
 * device.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cache.h"
#include "engine.h"
#include "job.h"
#include "residency.h"
#include "zeros.h"

/* A device that makes no headway but names no error would keep us for ever. */
#define FRUITLESS_MAX 16

#define HUGE_PAGE (2 * 1024 * 1024)

int
vspJobFail(vspJob *job,
           vspOperation operation,
           vspSide side,
           guint64 offset,
           int errnum,
           const char *detail)
{
    if (!job->failed) {
        job->failed = TRUE;
        job->failure.operation = operation;
        job->failure.side = side;
        job->failure.offset = offset;
        job->failure.errnum = errnum;
        g_strlcpy(job->failure.detail, detail ? detail : "", sizeof(job->failure.detail));
    }
    return -1;
}

int
vspJobFailFile(vspJob *job, vspOperation operation, vspCacheMode rung, guint64 offset, int errnum)
{
    const char *why = job->file->cache ? vspCacheGetRefusal(job->file->cache, rung, errnum) : NULL;

    if (why)
        operation = VSP_OPERATION_DIRECT;
    return vspJobFail(job, operation, VSP_SIDE_FILE, offset, errnum, why);
}

gboolean
vspJobTryAgain(int errnum, guint *fruitless)
{
    return (errnum == EINTR || errnum == EAGAIN) && ++*fruitless < FRUITLESS_MAX;
}

int
vspJobAllocate(vspJob *job)
{
    gsize size = job->buffers * job->bufferSize;
    char *raw = mmap(NULL, size + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (raw == MAP_FAILED)
        return vspJobFail(job, VSP_OPERATION_MEMORY, VSP_SIDE_NONE, 0, errno, NULL);
    /* Never unmapped: it is the process's for as long as it lives. Huge pages save thousands of
     * faults and make pinning cheap; only what is touched is ever there. */
    job->memory = (char *) (((gsize) raw + HUGE_PAGE - 1) & ~(gsize) (HUGE_PAGE - 1));
    if (job->bufferSize >= HUGE_PAGE)
        madvise(job->memory, size, MADV_HUGEPAGE);
    return 0;
}

char *
vspJobBuffer(vspJob *job, guint index)
{
    g_assert(index < job->buffers);
    return job->memory + index * job->bufferSize;
}

/* An engine counts what it sees; behind a codec it is not that what the stream gives or takes. */
static void
countRaw(vspJob *job, vspStatusStatistics *statistics)
{
    guint64 *streamBytes = job->writing ? &statistics->bytesIn : &statistics->bytesOut;

    if (!job->compress)
        return;
    vspEndpointCompressGet(job->compress, &statistics->rawBytes, &statistics->payloadBytes);
    *streamBytes = *streamBytes - statistics->payloadBytes + statistics->rawBytes;
}

static void
progress(vspJob *job, vspStage stage)
{
    vspStatusStatistics statistics = job->statistics;

    countRaw(job, &statistics);
    vspReporterProgress(job->reporter, stage, &statistics);
}

/* The stream, or a stage around it, failed. */
static int
failStream(vspJob *job, vspOperation operation, guint64 offset, int errnum)
{
    const vspEndpointReason *reason = vspEndpointGetReason(job->stream);

    if (reason)
        return vspJobFail(job, reason->operation,
                          reason->operation == VSP_OPERATION_DECOMPRESS ? VSP_SIDE_FILE : VSP_SIDE_STREAM,
                          reason->offset, errnum, reason->detail);
    return vspJobFail(job, operation, VSP_SIDE_STREAM, offset, errnum, NULL);
}

ssize_t
vspJobFill(vspJob *job, void *buf, gsize len)
{
    guint64 began = vspNow();
    gsize done = 0;
    guint fruitless = 0;

    while (done < len) {
        ssize_t n = vspEndpointRead(job->stream, (char *) buf + done, len - done);

        if (n < 0 && vspJobTryAgain(-n, &fruitless))
            continue;
        if (n < 0)
            return failStream(job, VSP_OPERATION_READ, job->statistics.bytesIn, -n);
        if (n == 0) {
            job->atEnd = TRUE;
            break;
        }
        fruitless = 0;
        done += n;
        job->statistics.bytesIn += n;
    }
    job->statistics.stallSourceNs += vspNow() - began;
    progress(job, VSP_STAGE_TRANSFER);
    return done;
}

int
vspJobDrain(vspJob *job, const void *buf, gsize len)
{
    guint64 began = vspNow();
    gsize done = 0;
    guint fruitless = 0;

    while (done < len) {
        ssize_t n = vspEndpointWrite(job->stream, (const char *) buf + done, len - done);

        if (n < 0 && vspJobTryAgain(-n, &fruitless))
            continue;
        if (n <= 0)
            return failStream(job, VSP_OPERATION_WRITE, job->statistics.bytesOut, n < 0 ? -n : EIO);
        done += n;
        job->statistics.bytesOut += n;
    }
    job->statistics.stallSinkNs += vspNow() - began;
    progress(job, VSP_STAGE_TRANSFER);
    return 0;
}

gsize
vspJobResumePoint(const vspJob *job, gsize done)
{
    /* A short direct I/O may end inside a block: that block is done once more, whole. */
    return done - done % vspEndpointGetAlignment(job->file);
}

void
vspJobWritten(vspJob *job, gsize bytes, off_t position)
{
    job->statistics.bytesOut += bytes;
    job->position = position;
    if (job->file->cache)
        vspCacheAdvance(job->file->cache, position);
}

void
vspJobPassed(vspJob *job, gsize bytes, guint64 nanoseconds)
{
    job->position += bytes;
    job->statistics.bytesIn += bytes;
    job->statistics.bytesOut += bytes;
    job->statistics.stallSinkNs += nanoseconds;
    progress(job, VSP_STAGE_TRANSFER);
}

gsize
vspJobGranule(const vspJob *job)
{
    /* What the common file systems allocate at the least. */
    return MAX(vspEndpointGetAlignment(job->file), 4096);
}

gboolean
vspJobZero(vspJob *job, off_t offset, gsize len)
{
    int rc = vspEndpointZero(job->file, offset, len);

    if (rc < 0) {
        job->sparse = FALSE;
        return FALSE;
    }
    job->statistics.holeBytes += len;
    return TRUE;
}

gboolean
vspJobIsHole(vspJob *job, off_t offset, gsize len)
{
    if (!vspEndpointIsHole(job->file, offset, len))
        return FALSE;
    job->statistics.holeBytes += len;
    return TRUE;
}

/* All of @len at @offset in the current mode; aligned in direct mode. */
static int
writeWhole(vspJob *job, const char *buf, gsize len, off_t offset)
{
    gsize done = 0;
    guint fruitless = 0;

    while (done < len) {
        vspCacheMode rung = VSP_CACHE_CACHED;
        ssize_t n;

        if (job->file->seekable) {
            rung = vspCacheGetMode(job->file->cache);
            n = vspEndpointPwrite(job->file, buf + done, len - done, offset + done);
        } else {
            n = vspEndpointWrite(job->file, buf + done, len - done);
        }
        if (n < 0 && ((job->file->seekable && vspCacheStepDown(job->file->cache, rung, -n)) ||
                      vspJobTryAgain(-n, &fruitless)))
            continue;
        if (n < 0)
            return vspJobFailFile(job, VSP_OPERATION_WRITE, rung, offset + done, -n);
        if (vspJobResumePoint(job, done + n) > done || n == (ssize_t) (len - done)) {
            fruitless = 0;
            done = done + n == len ? len : vspJobResumePoint(job, done + n);
        } else if (++fruitless == FRUITLESS_MAX) {
            return vspJobFail(job, VSP_OPERATION_WRITE, VSP_SIDE_FILE, offset + done, EIO, NULL);
        }
    }
    return 0;
}

/* The same in pieces, with the zeros between them left out. */
static int
writeSparse(vspJob *job, const char *buf, gsize len, off_t offset)
{
    gsize granule = vspJobGranule(job);

    while (len > 0 && job->sparse) {
        gsize n = vspZerosAt(buf, len, granule);

        if (n == 0) {
            n = vspZerosBefore(buf, len, granule);
            if (writeWhole(job, buf, n, offset) < 0)
                return -1;
        } else if (!vspJobZero(job, offset, n)) {
            break;
        }
        buf += n;
        offset += n;
        len -= n;
    }
    return len > 0 ? writeWhole(job, buf, len, offset) : 0;
}

int
vspJobWriteAt(vspJob *job, const void *buf, gsize len, off_t offset)
{
    guint64 began = vspNow();
    gsize whole = vspJobResumePoint(job, len);
    int rc = 0;

    if (whole > 0)
        rc = writeSparse(job, buf, whole, offset);
    if (rc == 0 && len > whole) {
        int err = job->file->cache ? vspCacheSuspendDirect(job->file->cache) : 0;

        if (err < 0)
            rc = vspJobFail(job, VSP_OPERATION_WRITE, VSP_SIDE_FILE, offset + whole, -err, NULL);
        else
            rc = writeWhole(job, (const char *) buf + whole, len - whole, offset + whole);
    }
    job->statistics.stallSinkNs += vspNow() - began;
    if (rc == 0)
        vspJobWritten(job, len, offset + len);
    return rc;
}

ssize_t
vspJobReadAt(vspJob *job, void *buf, gsize len, off_t offset)
{
    guint64 began = vspNow();
    gsize done = 0;
    guint fruitless = 0;

    while (done < len) {
        gsize from = vspJobResumePoint(job, done);
        vspCacheMode rung = VSP_CACHE_CACHED;
        ssize_t n;

        if (job->file->seekable) {
            rung = vspCacheGetMode(job->file->cache);
            n = vspEndpointPread(job->file, (char *) buf + from, len - from, offset + from);
        } else {
            n = vspEndpointRead(job->file, (char *) buf + from, len - from);
        }
        if (n < 0 && ((job->file->seekable && vspCacheStepDown(job->file->cache, rung, -n)) ||
                      vspJobTryAgain(-n, &fruitless)))
            continue;
        if (n < 0)
            return vspJobFailFile(job, VSP_OPERATION_READ, rung, offset + from, -n);
        if (from + n <= done) {
            /* Nothing that we did not have. Asked for the very next byte, that is the end; of a
             * block that was read again it may be all that the file system gives at once: it is
             * asked once more. */
            if (from == done || vspCacheSuspendDirect(job->file->cache) < 0)
                break;
            continue;
        }
        fruitless = 0;
        done = from + n;
    }
    job->statistics.stallSourceNs += vspNow() - began;
    return done;
}

/* Up to the next boundary the file is written through the cache, so that the rest can be direct. */
static int
saveHead(vspJob *job)
{
    gsize alignment = vspEndpointGetAlignment(job->file);
    gsize head = (alignment - job->position % alignment) % alignment;
    ssize_t n;
    int rc;

    if (head == 0)
        return 0;
    rc = vspCacheSuspendDirect(job->file->cache);
    if (rc < 0)
        return vspJobFail(job, VSP_OPERATION_SETUP, VSP_SIDE_FILE, job->position, -rc, "O_DIRECT");
    n = vspJobFill(job, job->memory, head);
    if (n < 0 || (n > 0 && vspJobWriteAt(job, job->memory, n, job->position) < 0))
        return -1;
    rc = vspCacheResumeDirect(job->file->cache);
    if (rc < 0)
        return vspJobFail(job, VSP_OPERATION_SETUP, VSP_SIDE_FILE, job->position, -rc, "O_DIRECT");
    return 0;
}

static int
makeDurable(vspJob *job)
{
    guint64 began = vspNow();
    int rc;

    progress(job, VSP_STAGE_SYNC);
    if (job->file->seekable) {
        rc = vspEndpointTruncate(job->file, job->position);
        if (rc < 0)
            return vspJobFail(job, VSP_OPERATION_TRUNCATE, VSP_SIDE_FILE, job->position, -rc, NULL);
    }
    rc = vspEndpointSync(job->file);
    if (rc < 0)
        return vspJobFail(job, VSP_OPERATION_SYNC, VSP_SIDE_FILE, job->position, -rc, NULL);
    job->statistics.syncNs = vspNow() - began;
    return 0;
}

/* Leaves the descriptor as a plain read or write would have: others may share it. */
static void
leaveFile(vspJob *job)
{
    if (!job->file->seekable)
        return;
    vspCacheFinish(job->file->cache, job->file->start, job->position);
    job->statistics.cachedAfter = vspResidency(job->file->fd, job->file->start, job->position);
    lseek(job->file->fd, job->position, SEEK_SET);
}

static int
restoreAll(vspJob *job)
{
    if (job->engine->restore(job) < 0)
        return -1;
    /* Who says how much there is to read does not want less. */
    if (job->length != G_MAXUINT64 && job->statistics.bytesOut < job->length)
        return vspJobFail(job, VSP_OPERATION_READ, VSP_SIDE_FILE, job->position, ENODATA, NULL);
    return 0;
}

/* The stages hand on what they hold and say whether it was whole. */
static int
finishStream(vspJob *job)
{
    int rc = vspEndpointFinish(job->stream);

    if (rc < 0)
        return failStream(job, VSP_OPERATION_WRITE, job->statistics.bytesOut, -rc);
    if (job->digest) {
        job->statistics.payloadBytes = job->statistics.rawBytes =
            vspEndpointDigestGet(job->digest, job->statistics.digest);
        job->statistics.flags |= VSP_STATISTICS_DIGEST;
    }
    return 0;
}

int
vspJobRun(vspJob *job)
{
    guint64 began = vspNow();
    int rc;

    job->position = job->file->start;
    job->statistics.startOffset = job->file->start;
    if (job->writing)
        rc = saveHead(job) < 0 || (!job->atEnd && job->engine->save(job) < 0) ? -1 : 0;
    else
        rc = restoreAll(job);
    if (rc == 0)
        rc = finishStream(job);
    job->statistics.transferNs = vspNow() - began;

    if (rc == 0 && job->writing)
        rc = makeDurable(job);
    leaveFile(job);

    /* Both closes count after writing: on network file systems the last error comes here. */
    if (!job->file->closed && (rc = vspEndpointClose(job->file)) < 0 && job->writing)
        vspJobFail(job, VSP_OPERATION_CLOSE, VSP_SIDE_FILE, job->position, -rc, NULL);
    vspEndpointClose(job->stream);
    countRaw(job, &job->statistics);
    return job->failed ? -1 : 0;
}
