/*
 * test-saveimage-edit.c: what an edit changes, and what it leaves
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <string.h>
#include <sys/stat.h>
#include <glib/gstdio.h>

#include <vmspool/vsp-error.h>
#include "imageutil.h"
#include "testutil.h"
#include "vspsaveimagepriv.h"

/* The good image's, and so much of a title that the change is in two sectors at least. */
static char *
longerXml(gsize more)
{
    g_autofree char *title = g_strnfill(more, 'x');

    return g_strdup_printf("<domain type='kvm'><name>guest</name>"
                           "<uuid>2EC0B2A6-5a0c-4a4f-9f9c-3d8a8a2f6b11</uuid>"
                           "<memory unit='KiB'>65536</memory><title>%s</title></domain>",
                           title);
}

static GByteArray *
makeRoomy(void)
{
    return imageMake("LibvirtQemudSave", IMAGE_XML, IMAGE_COOKIE, 5000, sizeof(IMAGE_PAYLOAD));
}

static int
edit(imageFixture *self, const char *xml, vspRunState state, unsigned int flags, GError **error)
{
    g_autoptr(GVariant) report = NULL;
    int rc = vspSaveImageEdit(self->path, xml, state, flags, NULL, NULL, NULL, &report, error);

    g_assert_true((rc == 0) == (report != NULL));
    return rc;
}

static GByteArray *
readBack(imageFixture *self)
{
    g_autofree char *bytes = NULL;
    gsize len;

    g_assert_true(g_file_get_contents(self->path, &bytes, &len, NULL));
    return g_byte_array_new_take((guint8 *)g_steal_pointer(&bytes), len);
}

static void
testReplace(imageFixture *self, gconstpointer data)
{
    unsigned int flags = GPOINTER_TO_UINT(data);

    for (int swapped = 0; swapped < 2; swapped++) {
        g_autoptr(GByteArray) bytes = makeRoomy();
        g_autofree char *xml = longerXml(2000);
        g_autoptr(GByteArray) after = NULL;
        g_autoptr(vspSaveImage) image = NULL;
        struct stat st;

        imagePutSeal(bytes, 1, sizeof(IMAGE_PAYLOAD), 7, 1);
        if (swapped)
            imageSwapNumbers(bytes);
        g_clear_pointer(&image, vspSaveImageFree);
        image = imageOpenGood(self, bytes);
        g_assert_cmpint(g_chmod(self->path, 0640), ==, 0);
        g_assert_cmpint(edit(self, xml, VSP_RUN_STATE_PAUSED, flags, NULL), ==, 0);

        g_clear_pointer(&image, vspSaveImageFree);
        after = readBack(self);
        image = vspSaveImageOpen(self->path, NULL);
        g_assert_nonnull(image);
        g_assert_true(vspSaveImageIsByteSwapped(image) == swapped);
        g_assert_cmpstr(vspSaveImageGetXml(image), ==, xml);
        g_assert_cmpstr(vspSaveImageGetCookie(image), ==, IMAGE_COOKIE);
        g_assert_false(vspSaveImageWasRunning(image));
        g_assert_cmpint(vspSaveImageGetSeal(image), ==, VSP_SAVE_IMAGE_SEAL_VALID);
        g_assert_cmpuint(imageCountNotices(image), ==, 0);
        /* Reserved words, seal and payload, byte for byte. */
        g_assert_cmpmem(after->data + 0x24, 56, bytes->data + 0x24, 56);
        g_assert_cmpuint(after->len, ==, bytes->len);
        g_assert_cmpmem(after->data + after->len - sizeof(IMAGE_PAYLOAD), sizeof(IMAGE_PAYLOAD),
                        IMAGE_PAYLOAD, sizeof(IMAGE_PAYLOAD));
        g_assert_cmpint(g_stat(self->path, &st), ==, 0);
        g_assert_cmpint(st.st_mode & 07777, ==, 0640);
        g_assert_cmpint(g_unlink(self->path), ==, 0);
    }
}

/* Only the number of the run state changes, in the image's byte order. */
static void
testRunState(imageFixture *self, gconstpointer data)
{
    for (int swapped = 0; swapped < 2; swapped++) {
        g_autoptr(GByteArray) bytes = makeRoomy();
        g_autoptr(GByteArray) expected = NULL;
        g_autoptr(GByteArray) after = NULL;
        g_autoptr(vspSaveImage) image = NULL;
        struct stat before, now;

        imagePoke(bytes, IMAGE_WAS_RUNNING, 0);
        expected = g_byte_array_append(g_byte_array_new(), bytes->data, bytes->len);
        imagePoke(expected, IMAGE_WAS_RUNNING, 1);
        if (swapped) {
            imageSwapNumbers(bytes);
            imageSwapNumbers(expected);
        }
        image = imageOpenGood(self, bytes);
        g_assert_cmpint(g_stat(self->path, &before), ==, 0);
        g_assert_cmpint(edit(self, NULL, VSP_RUN_STATE_RUNNING, 0, NULL), ==, 0);
        after = readBack(self);
        g_assert_cmpmem(after->data, after->len, expected->data, expected->len);
        g_assert_cmpint(g_stat(self->path, &now), ==, 0);
        g_assert_cmpuint(before.st_ino, ==, now.st_ino);
    }
}

/* The largest XML that fits, and one byte more. */
static void
testRoom(imageFixture *self, gconstpointer data)
{
    g_autoptr(GByteArray) bytes = makeRoomy();
    g_autoptr(vspSaveImage) image = imageOpenGood(self, bytes);
    gsize room = bytes->len - sizeof(IMAGE_PAYLOAD) - VSP_SAVE_IMAGE_HEADER_SIZE;
    g_autofree char *shortest = longerXml(0);
    gsize more = room - sizeof(IMAGE_COOKIE) - strlen(shortest) - 1;
    g_autofree char *fits = longerXml(more);
    g_autofree char *tooLong = longerXml(more + 1);
    g_autoptr(GByteArray) after = NULL;
    g_autoptr(GError) error = NULL;

    g_assert_cmpint(edit(self, tooLong, VSP_RUN_STATE_SAME, 0, &error), ==, -1);
    g_assert_error(error, VSP_ERROR, VSP_ERROR_INVALID_ARGUMENT);
    after = readBack(self);
    g_assert_cmpmem(after->data, after->len, bytes->data, bytes->len);
    g_assert_cmpint(edit(self, fits, VSP_RUN_STATE_SAME, 0, NULL), ==, 0);
    g_clear_pointer(&image, vspSaveImageFree);
    image = vspSaveImageOpen(self->path, NULL);
    g_assert_cmpstr(vspSaveImageGetXml(image), ==, fits);
    g_assert_cmpstr(vspSaveImageGetCookie(image), ==, IMAGE_COOKIE);
}

static void
testRefused(imageFixture *self, gconstpointer data)
{
    static const char *const others[] = {
        "<domain><name>guest</name></domain>",
        "<domain><name>other</name><uuid>2ec0b2a6-5a0c-4a4f-9f9c-3d8a8a2f6b11</uuid>"
        "<memory unit='MiB'>64</memory></domain>",
        "<domain><name>guest</name><uuid>2ec0b2a6-5a0c-4a4f-9f9c-3d8a8a2f6b12</uuid>"
        "<memory unit='MiB'>64</memory></domain>",
        "<domain><name>guest</name><uuid>2ec0b2a6-5a0c-4a4f-9f9c-3d8a8a2f6b11</uuid>"
        "<memory unit='MiB'>65</memory></domain>",
    };
    static const char *const never[] = { "", "<domain>", "<network/>",
                                         "<!DOCTYPE domain><domain/>" };
    g_autoptr(GByteArray) bytes = makeRoomy();
    G_GNUC_UNUSED g_autoptr(vspSaveImage) image = imageOpenGood(self, bytes);

    for (gsize i = 0; i < G_N_ELEMENTS(never); i++) {
        g_autoptr(GError) error = NULL;

        g_assert_cmpint(edit(self, never[i], VSP_RUN_STATE_SAME, VSP_SAVE_IMAGE_EDIT_FORCE, &error),
                        ==, -1);
        g_assert_error(error, VSP_ERROR, VSP_ERROR_INVALID_ARGUMENT);
    }
    for (gsize i = 0; i < G_N_ELEMENTS(others); i++) {
        g_autoptr(GError) error = NULL;

        g_assert_cmpint(edit(self, others[i], VSP_RUN_STATE_SAME, 0, &error), ==, -1);
        g_assert_error(error, VSP_ERROR, VSP_ERROR_INVALID_ARGUMENT);
    }
    {
        g_autoptr(GByteArray) after = readBack(self);

        g_assert_cmpmem(after->data, after->len, bytes->data, bytes->len);
    }
    g_assert_cmpint(edit(self, others[1], VSP_RUN_STATE_SAME, VSP_SAVE_IMAGE_EDIT_FORCE, NULL), ==,
                    0);
}

static void
testPartial(imageFixture *self, gconstpointer data)
{
    g_autoptr(GByteArray) bytes = imageMake("LibvirtQemudPart", IMAGE_XML, NULL, 5000, 8);
    G_GNUC_UNUSED g_autoptr(vspSaveImage) image = imageOpenGood(self, bytes);
    g_autoptr(GError) error = NULL;

    g_assert_cmpint(edit(self, NULL, VSP_RUN_STATE_PAUSED, 0, &error), ==, -1);
    g_assert_error(error, VSP_ERROR, VSP_ERROR_IMAGE_PARTIAL);
}

static void
testNothing(imageFixture *self, gconstpointer data)
{
    g_autoptr(GByteArray) bytes = makeRoomy();
    G_GNUC_UNUSED g_autoptr(vspSaveImage) image = imageOpenGood(self, bytes);
    struct stat before, now;

    g_assert_cmpint(g_stat(self->path, &before), ==, 0);
    g_assert_cmpint(edit(self, IMAGE_XML, VSP_RUN_STATE_RUNNING, 0, NULL), ==, 0);
    g_assert_cmpint(g_stat(self->path, &now), ==, 0);
    g_assert_cmpuint(before.st_ino, ==, now.st_ino);
    g_assert_cmpint(before.st_mtim.tv_nsec, ==, now.st_mtim.tv_nsec);
}

static void
testInPlace(imageFixture *self, gconstpointer data)
{
    testReplace(self, GUINT_TO_POINTER(VSP_SAVE_IMAGE_EDIT_IN_PLACE));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    imageAddTest("/saveimage-edit/replace", testReplace);
    imageAddTest("/saveimage-edit/in-place", testInPlace);
    imageAddTest("/saveimage-edit/run-state", testRunState);
    imageAddTest("/saveimage-edit/room", testRoom);
    imageAddTest("/saveimage-edit/refused", testRefused);
    imageAddTest("/saveimage-edit/partial", testPartial);
    imageAddTest("/saveimage-edit/nothing", testNothing);
    return g_test_run();
}
