/*
 * test-saveimage.c: images that open: what is read from them
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <glib/gstdio.h>

#include <vmspool/vsp-error.h>
#include "imageutil.h"
#include "testutil.h"
#include "vspsaveimagepriv.h"

static void
testGood(imageFixture *self, gconstpointer data)
{
    g_autoptr(GByteArray) bytes = imageMakeGood();
    g_autoptr(vspSaveImage) image = imageOpenGood(self, bytes);

    g_assert_true(vspSaveImageIsComplete(image));
    g_assert_cmpuint(vspSaveImageGetVersion(image), ==, 2);
    g_assert_false(vspSaveImageIsByteSwapped(image));
    g_assert_true(vspSaveImageWasRunning(image));
    g_assert_cmpuint(vspSaveImageGetFormat(image), ==, VSP_SAVE_IMAGE_FORMAT_RAW);
    g_assert_cmpstr(vspSaveImageGetXml(image), ==, IMAGE_XML);
    g_assert_cmpstr(vspSaveImageGetCookie(image), ==, IMAGE_COOKIE);
    g_assert_cmpuint(vspSaveImageGetPayloadOffset(image), ==, bytes->len - sizeof(IMAGE_PAYLOAD));
    g_assert_cmpuint(vspSaveImageGetPayloadLength(image), ==, sizeof(IMAGE_PAYLOAD));
    g_assert_cmpint(vspSaveImageGetSeal(image), ==, VSP_SAVE_IMAGE_SEAL_NONE);
    g_assert_null(vspSaveImageGetDigest(image));
    g_assert_true(vspSaveImageIsPayloadPlausible(image));
    g_assert_cmpstr(vspSaveImageGetDomainName(image), ==, "guest");
    g_assert_cmpstr(vspSaveImageGetDomainUuid(image), ==, "2ec0b2a6-5a0c-4a4f-9f9c-3d8a8a2f6b11");
    g_assert_cmpuint(vspSaveImageGetDomainMemory(image), ==, 64 * 1024 * 1024);
    g_assert_null(vspSaveImageGetRecordedCommand(image));
    g_assert_cmpuint(imageCountNotices(image), ==, 0);
}

/* Without the offset of a cookie, the XML ends at the first NUL and the rest is padding. */
static void
testWithoutCookie(imageFixture *self, gconstpointer data)
{
    g_autoptr(GByteArray) bytes = imageMake("LibvirtQemudSave", IMAGE_XML, NULL, 10, 8);
    g_autoptr(vspSaveImage) image = imageOpenGood(self, bytes);

    g_assert_cmpstr(vspSaveImageGetXml(image), ==, IMAGE_XML);
    g_assert_null(vspSaveImageGetCookie(image));
    g_assert_cmpuint(vspSaveImageGetPayloadLength(image), ==, 8);
}

/* An offset that leaves no room is what libvirt takes for no cookie. */
static void
testEmptyCookieArea(imageFixture *self, gconstpointer data)
{
    g_autoptr(GByteArray) bytes = imageMake("LibvirtQemudSave", IMAGE_XML, NULL, 0, 8);
    g_autoptr(vspSaveImage) image = NULL;

    imagePoke(bytes, IMAGE_COOKIE_OFFSET, strlen(IMAGE_XML) + 1);
    image = imageOpenGood(self, bytes);
    g_assert_null(vspSaveImageGetCookie(image));
}

static void
testPartial(imageFixture *self, gconstpointer data)
{
    static const gsize payloads[] = { sizeof(IMAGE_PAYLOAD), 1, 0 };

    for (gsize i = 0; i < G_N_ELEMENTS(payloads); i++) {
        g_autoptr(GByteArray) bytes =
            imageMake("LibvirtQemudPart", IMAGE_XML, IMAGE_COOKIE, 100, payloads[i]);
        g_autoptr(vspSaveImage) image = imageOpenGood(self, bytes);

        g_assert_false(vspSaveImageIsComplete(image));
        g_assert_cmpstr(vspSaveImageGetDomainName(image), ==, "guest");
        g_assert_cmpuint(vspSaveImageGetPayloadLength(image), ==, payloads[i]);
    }
}

static void
testByteOrder(imageFixture *self, gconstpointer data)
{
    g_autoptr(GByteArray) bytes = imageMakeGood();
    g_autoptr(vspSaveImage) image = NULL;
    g_autoptr(GVariant) report = NULL;
    const char *order = NULL;

    imagePoke(bytes, IMAGE_FORMAT, VSP_SAVE_IMAGE_FORMAT_ZSTD);
    imageSwapNumbers(bytes);
    image = imageOpenGood(self, bytes);
    g_assert_true(vspSaveImageIsByteSwapped(image));
    g_assert_cmpuint(vspSaveImageGetVersion(image), ==, 2);
    g_assert_true(vspSaveImageWasRunning(image));
    g_assert_cmpuint(vspSaveImageGetFormat(image), ==, VSP_SAVE_IMAGE_FORMAT_ZSTD);
    g_assert_cmpstr(vspSaveImageGetCookie(image), ==, IMAGE_COOKIE);
    g_assert_cmpuint(vspSaveImageGetPayloadLength(image), ==, sizeof(IMAGE_PAYLOAD));
    report = vspSaveImageGetReport(image);
    g_assert_true(g_variant_lookup(report, "byte-order", "&s", &order));
    g_assert_cmpstr(order, ==, G_BYTE_ORDER == G_LITTLE_ENDIAN ? "big" : "little");
}

static void
testVersions(imageFixture *self, gconstpointer data)
{
    for (guint32 version = 0; version <= 1; version++) {
        g_autoptr(GByteArray) bytes = imageMakeGood();
        g_autoptr(vspSaveImage) image = NULL;

        imagePoke(bytes, IMAGE_VERSION, version);
        imagePoke(bytes, IMAGE_FORMAT, VSP_SAVE_IMAGE_FORMAT_GZIP);
        image = imageOpenGood(self, bytes);
        g_assert_cmpuint(vspSaveImageGetVersion(image), ==, version);
        /* Such a reader decompresses nothing, whatever the number says. */
        g_assert_cmpuint(vspSaveImageGetFormat(image), ==, VSP_SAVE_IMAGE_FORMAT_RAW);
        g_assert_cmpuint(imageCountNotices(image), ==, 1);
    }
}

static void
testFormats(imageFixture *self, gconstpointer data)
{
    static const struct {
        guint32 format;
        const char *name;
        const char *magic;
        gsize len;
    } rows[] = {
        { 0, "raw", "QEVM", 4 },
        { 1, "gzip", "\037\213", 2 },
        { 2, "bzip2", "BZh", 3 },
        { 3, "xz", "\3757zXZ\0", 6 },
        { 4, "lzop", "\211LZO\0\r\n\032\n", 9 },
        { 5, "zstd", "\050\265\057\375", 4 },
        { 5, "zstd", "\132\052\115\030", 4 }, /* a frame to be skipped */
        { 6, "sparse", "QEVM", 4 },
    };

    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        for (gsize len = rows[i].len - 1; len <= rows[i].len; len++) {
            g_autoptr(GByteArray) bytes = imageMake("LibvirtQemudSave", IMAGE_XML, NULL, 0, 0);
            g_autoptr(vspSaveImage) image = NULL;

            imagePoke(bytes, IMAGE_FORMAT, rows[i].format);
            g_byte_array_append(bytes, (const guint8 *)rows[i].magic, len);
            image = imageOpenGood(self, bytes);
            g_assert_cmpuint(vspSaveImageGetFormat(image), ==, rows[i].format);
            g_assert_cmpstr(vspSaveImageFormatToString(rows[i].format), ==, rows[i].name);
            g_assert_true(vspSaveImageIsPayloadPlausible(image) == (len == rows[i].len));
            g_assert_cmpuint(imageCountNotices(image), ==, len == rows[i].len ? 0 : 1);
        }
    }
    g_assert_null(vspSaveImageFormatToString(7));
    g_assert_null(vspSaveImageFormatToString(G_MAXUINT32));
}

static void
testUnknownFormat(imageFixture *self, gconstpointer data)
{
    g_autoptr(GByteArray) bytes = imageMakeGood();
    g_autoptr(vspSaveImage) image = NULL;
    g_autoptr(GVariant) report = NULL;
    const char *format = NULL;
    guint32 number = 0;

    imagePoke(bytes, IMAGE_FORMAT, 99);
    image = imageOpenGood(self, bytes);
    g_assert_cmpuint(vspSaveImageGetFormat(image), ==, 99);
    g_assert_false(vspSaveImageIsPayloadPlausible(image));
    g_assert_cmpuint(imageCountNotices(image), ==, 1);
    report = vspSaveImageGetReport(image);
    g_assert_true(g_variant_lookup(report, "format", "&s", &format));
    g_assert_true(g_variant_lookup(report, "format-number", "u", &number));
    g_assert_cmpstr(format, ==, "unknown");
    g_assert_cmpuint(number, ==, 99);
}

static void
testOddities(imageFixture *self, gconstpointer data)
{
    g_autoptr(GByteArray) bytes = imageMakeGood();
    g_autoptr(vspSaveImage) image = NULL;

    imagePoke(bytes, IMAGE_WAS_RUNNING, 7);
    memset(bytes->data + 0x24, 1, 56);
    bytes->data[bytes->len - sizeof(IMAGE_PAYLOAD) - 1] = 1;
    memcpy(bytes->data + bytes->len - sizeof(IMAGE_PAYLOAD), "nope", 4);
    image = imageOpenGood(self, bytes);
    g_assert_true(vspSaveImageWasRunning(image));
    g_assert_cmpint(vspSaveImageGetSeal(image), ==, VSP_SAVE_IMAGE_SEAL_IGNORED);
    g_assert_false(vspSaveImageIsPayloadPlausible(image));
    /* Run state, reserved words, seal, padding, payload. */
    g_assert_cmpuint(imageCountNotices(image), ==, 5);
}

static void
testSeal(imageFixture *self, gconstpointer data)
{
    g_autoptr(GByteArray) bytes = imageMakeGood();
    g_autoptr(vspSaveImage) image = NULL;
    const guint8 *digest;

    /* The seal does not follow the order of the other numbers. */
    imagePutSeal(bytes, 1, sizeof(IMAGE_PAYLOAD), 0xa5, 1);
    imageSwapNumbers(bytes);
    image = imageOpenGood(self, bytes);
    g_assert_cmpint(vspSaveImageGetSeal(image), ==, VSP_SAVE_IMAGE_SEAL_VALID);
    g_assert_cmpuint(imageCountNotices(image), ==, 0);
    digest = vspSaveImageGetDigest(image);
    g_assert_nonnull(digest);
    for (gsize i = 0; i < VSP_SAVE_IMAGE_DIGEST_SIZE; i++)
        g_assert_cmphex(digest[i], ==, 0xa5);
}

static void
testSealWithoutDigest(imageFixture *self, gconstpointer data)
{
    g_autoptr(GByteArray) bytes = imageMakeGood();
    g_autoptr(vspSaveImage) image = NULL;

    imagePutSeal(bytes, 0, sizeof(IMAGE_PAYLOAD), 0, 1);
    image = imageOpenGood(self, bytes);
    g_assert_cmpint(vspSaveImageGetSeal(image), ==, VSP_SAVE_IMAGE_SEAL_VALID);
    g_assert_null(vspSaveImageGetDigest(image));
}

static void
testSealIgnored(imageFixture *self, gconstpointer data)
{
    for (int damage = 0; damage < 5; damage++) {
        g_autoptr(GByteArray) bytes = imageMakeGood();
        g_autoptr(vspSaveImage) image = NULL;

        imagePutSeal(bytes, damage == 1 ? 3 : 1, 5, 0xa5, damage == 2 ? 2 : 1);
        if (damage == 0)
            bytes->data[0x50] ^= 1;
        if (damage == 3)
            bytes->data[0x34] = 'X';
        if (damage == 4)
            memcpy(bytes->data, "LibvirtQemudPart", 16);
        image = imageOpenGood(self, bytes);
        g_assert_cmpint(vspSaveImageGetSeal(image), ==, VSP_SAVE_IMAGE_SEAL_IGNORED);
        g_assert_null(vspSaveImageGetDigest(image));
        g_assert_cmpuint(vspSaveImageGetPayloadLength(image), ==, sizeof(IMAGE_PAYLOAD));
        g_assert_cmpuint(imageCountNotices(image), ==, 1);
    }
}

static void
testReport(imageFixture *self, gconstpointer data)
{
    g_autoptr(GByteArray) bytes = imageMakeGood();
    g_autoptr(vspSaveImage) image = NULL;
    g_autoptr(GVariant) report = NULL;
    static const char *const parts[] = { "xml", "cookie", "padding", "payload" };
    guint64 offset = 0, size = 92;
    gboolean truth = FALSE;
    const char *text = NULL;
    const char *file = NULL;

    imagePutSeal(bytes, 1, sizeof(IMAGE_PAYLOAD), 0x0f, 1);
    image = imageOpenGood(self, bytes);
    report = vspSaveImageGetReport(image);
    g_assert_false(g_variant_is_floating(report));
    g_assert_true(g_variant_is_of_type(report, G_VARIANT_TYPE_VARDICT));

    /* The parts follow each other without a gap, and end where the file ends. */
    for (gsize i = 0; i < G_N_ELEMENTS(parts); i++) {
        g_autofree char *offsetKey = g_strconcat(parts[i], "-offset", NULL);
        g_autofree char *sizeKey = g_strconcat(parts[i], "-size", NULL);
        guint64 end = offset + size;

        g_assert_true(g_variant_lookup(report, offsetKey, "t", &offset));
        g_assert_true(g_variant_lookup(report, sizeKey, "t", &size));
        g_assert_cmpuint(offset, ==, end);
    }
    g_assert_cmpuint(offset + size, ==, bytes->len);

    g_assert_true(g_variant_lookup(report, "complete", "b", &truth) && truth);
    g_assert_true(g_variant_lookup(report, "seal", "&s", &text));
    g_assert_cmpstr(text, ==, "valid");
    g_assert_true(g_variant_lookup(report, "payload-digest", "&s", &text));
    g_assert_cmpstr(text, ==, "0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f");
    g_assert_true(g_variant_lookup(report, "domain-name", "&s", &text));
    g_assert_cmpstr(text, ==, "guest");
    g_assert_true(g_variant_lookup(report, "file", "&s", &file));
    g_assert_cmpstr(file, ==, self->path);
}

static void
testRecordedCommand(imageFixture *self, gconstpointer data)
{
    char *command[] = { (char *)"qemu", (char *)"\377", NULL };
    vspDomainXml domain = { .name = (char *)"x", .memory = 4096, .recordedCommand = command };
    g_autofree char *xml = vspDomainXmlFormat(&domain);
    g_autoptr(GByteArray) bytes = imageMake("LibvirtQemudSave", xml, NULL, 0, 8);
    g_autoptr(vspSaveImage) image = imageOpenGood(self, bytes);
    g_autoptr(GVariant) report = vspSaveImageGetReport(image);
    g_autofree const char **reported = NULL;

    g_assert_cmpuint(g_strv_length((char **)vspSaveImageGetRecordedCommand(image)), ==, 2);
    g_assert_cmpstr(vspSaveImageGetRecordedCommand(image)[1], ==, "\377");
    g_assert_true(g_variant_lookup(report, "recorded-command", "^a&s", &reported));
    g_assert_cmpstr(reported[0], ==, "qemu");
    g_assert_cmpstr(reported[1], ==, "\357\277\275");
}

static void
testOpenFd(imageFixture *self, gconstpointer data)
{
    g_autoptr(GByteArray) bytes = imageMakeGood();
    g_autoptr(GError) error = NULL;
    g_autoptr(vspSaveImage) image = NULL;
    g_autoptr(vspSaveImage) none = NULL;
    int ends[2];
    int fd;

    g_assert_true(g_file_set_contents(self->path, (char *)bytes->data, bytes->len, NULL));
    fd = g_open(self->path, O_RDONLY | O_CLOEXEC);
    g_assert_cmpint(lseek(fd, 17, SEEK_SET), ==, 17);
    image = vspSaveImageOpenFd(fd, "the image", &error);
    g_assert_no_error(error);
    g_assert_cmpint(lseek(fd, 0, SEEK_CUR), ==, 17);
    g_assert_true(g_close(fd, NULL));
    /* All is in memory. */
    g_assert_cmpstr(vspSaveImageGetXml(image), ==, IMAGE_XML);

    g_assert_cmpint(pipe2(ends, O_CLOEXEC), ==, 0);
    none = vspSaveImageOpenFd(ends[0], "a pipe", &error);
    g_assert_null(none);
    g_assert_error(error, VSP_ERROR, VSP_ERROR_IMAGE_FOREIGN);
    g_assert_nonnull(strstr(error->message, "a pipe"));
    g_clear_error(&error);
    g_assert_true(g_close(ends[0], NULL));
    g_assert_true(g_close(ends[1], NULL));

    fd = g_open(self->path, O_WRONLY | O_CLOEXEC);
    none = vspSaveImageOpenFd(fd, "x", &error);
    g_assert_null(none);
    g_assert_error(error, VSP_ERROR, VSP_ERROR_IO);
    g_clear_error(&error);
    g_assert_true(g_close(fd, NULL));

    none = vspSaveImageOpenFd(-1, "x", &error);
    g_assert_null(none);
    g_assert_error(error, VSP_ERROR, VSP_ERROR_IO);
}

int
main(int argc, char **argv)
{
    vspTestInit(&argc, &argv);
    imageAddTest("/saveimage/good", testGood);
    imageAddTest("/saveimage/without-cookie", testWithoutCookie);
    imageAddTest("/saveimage/empty-cookie-area", testEmptyCookieArea);
    imageAddTest("/saveimage/partial", testPartial);
    imageAddTest("/saveimage/byte-order", testByteOrder);
    imageAddTest("/saveimage/versions", testVersions);
    imageAddTest("/saveimage/formats", testFormats);
    imageAddTest("/saveimage/unknown-format", testUnknownFormat);
    imageAddTest("/saveimage/oddities", testOddities);
    imageAddTest("/saveimage/seal", testSeal);
    imageAddTest("/saveimage/seal-without-digest", testSealWithoutDigest);
    imageAddTest("/saveimage/seal-ignored", testSealIgnored);
    imageAddTest("/saveimage/report", testReport);
    imageAddTest("/saveimage/recorded-command", testRecordedCommand);
    imageAddTest("/saveimage/open-fd", testOpenFd);
    return vspTestRun();
}
