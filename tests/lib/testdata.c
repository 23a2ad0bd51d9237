/*
 * testdata.c: bytes that tell where they belong
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <string.h>

#include "testdata.h"

/* Eight bytes of the stream: the number of the group, mixed well (the finalizer of MurmurHash3). */
static guint64
group(guint64 index)
{
    guint64 x = index + 1;

    x ^= x >> 33;
    x *= G_GUINT64_CONSTANT(0xff51afd7ed558ccd);
    x ^= x >> 33;
    x *= G_GUINT64_CONSTANT(0xc4ceb9fe1a85ec53);
    x ^= x >> 33;
    return x;
}

void
vspTestFill(void *buf, gsize len, guint64 offset)
{
    char *out = buf;

    while (len > 0) {
        guint64 value = group(offset / 8);
        gsize skip = offset % 8;
        gsize n = MIN(8 - skip, len);

        memcpy(out, (char *)&value + skip, n);
        out += n;
        offset += n;
        len -= n;
    }
}

gsize
vspTestCompare(const void *buf, gsize len, guint64 offset)
{
    const char *in = buf;
    gsize done = 0;

    while (done < len) {
        char expected[512];
        gsize n = MIN(sizeof(expected), len - done);

        vspTestFill(expected, n, offset + done);
        if (memcmp(in + done, expected, n) != 0) {
            while (in[done] == expected[0]) {
                done++;
                memmove(expected, expected + 1, sizeof(expected) - 1);
            }
            return done;
        }
        done += n;
    }
    return len;
}

void
vspTestAssertData(const void *buf, gsize len, guint64 offset)
{
    gsize right = vspTestCompare(buf, len, offset);

    if (right < len)
        g_error("byte %" G_GSIZE_FORMAT " of %" G_GSIZE_FORMAT " is wrong", right, len);
}
