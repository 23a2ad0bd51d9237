/*
 * codec.h: compress and decompress, by libarchive
 *
 * The library is loaded by the first call, so that a job without compression does not pay for it. All
 * calls for one codec come from one thread at a time.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef CODEC_H
#define CODEC_H

#include <glib.h>
#include <sys/types.h>

#include "vspcompression.h"

typedef struct _vspCodec vspCodec;

/* Takes compressed bytes: 0 or -errno, which ends the compression. */
typedef int (*vspCodecSink)(gpointer opaque, const void *data, gsize len);

/* Compressed bytes into @buf: how many, 0 at the end, -errno. */
typedef ssize_t (*vspCodecSource)(gpointer opaque, void *buf, gsize len);

/* What went wrong is in vspCodecGetReason() of the codec; of one that could not be made, in @reason, of
 * 128 bytes. */
vspCodec *vspCodecNewCompressor(const vspCompression *compression,
                                int level,
                                vspCodecSink sink,
                                gpointer opaque,
                                char *reason);
vspCodec *vspCodecNewDecompressor(const vspCompression *compression,
                                  vspCodecSource source,
                                  gpointer opaque,
                                  char *reason);
void vspCodecFree(vspCodec *codec);

/* 0 or -errno. Finish hands all that is left to the sink. */
int vspCodecCompress(vspCodec *codec, const void *data, gsize len);
int vspCodecFinish(vspCodec *codec);

/* The next decompressed bytes, valid until the next call: how many, 0 at the end, at which the source
 * has ended too. -EBADMSG: the data is not what a compressor wrote; -ENODATA: it is cut off; or the
 * source's failure. */
ssize_t vspCodecDecompress(vspCodec *codec, const void **data);

/* Compressed bytes used so far. */
guint64 vspCodecGetPosition(const vspCodec *codec);

const char *vspCodecGetReason(const vspCodec *codec);

/* Whether the format can be had on this host. */
gboolean vspCodecIsThere(const vspCompression *compression);

#endif /* CODEC_H */
