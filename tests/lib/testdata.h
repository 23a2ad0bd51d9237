/*
 * testdata.h: bytes that tell where they belong
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_TESTDATA_H
#define VSP_TESTDATA_H

#include <glib.h>

/* The bytes from @offset on of one endless stream that never repeats itself. */
void vspTestFill(void *buf, gsize len, guint64 offset);

/* Index of the first byte that is not that of the stream; @len if all are. */
gsize vspTestCompare(const void *buf, gsize len, guint64 offset);

/* Fails the test, naming the first wrong byte. */
void vspTestAssertData(const void *buf, gsize len, guint64 offset);

#endif /* VSP_TESTDATA_H */
