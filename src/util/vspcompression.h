/*
 * vspcompression.h: the compression formats: names, numbers, levels
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_COMPRESSION_H
#define VSP_COMPRESSION_H

#include <glib.h>

typedef struct {
    const char *name;
    guint32 number; /* in a save image's header */
    int levelMin;
    int levelMax;
    int levelDefault;
    const char *magic; /* what compressed data begins with */
    gsize magicLength;
} vspCompression;

/* The highest number. */
#define VSP_COMPRESSION_LAST 5

/* NULL if there is none of that name; @length -1 for all of @name. */
const vspCompression *vspCompressionFind(const char *name, gssize length);

/* By number; NULL for raw and for what is no compression. */
const vspCompression *vspCompressionFromNumber(guint32 number);

/* "zstd" or "zstd:19". 0, or -1 with VSP_ERROR_INVALID_ARGUMENT. The level is the format's default if
 * @text has none. */
int vspCompressionParse(const char *text, const vspCompression **compression, int *level, GError **error);

#endif /* VSP_COMPRESSION_H */
