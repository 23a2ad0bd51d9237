/*
 * vspcrc32c.c: the CRC of the seal
 *
 * A table of 16: it is run over a few dozen bytes per image, where a larger one would only cost
 * cache.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "vspcrc32c.h"

/* Entry n: the polynomial 0x1edc6f41, bits reversed, run over the four bits of n. */
static const guint32 table[16] = {
    0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
    0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

guint32
vspCrc32c(guint32 crc, const void *bytes, gsize len)
{
    const guint8 *byte = bytes;

    crc = ~crc;
    while (len-- > 0) {
        crc ^= *byte++;
        crc = (crc >> 4) ^ table[crc & 0xf];
        crc = (crc >> 4) ^ table[crc & 0xf];
    }
    return ~crc;
}
