/*
 * test-crc32c.c: against the published vectors
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <string.h>

#include "testutil.h"
#include "vspcrc32c.h"

/* RFC 3720, B.4, and the check value of the CRC catalogue. */
static void
testVectors(void)
{
    guint8 bytes[32];

    g_assert_cmphex(vspCrc32c(0, NULL, 0), ==, 0);
    g_assert_cmphex(vspCrc32c(0, "123456789", 9), ==, 0xe3069283);
    memset(bytes, 0, sizeof(bytes));
    g_assert_cmphex(vspCrc32c(0, bytes, sizeof(bytes)), ==, 0x8a9136aa);
    memset(bytes, 0xff, sizeof(bytes));
    g_assert_cmphex(vspCrc32c(0, bytes, sizeof(bytes)), ==, 0x62a8ab43);
    for (guint i = 0; i < sizeof(bytes); i++)
        bytes[i] = (guint8)i;
    g_assert_cmphex(vspCrc32c(0, bytes, sizeof(bytes)), ==, 0x46dd794e);
}

static void
testInParts(void)
{
    const char *text = "123456789";

    for (gsize cut = 0; cut <= 9; cut++)
        g_assert_cmphex(vspCrc32c(vspCrc32c(0, text, cut), text + cut, 9 - cut), ==, 0xe3069283);
}

int
main(int argc, char **argv)
{
    vspTestInit(&argc, &argv);
    g_test_add_func("/crc32c/vectors", testVectors);
    g_test_add_func("/crc32c/in-parts", testInParts);
    return vspTestRun();
}
