/*
 * fuzz-saveimage.c: any bytes as a save image
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <sys/mman.h>
#include <unistd.h>

#include <vmspool/vmspool.h>
#include "fuzz.h"
#include "vspsaveimagepriv.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    g_autoptr(GError) error = NULL;
    g_autoptr(vspSaveImage) image = NULL;
    g_autoptr(GVariant) report = NULL;
    g_autofree char *json = NULL;

    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(write(fd, data, size), ==, (ssize_t)size);
    image = vspSaveImageOpenFd(fd, "fuzz", &error);
    g_assert_true(g_close(fd, NULL));
    g_assert_true((image == NULL) == (error != NULL));
    if (!image)
        return 0;

    /* What was let in must hold together. */
    g_assert_nonnull(vspSaveImageGetXml(image));
    g_assert_cmpuint(vspSaveImageGetPayloadOffset(image), <=, size);
    g_assert_cmpuint(vspSaveImageGetPayloadLength(image), ==,
                     size - vspSaveImageGetPayloadOffset(image));
    g_assert_cmpuint(vspSaveImageGetVersion(image), <=, 2);
    report = vspSaveImageGetReport(image);
    json = vspReportToJson(report);
    g_assert_true(g_utf8_validate(json, -1, NULL));
    return 0;
}
