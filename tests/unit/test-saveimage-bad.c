/*
 * test-saveimage-bad.c: images that are refused, each for its own reason
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <glib/gstdio.h>

#include <vmspool/vsp-error.h>
#include "imageutil.h"
#include "testutil.h"
#include "vspsaveimagepriv.h"

/* Whatever is missing or wrong behind the mark of a partial image, that it is partial is the cause.
 */
static void
testPartialCut(imageFixture *self, gconstpointer data)
{
    g_autoptr(GByteArray) bytes = imageMake("LibvirtQemudPart", IMAGE_XML, IMAGE_COOKIE, 100, 0);

    for (gsize len = 16; len < bytes->len; len++)
        imageAssertRefused(self, bytes->data, len, VSP_ERROR_IMAGE_PARTIAL);
    memset(bytes->data + 92, 0, bytes->len - 92);
    imageAssertRefused(self, bytes->data, bytes->len, VSP_ERROR_IMAGE_PARTIAL);
}

static void
testEmptyAndForeign(imageFixture *self, gconstpointer data)
{
    guint8 zero[200] = { 0 };

    imageAssertRefused(self, "", 0, VSP_ERROR_IMAGE_EMPTY);
    imageAssertRefused(self, "\n", 1, VSP_ERROR_IMAGE_FOREIGN);
    imageAssertRefused(self, "LibvirtQemudsave", 16, VSP_ERROR_IMAGE_FOREIGN);
    imageAssertRefused(self, "LibvirtX", 8, VSP_ERROR_IMAGE_FOREIGN);
    imageAssertRefused(self, zero, 92, VSP_ERROR_IMAGE_FOREIGN);
    imageAssertRefused(self, zero, sizeof(zero), VSP_ERROR_IMAGE_FOREIGN);
}

/* At every byte before the payload, and right in front of it. */
static void
testCut(imageFixture *self, gconstpointer data)
{
    g_autoptr(GByteArray) bytes = imageMakeGood();

    for (gsize len = 1; len <= bytes->len - sizeof(IMAGE_PAYLOAD); len++) {
        g_autofree char *place = g_strdup_printf("byte %zu", len);
        g_autoptr(GError) error = NULL;
        g_autoptr(vspSaveImage) image = imageOpenBytes(self, bytes->data, len, &error);

        g_assert_null(image);
        g_assert_error(error, VSP_ERROR, VSP_ERROR_IMAGE_CUT);
        g_assert_nonnull(strstr(error->message, place));
    }
}

static void
testNewerVersions(imageFixture *self, gconstpointer data)
{
    for (int swapped = 0; swapped <= 1; swapped++) {
        g_autoptr(GByteArray) bytes = imageMakeGood();
        g_autoptr(GError) error = NULL;
        g_autoptr(vspSaveImage) image = NULL;

        imagePoke(bytes, IMAGE_VERSION, 3);
        if (swapped)
            imageSwapNumbers(bytes);
        image = imageOpenBytes(self, bytes->data, bytes->len, &error);
        g_assert_null(image);
        g_assert_error(error, VSP_ERROR, VSP_ERROR_IMAGE_UNSUPPORTED);
        g_assert_nonnull(strstr(error->message, "version 3;"));
    }
}

/* Lengths that lie. None may be believed before it is compared with the file. */
static void
testDataLength(imageFixture *self, gconstpointer data)
{
    static const struct {
        guint32 length;
        int code;
    } rows[] = {
        { 0, VSP_ERROR_IMAGE_CORRUPT },
        { 1, VSP_ERROR_IMAGE_CORRUPT }, /* no end of the XML in it */
        { 10000, VSP_ERROR_IMAGE_CUT },
        { VSP_SAVE_IMAGE_DATA_MAX, VSP_ERROR_IMAGE_CUT },
        { VSP_SAVE_IMAGE_DATA_MAX + 1, VSP_ERROR_IMAGE_CORRUPT },
        { 0x7fffffff, VSP_ERROR_IMAGE_CORRUPT },
        { 0xffffffff, VSP_ERROR_IMAGE_CORRUPT },
    };

    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GByteArray) bytes = imageMake("LibvirtQemudSave", IMAGE_XML, NULL, 0, 8);

        imagePoke(bytes, IMAGE_DATA_LEN, rows[i].length);
        imageAssertRefused(self, bytes->data, bytes->len, rows[i].code);
    }
}

/* The file really is that long: more than the limit is refused all the same. */
static void
testDataLimit(imageFixture *self, gconstpointer data)
{
    g_autoptr(GByteArray) bytes = imageMake("LibvirtQemudSave", IMAGE_XML, NULL, 0, 8);
    g_autoptr(GError) error = NULL;
    g_autoptr(vspSaveImage) image = NULL;

    imagePoke(bytes, IMAGE_DATA_LEN, 0xffffffff);
    g_assert_true(g_file_set_contents(self->path, (char *)bytes->data, bytes->len, NULL));
    g_assert_cmpint(truncate(self->path, 5LL << 30), ==, 0);
    image = vspSaveImageOpen(self->path, &error);
    g_assert_null(image);
    g_assert_error(error, VSP_ERROR, VSP_ERROR_IMAGE_UNSUPPORTED);
    g_clear_error(&error);

    imagePoke(bytes, IMAGE_DATA_LEN, VSP_SAVE_IMAGE_DATA_MAX);
    g_assert_true(g_file_set_contents(self->path, (char *)bytes->data, bytes->len, NULL));
    g_assert_cmpint(truncate(self->path, 5LL << 30), ==, 0);
    image = vspSaveImageOpen(self->path, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(vspSaveImageGetPayloadLength(image), ==,
                     (5ULL << 30) - VSP_SAVE_IMAGE_DATA_MAX - 92);
}

static void
testCookieOffset(imageFixture *self, gconstpointer data)
{
    gsize dataLen = strlen(IMAGE_XML) + 1 + strlen(IMAGE_COOKIE) + 1;
    const guint32 offsets[] = { 1, 2, 20, dataLen + 1, 0x7fffffff, 0xffffffff };

    for (gsize i = 0; i < G_N_ELEMENTS(offsets); i++) {
        g_autoptr(GByteArray) bytes = imageMake("LibvirtQemudSave", IMAGE_XML, IMAGE_COOKIE, 0, 8);

        imagePoke(bytes, IMAGE_COOKIE_OFFSET, offsets[i]);
        imageAssertRefused(self, bytes->data, bytes->len, VSP_ERROR_IMAGE_CORRUPT);
    }
}

static void
testNoEnd(imageFixture *self, gconstpointer data)
{
    g_autoptr(GByteArray) bytes = imageMake("LibvirtQemudSave", IMAGE_XML, IMAGE_COOKIE, 0, 0);

    /* The cookie's last byte is no NUL. */
    bytes->data[bytes->len - 1] = 'x';
    g_byte_array_append(bytes, (const guint8 *)"QEVM", 5);
    imageAssertRefused(self, bytes->data, bytes->len, VSP_ERROR_IMAGE_CORRUPT);
}

static void
testHostileXml(imageFixture *self, gconstpointer data)
{
    static const char *const texts[] = {
        "",
        "not XML",
        "<network/>",
        "<!DOCTYPE d [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><domain><name>&x;</name></domain>",
        "<domain><name>&x;</name></domain>",
        "<domain>\377</domain>",
    };

    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GByteArray) bytes = imageMake("LibvirtQemudSave", texts[i], NULL, 0, 8);

        imageAssertRefused(self, bytes->data, bytes->len, VSP_ERROR_IMAGE_CORRUPT);
    }
}

static void
testSealDisagrees(imageFixture *self, gconstpointer data)
{
    static const struct {
        guint64 length;
        int code;
    } rows[] = {
        { sizeof(IMAGE_PAYLOAD) + 1, VSP_ERROR_IMAGE_CUT },
        { G_MAXUINT64, VSP_ERROR_IMAGE_CUT },
        { sizeof(IMAGE_PAYLOAD) - 1, VSP_ERROR_IMAGE_CORRUPT },
        { 0, VSP_ERROR_IMAGE_CORRUPT },
    };

    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GByteArray) bytes = imageMakeGood();

        imagePutSeal(bytes, 0, rows[i].length, 0, 1);
        imageAssertRefused(self, bytes->data, bytes->len, rows[i].code);
    }
}

static void
assertPathRefused(const char *path, int code)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(vspSaveImage) image = vspSaveImageOpen(path, &error);

    g_assert_null(image);
    g_assert_error(error, VSP_ERROR, code);
}

/* None of these may block, and none may be read. */
static void
testPaths(imageFixture *self, gconstpointer data)
{
    g_autofree char *link = g_build_filename(self->directory, "link", NULL);
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd;

    assertPathRefused(self->path, VSP_ERROR_NOT_FOUND);
    assertPathRefused("", VSP_ERROR_NOT_FOUND);
    assertPathRefused("/dev/null/x", VSP_ERROR_NOT_FOUND);
    assertPathRefused(self->directory, VSP_ERROR_IMAGE_FOREIGN);
    assertPathRefused("/dev/null", VSP_ERROR_IMAGE_FOREIGN);
    assertPathRefused("/dev/zero", VSP_ERROR_IMAGE_FOREIGN);
    assertPathRefused("/proc/self/mem", VSP_ERROR_IMAGE_EMPTY);

    g_assert_cmpint(mkfifo(self->path, 0600), ==, 0);
    assertPathRefused(self->path, VSP_ERROR_IMAGE_FOREIGN);
    g_assert_cmpint(symlink("image", link), ==, 0);
    assertPathRefused(link, VSP_ERROR_IMAGE_FOREIGN);
    g_unlink(self->path);
    assertPathRefused(link, VSP_ERROR_NOT_FOUND);

    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    g_strlcpy(address.sun_path, self->path, sizeof(address.sun_path));
    g_assert_cmpint(bind(fd, (struct sockaddr *)&address, sizeof(address)), ==, 0);
    assertPathRefused(self->path, VSP_ERROR_IMAGE_FOREIGN);
    g_assert_true(g_close(fd, NULL));
}

/* A name from somewhere else must not reach the terminal as it is. */
static void
testHostileName(imageFixture *self, gconstpointer data)
{
    g_autofree char *path = g_build_filename(self->directory, "\033[2Jx\n\377", NULL);
    g_autoptr(GError) error = NULL;
    g_autoptr(vspSaveImage) image = vspSaveImageOpen(path, &error);

    g_assert_null(image);
    g_assert_null(strchr(error->message, '\033'));
    g_assert_null(strchr(error->message, '\n'));
    g_assert_true(g_utf8_validate(error->message, -1, NULL));
}

int
main(int argc, char **argv)
{
    vspTestInit(&argc, &argv);
    imageAddTest("/saveimage-bad/partial-cut", testPartialCut);
    imageAddTest("/saveimage-bad/empty-and-foreign", testEmptyAndForeign);
    imageAddTest("/saveimage-bad/cut", testCut);
    imageAddTest("/saveimage-bad/newer-versions", testNewerVersions);
    imageAddTest("/saveimage-bad/data-length", testDataLength);
    imageAddTest("/saveimage-bad/data-limit", testDataLimit);
    imageAddTest("/saveimage-bad/cookie-offset", testCookieOffset);
    imageAddTest("/saveimage-bad/no-end", testNoEnd);
    imageAddTest("/saveimage-bad/hostile-xml", testHostileXml);
    imageAddTest("/saveimage-bad/seal-disagrees", testSealDisagrees);
    imageAddTest("/saveimage-bad/paths", testPaths);
    imageAddTest("/saveimage-bad/hostile-name", testHostileName);
    return vspTestRun();
}
