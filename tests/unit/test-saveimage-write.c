/*
 * test-saveimage-write.c: what the writer makes is what the format and the reader want
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <string.h>

#include <vmspool/vsp-error.h>
#include "imageutil.h"
#include "testutil.h"
#include "vspsaveimagepriv.h"

/* What the writer makes is what the reader and the format want. */
static void
testWriter(imageFixture *self, gconstpointer data)
{
    static const char *const cookies[] = { NULL, IMAGE_COOKIE, "" };
    guint8 digest[VSP_SAVE_IMAGE_DIGEST_SIZE];

    memset(digest, 0x5a, sizeof(digest));
    for (gsize i = 0; i < 6; i++) {
        const char *cookie = cookies[i / 2];
        g_autoptr(GError) error = NULL;
        g_autoptr(GBytes) block =
            vspSaveImageBlockNew(IMAGE_XML, cookie, i % 2, VSP_SAVE_IMAGE_FORMAT_ZSTD, &error);
        g_autoptr(GByteArray) bytes = g_byte_array_new();
        g_autoptr(vspSaveImage) partial = NULL;
        g_autoptr(vspSaveImage) image = NULL;
        gsize used = strlen(IMAGE_XML) + 1 + (i / 2 == 1 ? strlen(IMAGE_COOKIE) + 1 : 0);

        g_assert_no_error(error);
        g_assert_cmpuint(g_bytes_get_size(block) % 4096, ==, 0);
        g_assert_cmpuint(g_bytes_get_size(block), >=, 92 + used + 65536);
        g_assert_cmpuint(g_bytes_get_size(block), <, 92 + used + 65536 + 4096);
        g_byte_array_append(bytes, g_bytes_get_data(block, NULL), g_bytes_get_size(block));
        g_byte_array_append(bytes, (const guint8 *)"\050\265\057\375payload", 11);

        partial = imageOpenGood(self, bytes);
        g_assert_false(vspSaveImageIsComplete(partial));
        g_assert_cmpint(vspSaveImageGetSeal(partial), ==, VSP_SAVE_IMAGE_SEAL_NONE);
        g_assert_cmpuint(imageCountNotices(partial), ==, 0);

        vspSaveImageBlockComplete(block, 11, i % 2 ? digest : NULL, bytes->data);
        image = imageOpenGood(self, bytes);
        g_assert_true(vspSaveImageIsComplete(image));
        g_assert_true(vspSaveImageWasRunning(image) == (i % 2 == 1));
        g_assert_cmpuint(vspSaveImageGetFormat(image), ==, VSP_SAVE_IMAGE_FORMAT_ZSTD);
        g_assert_cmpuint(vspSaveImageGetPayloadOffset(image), ==, g_bytes_get_size(block));
        g_assert_cmpuint(vspSaveImageGetPayloadLength(image), ==, 11);
        g_assert_cmpint(vspSaveImageGetSeal(image), ==, VSP_SAVE_IMAGE_SEAL_VALID);
        g_assert_cmpstr(vspSaveImageGetXml(image), ==, IMAGE_XML);
        g_assert_cmpstr(vspSaveImageGetCookie(image), ==, i / 2 == 1 ? IMAGE_COOKIE : NULL);
        g_assert_cmpuint(imageCountNotices(image), ==, 0);
        if (i % 2)
            g_assert_cmpmem(vspSaveImageGetDigest(image), VSP_SAVE_IMAGE_DIGEST_SIZE, digest,
                            sizeof(digest));
        else
            g_assert_null(vspSaveImageGetDigest(image));
        /* The block itself is still the partial one. */
        g_assert_cmpmem(g_bytes_get_data(block, NULL), 16, "LibvirtQemudPart", 16);
    }
}

/* The writer's seal, against one made by the book. */
static void
testWriterSeal(imageFixture *self, gconstpointer data)
{
    g_autoptr(GBytes) block = vspSaveImageBlockNew(IMAGE_XML, NULL, TRUE, 0, NULL);
    g_autoptr(GByteArray) expected = imageMakeGood();
    guint8 header[VSP_SAVE_IMAGE_HEADER_SIZE];
    guint8 digest[VSP_SAVE_IMAGE_DIGEST_SIZE];

    memset(digest, 0x77, sizeof(digest));
    vspSaveImageBlockComplete(block, 0x0102030405060708ULL, digest, header);
    imagePutSeal(expected, 1, 0x0102030405060708ULL, 0x77, 1);
    g_assert_cmpmem(header + 0x34, 40, expected->data + 0x34, 40);
}

static void
testWriterRefuses(imageFixture *self, gconstpointer data)
{
    static const char *const texts[] = { "", "<network/>", "<domain>", "<!DOCTYPE d><domain/>" };
    g_autofree char *spaces = g_strnfill(VSP_SAVE_IMAGE_DATA_MAX - 60000, ' ');
    g_autofree char *large = g_strconcat("<domain>", spaces, "</domain>", NULL);

    for (gsize i = 0; i <= G_N_ELEMENTS(texts); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(GBytes) block =
            vspSaveImageBlockNew(i < G_N_ELEMENTS(texts) ? texts[i] : large, NULL, TRUE, 0, &error);

        g_assert_null(block);
        g_assert_error(error, VSP_ERROR, VSP_ERROR_INVALID_ARGUMENT);
    }
}

int
main(int argc, char **argv)
{
    vspTestInit(&argc, &argv);
    imageAddTest("/saveimage-write/complete", testWriter);
    imageAddTest("/saveimage-write/seal", testWriterSeal);
    imageAddTest("/saveimage-write/refuses", testWriterRefuses);
    return vspTestRun();
}
