/*
 * vspsaveimageextract.c: one part of an image, elsewhere
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <glib/gi18n-lib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vsperrorpriv.h"
#include "vspfd.h"
#include "vspio.h"
#include "vspsaveimagepayload.h"

/* A text is small, and needs no helper. */
static int
writeText(const char *text, int out, const char *outName, GVariant **report, GError **error)
{
    g_autofree char *name = vspNameEscape(outName);
    GVariantBuilder builder;
    struct stat st;

    if (vspWriteFull(out, text, strlen(text)) < 0 || fstat(out, &st) < 0 ||
        (S_ISREG(st.st_mode) && fdatasync(out) < 0)) {
        vspSetErrno(error, errno, _("cannot write '%s'"), name);
        return -1;
    }
    if (!report)
        return 0;
    g_variant_builder_init(&builder, G_VARIANT_TYPE_VARDICT);
    g_variant_builder_add(&builder, "{sv}", "bytes-out", g_variant_new_uint64(strlen(text)));
    *report = g_variant_ref_sink(g_variant_builder_end(&builder));
    return 0;
}

int
vspSaveImageExtract(const char *path,
                    vspSaveImagePart part,
                    int out,
                    const char *outName,
                    const vspFileWrapperOptions *options,
                    vspProgressFunc progress,
                    gpointer opaque,
                    GCancellable *cancellable,
                    GVariant **report,
                    GError **error)
{
    const vspPayloadMove how = { options, progress, opaque, cancellable };
    g_auto(vspFd) fd = -1;
    g_autoptr(vspSaveImage) image = NULL;

    g_return_val_if_fail(path != NULL && outName != NULL, -1);
    g_return_val_if_fail(error == NULL || *error == NULL, -1);

    image = vspSaveImageOpenComplete(path, &fd, error);
    if (!image)
        return -1;
    if (part == VSP_SAVE_IMAGE_PART_PAYLOAD)
        return vspSaveImagePayloadMove(image, fd, out, outName, &how, NULL, report, error);
    if (part == VSP_SAVE_IMAGE_PART_XML)
        return writeText(image->xml, out, outName, report, error);
    if (!image->cookie) {
        vspSetError(error, VSP_ERROR_NOT_FOUND, _("%s has no cookie"), image->name);
        return -1;
    }
    return writeText(image->cookie, out, outName, report, error);
}
