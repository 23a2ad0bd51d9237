/*
 * endpoint-compress.c: a stage that compresses or decompresses what passes
 *
 *   reading:  stream ──▶ our thread: codec ──▶ fifo ──▶ read()          compress (save) or decompress
 *   writing:  write() ──▶ fifo ──▶ our thread: codec ──▶ stream         decompress (restore)
 *
 * A thread of its own, because a codec takes the processor for longer than anything else in the helper:
 * so it works while the engine waits for the disk, and the disk while it works. The thread is started
 * when the plain beginning has passed.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <glib/gi18n-lib.h>
#include <string.h>

#include "codec.h"
#include "fifo.h"
#include "stage.h"

/* Between the threads. More bridges longer pauses of either side. */
#define FIFO_SIZE (4 * 1024 * 1024)

/* What is read from the stream at once. */
#define CHUNK (512 * 1024)

typedef struct {
    vspEndpoint base;
    gboolean reading; /* the stream is read */
    gboolean decompressing;
    guint64 plain;    /* bytes still to pass as they are */
    const vspCompression *compression;
    vspCodec *codec;
    vspFifo *fifo;
    GThread *thread;
    gint errnum; /* the thread's failure, positive; atomic */
    guint64 innerBytes; /* on the stream's side; atomic */
    guint64 outerBytes; /* on the engine's */
    char head[16]; /* decompressing: the first bytes */
    gsize headLength;
    gboolean headIsWrong;
} CompressEndpoint;

static CompressEndpoint *
compressOf(vspEndpoint *ep)
{
    return (CompressEndpoint *) ep;
}

/* The codec failed by itself, and not by what it reads from or writes to. */
static int
failCodec(CompressEndpoint *stage, vspOperation operation, int errnum, const char *detail)
{
    stage->base.reason.operation = operation;
    stage->base.reason.offset = operation == VSP_OPERATION_COMPRESS ? stage->innerBytes
                                                                    : vspCodecGetPosition(stage->codec);
    g_strlcpy(stage->base.reason.detail, detail, sizeof(stage->base.reason.detail));
    return -errnum;
}

static int
failHead(CompressEndpoint *stage)
{
    return failCodec(stage, VSP_OPERATION_DECOMPRESS, EBADMSG,
                     N_("it does not begin as compressed data does"));
}

/* Codec or its source, when decompressing. */
static int
failDecompress(CompressEndpoint *stage, int errnum)
{
    if (stage->headIsWrong)
        return failHead(stage);
    /* Others are the source's, which tells for itself. */
    if (errnum == EBADMSG || errnum == ENODATA)
        failCodec(stage, VSP_OPERATION_DECOMPRESS, errnum, vspCodecGetReason(stage->codec));
    return -errnum;
}

/* What is no compressed data at all is told before a decompressor gets to see it. */
static gboolean
headIsRight(CompressEndpoint *stage, const char *buf, gsize len)
{
    gsize magic = stage->compression->magicLength;
    gsize n = MIN(len, magic - stage->headLength);

    memcpy(stage->head + stage->headLength, buf, n);
    stage->headLength += n;
    return memcmp(stage->head, stage->compression->magic, stage->headLength) == 0;
}

/* --- the stream is read --- */

static int
putCompressed(gpointer opaque, const void *data, gsize len)
{
    CompressEndpoint *stage = opaque;

    return vspFifoPut(stage->fifo, data, len);
}

static int
compressAll(CompressEndpoint *stage)
{
    g_autofree char *chunk = g_malloc(CHUNK);
    int rc;

    for (;;) {
        ssize_t n = vspEndpointRead(stage->base.inner, chunk, CHUNK);

        if (n < 0)
            return n;
        rc = n > 0 ? vspCodecCompress(stage->codec, chunk, n) : vspCodecFinish(stage->codec);
        if (rc < 0)
            return failCodec(stage, VSP_OPERATION_COMPRESS, -rc, vspCodecGetReason(stage->codec));
        if (n == 0)
            return 0;
        __atomic_fetch_add(&stage->innerBytes, n, __ATOMIC_RELAXED);
    }
}

static ssize_t
readInner(gpointer opaque, void *buf, gsize len)
{
    CompressEndpoint *stage = opaque;
    ssize_t n = vspEndpointRead(stage->base.inner, buf, len);

    if (n > 0 && !headIsRight(stage, buf, n)) {
        stage->headIsWrong = TRUE;
        return -EBADMSG;
    }
    if (n > 0)
        __atomic_fetch_add(&stage->innerBytes, n, __ATOMIC_RELAXED);
    return n;
}

static int
decompressIntoFifo(CompressEndpoint *stage)
{
    for (;;) {
        const void *data;
        ssize_t n = vspCodecDecompress(stage->codec, &data);
        int rc;

        if (n < 0)
            return failDecompress(stage, -n);
        if (n == 0)
            return 0;
        rc = vspFifoPut(stage->fifo, data, n);
        if (rc < 0)
            return rc;
    }
}

static gpointer
readThread(gpointer opaque)
{
    CompressEndpoint *stage = opaque;

    vspFifoEnd(stage->fifo, -(stage->decompressing ? decompressIntoFifo(stage) : compressAll(stage)));
    return NULL;
}

static ssize_t
compressRead(vspEndpoint *ep, void *buf, gsize len)
{
    CompressEndpoint *stage = compressOf(ep);
    ssize_t n;

    if (stage->plain > 0) {
        n = vspEndpointRead(ep->inner, buf, MIN(len, stage->plain));
        /* An end in the header: there is no payload, and so nothing compressed either. */
        if (n > 0)
            stage->plain -= n;
        return n;
    }
    if (!stage->thread)
        stage->thread = g_thread_new("codec", readThread, stage);
    n = vspFifoTake(stage->fifo, buf, len);
    if (n > 0)
        stage->outerBytes += n;
    return n;
}

/* --- the stream is written --- */

static ssize_t
takeCompressed(gpointer opaque, void *buf, gsize len)
{
    CompressEndpoint *stage = opaque;

    return vspFifoTake(stage->fifo, buf, len);
}

static int
decompressIntoStream(CompressEndpoint *stage)
{
    for (;;) {
        const char *at;
        const void *data;
        ssize_t left = vspCodecDecompress(stage->codec, &data);

        if (left < 0)
            return failDecompress(stage, -left);
        if (left == 0)
            return 0;
        for (at = data; left > 0;) {
            ssize_t n = vspEndpointWrite(stage->base.inner, at, left);

            if (n <= 0)
                return n < 0 ? n : -EIO;
            at += n;
            left -= n;
            __atomic_fetch_add(&stage->innerBytes, n, __ATOMIC_RELAXED);
        }
    }
}

static gpointer
writeThread(gpointer opaque)
{
    CompressEndpoint *stage = opaque;
    int rc = decompressIntoStream(stage);

    if (rc < 0) {
        g_atomic_int_set(&stage->errnum, -rc);
        vspFifoGiveUp(stage->fifo, -rc);
    }
    return NULL;
}

static ssize_t
compressWrite(vspEndpoint *ep, const void *buf, gsize len)
{
    CompressEndpoint *stage = compressOf(ep);
    int rc;

    if (stage->plain > 0) {
        ssize_t n = vspEndpointWrite(ep->inner, buf, MIN(len, stage->plain));

        if (n > 0)
            stage->plain -= n;
        return n;
    }
    if (stage->headLength < stage->compression->magicLength && !headIsRight(stage, buf, len))
        return failHead(stage);
    if (!stage->thread)
        stage->thread = g_thread_new("codec", writeThread, stage);
    rc = vspFifoPut(stage->fifo, buf, len);
    if (rc < 0)
        return rc;
    stage->outerBytes += len;
    return len;
}

/* --- both --- */

static int
compressFinish(vspEndpoint *ep)
{
    CompressEndpoint *stage = compressOf(ep);

    if (!stage->reading) {
        /* Without a byte of it there is no thread either. */
        if (!stage->thread || stage->headLength < stage->compression->magicLength)
            return failCodec(stage, VSP_OPERATION_DECOMPRESS, ENODATA,
                             N_("unexpected end of compressed data"));
        vspFifoEnd(stage->fifo, 0);
    }
    if (stage->thread)
        g_thread_join(g_steal_pointer(&stage->thread));
    if (g_atomic_int_get(&stage->errnum))
        return -g_atomic_int_get(&stage->errnum);
    return vspEndpointFinish(ep->inner);
}

static int
compressClose(vspEndpoint *ep)
{
    /* The thread of a job that failed still uses it: it goes with the process. */
    return compressOf(ep)->thread ? 0 : vspEndpointClose(ep->inner);
}

static void
compressFree(vspEndpoint *ep)
{
    CompressEndpoint *stage = compressOf(ep);

    if (stage->thread)
        return;
    vspCodecFree(stage->codec);
    vspFifoFree(stage->fifo);
    vspEndpointFree(ep->inner);
    g_free(stage);
}

static const vspEndpointOps compressOps = {
    .kind = "compress",
    .read = compressRead,
    .write = compressWrite,
    .pread = vspStagePread,
    .pwrite = vspStagePwrite,
    .complete = vspStageComplete,
    .zero = vspStageZero,
    .isHole = vspStageIsHole,
    .finish = compressFinish,
    .truncate = vspStageTruncate,
    .sync = vspStageSync,
    .close = compressClose,
    .free = compressFree,
};

vspEndpoint *
vspEndpointCompressNew(vspEndpoint *inner,
                       const vspCompression *compression,
                       int level,
                       gboolean reading,
                       gboolean decompressing,
                       guint64 plain,
                       char *reason)
{
    CompressEndpoint *stage = g_new0(CompressEndpoint, 1);

    vspStageInit(&stage->base, &compressOps, inner);
    stage->reading = reading;
    stage->decompressing = decompressing;
    stage->plain = plain;
    stage->compression = compression;
    stage->fifo = vspFifoNew(FIFO_SIZE);
    stage->codec =
        decompressing
            ? vspCodecNewDecompressor(compression, reading ? readInner : takeCompressed, stage, reason)
            : vspCodecNewCompressor(compression, level, putCompressed, stage, reason);
    if (!stage->codec) {
        vspFifoFree(stage->fifo);
        g_free(stage);
        return NULL;
    }
    return &stage->base;
}

void
vspEndpointCompressGet(vspEndpoint *ep, guint64 *inner, guint64 *outer)
{
    CompressEndpoint *stage = compressOf(ep);

    g_assert(ep->ops == &compressOps);
    *inner = __atomic_load_n(&stage->innerBytes, __ATOMIC_RELAXED);
    *outer = stage->outerBytes;
}
