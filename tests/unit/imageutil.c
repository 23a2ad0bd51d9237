/*
 * imageutil.c: save images for tests, put together byte by byte and not by the writer
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <glib/gstdio.h>
#include <string.h>

#include <vmspool/vsp-error.h>
#include "imageutil.h"
#include "testutil.h"
#include "vspcrc32c.h"
#include "vspsaveimagepriv.h"

static void
setUp(imageFixture *self, gconstpointer data)
{
    self->directory = vspTestDirectory();
    self->path = g_build_filename(self->directory, "image", NULL);
}

static void
tearDown(imageFixture *self, gconstpointer data)
{
    vspTestRemove(self->directory);
    g_free(self->directory);
    g_free(self->path);
}

/* Puts @value at @offset in the host's order. */
void
imagePoke(GByteArray *image, gsize offset, guint32 value)
{
    memcpy(image->data + offset, &value, sizeof(value));
}

GByteArray *
imageMake(const char *magic, const char *xml, const char *cookie, gsize padding, gsize payload)
{
    GByteArray *image = g_byte_array_new();
    guint8 zero[92] = { 0 };

    g_byte_array_append(image, zero, sizeof(zero));
    memcpy(image->data, magic, 16);
    g_byte_array_append(image, (const guint8 *)xml, strlen(xml) + 1);
    if (cookie)
        g_byte_array_append(image, (const guint8 *)cookie, strlen(cookie) + 1);
    for (gsize i = 0; i < padding; i++)
        g_byte_array_append(image, zero, 1);
    imagePoke(image, IMAGE_VERSION, 2);
    imagePoke(image, IMAGE_DATA_LEN, image->len - 92);
    imagePoke(image, IMAGE_WAS_RUNNING, 1);
    imagePoke(image, IMAGE_COOKIE_OFFSET, cookie ? strlen(xml) + 1 : 0);
    g_byte_array_append(image, (const guint8 *)IMAGE_PAYLOAD, MIN(payload, sizeof(IMAGE_PAYLOAD)));
    return image;
}

GByteArray *
imageMakeGood(void)
{
    return imageMake("LibvirtQemudSave", IMAGE_XML, IMAGE_COOKIE, 100, sizeof(IMAGE_PAYLOAD));
}

vspSaveImage *
imageOpenBytes(imageFixture *self, const void *bytes, gsize len, GError **error)
{
    g_autoptr(GError) writeError = NULL;

    /* Not durable: a test that writes hundreds of images need not wait for the disk. GLib then
     * leaves what is longer in an existing file. */
    g_unlink(self->path);
    g_file_set_contents_full(self->path, bytes, (gssize)len, G_FILE_SET_CONTENTS_NONE, 0600,
                             &writeError);
    g_assert_no_error(writeError);
    return vspSaveImageOpen(self->path, error);
}

vspSaveImage *
imageOpenGood(imageFixture *self, GByteArray *image)
{
    g_autoptr(GError) error = NULL;
    vspSaveImage *opened = imageOpenBytes(self, image->data, image->len, &error);

    g_assert_no_error(error);
    g_assert_nonnull(opened);
    return opened;
}

void
imageAssertRefused(imageFixture *self, const void *bytes, gsize len, int code)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(vspSaveImage) image = imageOpenBytes(self, bytes, len, &error);

    g_assert_null(image);
    g_assert_error(error, VSP_ERROR, code);
    /* Says of which file it speaks. */
    g_assert_nonnull(strstr(error->message, self->path));
}

guint
imageCountNotices(const vspSaveImage *image)
{
    return g_strv_length((char **)vspSaveImageGetNotices(image));
}

void
imageSwapNumbers(GByteArray *bytes)
{
    for (gsize offset = IMAGE_VERSION; offset <= IMAGE_COOKIE_OFFSET; offset += 4) {
        guint32 value;

        memcpy(&value, bytes->data + offset, sizeof(value));
        imagePoke(bytes, offset, GUINT32_SWAP_LE_BE(value));
    }
}

/* A seal, by the book and not by the library. */
void
imagePutSeal(GByteArray *image, guint32 flags, guint64 length, guint8 fill, guint8 version)
{
    guint8 *seal = image->data + 0x34;
    guint32 crc;

    memset(seal, 0, 40);
    memcpy(seal, "VSP", 3);
    seal[3] = version;
    for (guint i = 0; i < 4; i++)
        seal[4 + i] = (guint8)(flags >> (8 * i));
    for (guint i = 0; i < 8; i++)
        seal[8 + i] = (guint8)(length >> (8 * i));
    memset(seal + 16, fill, 16);
    crc = vspCrc32c(0, seal, 36);
    for (guint i = 0; i < 4; i++)
        seal[36 + i] = (guint8)(crc >> (8 * i));
}

void
imageAddTest(const char *path, void (*func)(imageFixture *, gconstpointer))
{
    g_test_add(path, imageFixture, NULL, setUp, func, tearDown);
}
