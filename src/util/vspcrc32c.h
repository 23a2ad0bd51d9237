/*
 * vspcrc32c.h: the CRC of the seal
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_CRC32C_H
#define VSP_CRC32C_H

#include <glib.h>

/* CRC-32C (Castagnoli, reflected, as in RFC 3720). Start with 0; what it returns goes in again to
 * continue over more bytes. */
guint32 vspCrc32c(guint32 crc, const void *bytes, gsize len);

#endif /* VSP_CRC32C_H */
