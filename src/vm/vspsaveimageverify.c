/*
 * vspsaveimageverify.c: whether all of an image is what it should be; and the mark, for one that is
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gi18n-lib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vsperrorpriv.h"
#include "vspfd.h"
#include "vspio.h"
#include "vspsaveimagepayload.h"
#include "vspstatus.h"

static GVariant *
makeReport(const vspSaveImage *image,
           const char *const *checked,
           const guint8 *digest,
           GVariant *transfer)
{
    const char *const *notices = vspSaveImageGetNotices(image);
    g_autofree char *name = g_utf8_make_valid(image->name, -1);
    g_autofree char *hex = vspDigestToText(digest);
    GVariantBuilder builder;

    g_variant_builder_init(&builder, G_VARIANT_TYPE_VARDICT);
    g_variant_builder_add(&builder, "{sv}", "file", g_variant_new_string(name));
    g_variant_builder_add(&builder, "{sv}", "checked", g_variant_new_strv(checked, -1));
    g_variant_builder_add(&builder, "{sv}", "payload-size",
                          g_variant_new_uint64(image->payloadLength));
    g_variant_builder_add(&builder, "{sv}", "payload-digest", g_variant_new_string(hex));
    g_variant_builder_add(&builder, "{sv}", "notices", g_variant_new_strv(notices, -1));
    g_variant_builder_add(&builder, "{sv}", "transfer", transfer);
    return g_variant_ref_sink(g_variant_builder_end(&builder));
}

/* What was looked at, as words. */
static void
listChecks(const vspSaveImage *image, vspPayloadEnd end, const char **checked)
{
    gsize n = 0;

    checked[n++] = "structure";
    checked[n++] = "start";
    if (end != VSP_PAYLOAD_END_UNKNOWN)
        checked[n++] = "end";
    if (image->seal == VSP_SAVE_IMAGE_SEAL_VALID)
        checked[n++] = "length";
    if (image->hasDigest)
        checked[n++] = "digest";
    if (vspSaveImagePayloadCompression(image))
        checked[n++] = "decompression";
}

int
vspSaveImageVerify(const char *path,
                   const vspFileWrapperOptions *options,
                   vspProgressFunc progress,
                   gpointer opaque,
                   GCancellable *cancellable,
                   GVariant **report,
                   GError **error)
{
    const vspPayloadMove how = { options, progress, opaque, cancellable };
    const char *checked[7] = { NULL };
    g_auto(vspFd) fd = -1;
    g_autoptr(vspSaveImage) image = NULL;
    g_autoptr(GVariant) transfer = NULL;
    guint8 digest[VSP_SAVE_IMAGE_DIGEST_SIZE];
    vspPayloadEnd end = VSP_PAYLOAD_END_UNKNOWN;

    g_return_val_if_fail(path != NULL, -1);
    g_return_val_if_fail(error == NULL || *error == NULL, -1);

    image = vspSaveImageOpenKeep(path, &fd, error);
    if (!image)
        return -1;
    if (!image->complete) {
        if (vspSaveImagePayloadFindEnd(image, fd, &end, NULL) == 0 && image->payloadPlausible &&
            end == VSP_PAYLOAD_END_DESCRIBED)
            vspSetError(error, VSP_ERROR_IMAGE_PARTIAL,
                        _("the save did not finish: %s is not marked complete, although the VM's "
                          "state in it is; 'vmspool seal' does that"),
                        image->name);
        else
            vspSetError(error, VSP_ERROR_IMAGE_PARTIAL,
                        _("the save did not finish: %s is incomplete"), image->name);
        return -1;
    }
    if (vspSaveImagePayloadCheck(image, fd, &end, error) < 0 ||
        vspSaveImagePayloadRead(image, fd, &how, &end, digest, &transfer, error) < 0)
        return -1;
    if (report) {
        listChecks(image, end, checked);
        *report = makeReport(image, checked, digest, transfer);
    }
    return 0;
}

/* --- the mark --- */

static int
checkSealable(const vspSaveImage *image, int fd, vspPayloadEnd *end, GError **error)
{

    if (image->complete) {
        vspSetError(error, VSP_ERROR_INVALID_ARGUMENT, _("%s is marked complete already"),
                    image->name);
        return -1;
    }
    if (image->format != VSP_SAVE_IMAGE_FORMAT_RAW || image->blockDevice) {
        vspSetError(
            error, VSP_ERROR_IMAGE_UNSUPPORTED,
            _("only of a raw VM's state in a file can be told whether it is complete; %s is "
              "another"),
            image->name);
        return -1;
    }
    if (vspSaveImagePayloadFindEnd(image, fd, end, error) < 0)
        return -1;
    if (!image->payloadPlausible || *end != VSP_PAYLOAD_END_DESCRIBED) {
        vspSetError(error, VSP_ERROR_IMAGE_PARTIAL,
                    _("the save did not finish: the VM's state in %s is not complete"),
                    image->name);
        return -1;
    }
    return 0;
}

/* Mark and seal are in the file's first 92 bytes, which lie in one sector: they are written
 * together or not at all. */
static int
writeMark(const vspSaveImage *image,
          const char *path,
          const struct stat *before,
          const guint8 *digest,
          GError **error)
{
    g_auto(vspFd) fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    g_autofree char *parent = g_path_get_dirname(path);
    g_auto(vspFd) folder = -1;
    vspSaveImageHeader header = image->header;
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0) {
        vspSetErrno(error, errno, _("cannot open '%s' for writing"), image->name);
        return -1;
    }
    if (st.st_dev != before->st_dev || st.st_ino != before->st_ino ||
        st.st_size != before->st_size || st.st_mtim.tv_sec != before->st_mtim.tv_sec ||
        st.st_mtim.tv_nsec != before->st_mtim.tv_nsec) {
        vspSetError(error, VSP_ERROR_BUSY, _("'%s' was changed by somebody else meanwhile"),
                    image->name);
        return -1;
    }
    memcpy(header.magic, VSP_SAVE_IMAGE_MAGIC_COMPLETE, sizeof(header.magic));
    vspSaveImageSealWrite(header.seal, image->payloadLength, digest);
    if (image->swapped)
        vspSaveImageHeaderSwap(&header);
    /* Nobody has synced the payload, if the save was interrupted. */
    if (fdatasync(fd) < 0 || vspPwriteFull(fd, &header, sizeof(header), 0) < 0 ||
        fdatasync(fd) < 0) {
        vspSetErrno(error, errno, _("cannot write the header of '%s'"), image->name);
        return -1;
    }
    if (vspFdCloseChecked(&fd) < 0) {
        vspSetErrno(error, errno, _("cannot close '%s'"), image->name);
        return -1;
    }
    folder = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0 && fsync(folder) < 0)
        g_debug("%s: cannot sync the folder: %s", image->name, vspErrnoText(errno));
    return 0;
}

int
vspSaveImageMarkComplete(const char *path,
                         const vspFileWrapperOptions *options,
                         vspProgressFunc progress,
                         gpointer opaque,
                         GCancellable *cancellable,
                         GVariant **report,
                         GError **error)
{
    const vspPayloadMove how = { options, progress, opaque, cancellable };
    static const char *const checked[] = { "structure", "start", "end", NULL };
    g_auto(vspFd) fd = -1;
    g_autoptr(vspSaveImage) image = NULL;
    g_autoptr(GVariant) transfer = NULL;
    guint8 digest[VSP_SAVE_IMAGE_DIGEST_SIZE];
    vspPayloadEnd end;
    struct stat before;

    g_return_val_if_fail(path != NULL, -1);
    g_return_val_if_fail(error == NULL || *error == NULL, -1);

    image = vspSaveImageOpenKeep(path, &fd, error);
    if (!image)
        return -1;
    if (fstat(fd, &before) < 0) {
        vspSetErrno(error, errno, _("can't stat %s"), image->name);
        return -1;
    }
    if (checkSealable(image, fd, &end, error) < 0 ||
        vspSaveImagePayloadRead(image, fd, &how, &end, digest, &transfer, error) < 0 ||
        writeMark(image, path, &before, digest, error) < 0)
        return -1;
    if (report)
        *report = makeReport(image, checked, digest, transfer);
    return 0;
}
