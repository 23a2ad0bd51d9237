/*
 * vspsaveimageconvert.c: an image written anew
 *
 * The header says "partial" until the payload is durable, as in a save. A file that is replaced
 * stays what it is until the new one is whole.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vspcompression.h"
#include "vsperrorpriv.h"
#include "vspfd.h"
#include "vspio.h"
#include "vspreplacement.h"
#include "vspsaveimagepayload.h"
#include "vspstatus.h"
#include "vsptarget.h"

/* What is written: a target, or what takes the source's place. */
typedef struct {
    vspReplacement *replacement;
    vspTarget *target;
    int fd; /* the target's */
} vspConvertOutput;

static void
outputClear(vspConvertOutput *self)
{
    vspReplacementFree(self->replacement);
    vspTargetFree(self->target);
    vspFdClose(&self->fd);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(vspConvertOutput, outputClear)

static gboolean
isSame(int fd, const char *path)
{
    struct stat a, b;

    if (fstat(fd, &a) < 0 || stat(path, &b) < 0 || (a.st_mode & S_IFMT) != (b.st_mode & S_IFMT))
        return FALSE;
    if (S_ISBLK(a.st_mode))
        return a.st_rdev == b.st_rdev;
    return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static int
openOutput(vspConvertOutput *self,
           const vspSaveImage *image,
           int in,
           const char *path,
           gboolean overwrite,
           guint64 size,
           GError **error)
{
    guint64 room;

    if (isSame(in, path)) {
        if (image->blockDevice) {
            vspSetError(error, VSP_ERROR_INVALID_ARGUMENT,
                        _("%s is a block device, which can't be read and written at a time"),
                        image->name);
            return -1;
        }
        self->replacement = vspReplacementNew(path, in, error);
        return self->replacement ? vspReplacementGetFd(self->replacement) : -1;
    }
    self->target = vspTargetNew(path, overwrite, error);
    if (!self->target || vspTargetGetRoom(self->target, &room, error) < 0)
        return -1;
    if (size > room && vspTargetIsBlockDevice(self->target)) {
        vspSetError(error, VSP_ERROR_NO_SPACE,
                    _("'%s' has room for %" PRIu64 " bytes, and %" PRIu64 " are needed"),
                    vspTargetGetName(self->target), room, size);
        return -1;
    }
    self->fd = vspTargetOpen(self->target, error);
    return self->fd;
}

static int
writeAt(vspConvertOutput *self, const void *data, gsize len, GError **error)
{
    if (self->replacement)
        return vspReplacementWriteAt(self->replacement, data, len, 0, error);
    return vspTargetWriteAt(self->target, self->fd, data, len, 0, error);
}

static int
commit(vspConvertOutput *self, GError **error)
{
    const char *name;

    if (self->replacement)
        return vspReplacementCommit(self->replacement, error);
    name = vspTargetGetName(self->target);
    if (fsync(self->fd) < 0) {
        vspSetErrno(error, errno, _("cannot sync '%s'"), name);
        return -1;
    }
    if (vspFdCloseChecked(&self->fd) < 0) {
        vspSetErrno(error, errno, _("cannot close '%s'"), name);
        return -1;
    }
    return vspTargetCommit(self->target, error);
}

/* The payload is in place. */
static int
checkSize(int out, const char *name, guint64 size, GError **error)
{
    struct stat st;

    if (fstat(out, &st) < 0 || (S_ISREG(st.st_mode) && (guint64)st.st_size != size)) {
        vspSetError(error, VSP_ERROR_IO,
                    _("'%s' does not have the %" PRIu64 " bytes that were written"), name, size);
        return -1;
    }
    return 0;
}

static GVariant *
makeReport(const char *path,
           guint32 format,
           guint64 offset,
           guint64 stored,
           const guint8 *digest,
           GVariant *transfer)
{
    g_autofree char *name = vspNameEscape(path);
    g_autofree char *valid = g_utf8_make_valid(name, -1);
    g_autofree char *hex = vspDigestToText(digest);
    GVariantBuilder builder;

    g_variant_builder_init(&builder, G_VARIANT_TYPE_VARDICT);
    g_variant_builder_add(&builder, "{sv}", "file", g_variant_new_string(valid));
    g_variant_builder_add(&builder, "{sv}", "format",
                          g_variant_new_string(vspSaveImageFormatToString(format)));
    g_variant_builder_add(&builder, "{sv}", "payload-offset", g_variant_new_uint64(offset));
    g_variant_builder_add(&builder, "{sv}", "payload-size",
                          g_variant_new_uint64(stored));
    g_variant_builder_add(&builder, "{sv}", "payload-digest", g_variant_new_string(hex));
    g_variant_builder_add(&builder, "{sv}", "room-size",
                          g_variant_new_uint64(offset - VSP_SAVE_IMAGE_HEADER_SIZE));
    g_variant_builder_add(&builder, "{sv}", "transfer", transfer);
    return g_variant_ref_sink(g_variant_builder_end(&builder));
}

int
vspSaveImageConvert(const char *in,
                    const char *out,
                    const char *compression,
                    guint64 room,
                    gboolean overwrite,
                    const vspFileWrapperOptions *options,
                    vspProgressFunc progress,
                    gpointer opaque,
                    GCancellable *cancellable,
                    GVariant **report,
                    GError **error)
{
    const vspPayloadMove how = { options, progress, opaque, cancellable };
    g_auto(vspConvertOutput) output = { .fd = -1 };
    g_auto(vspFd) fd = -1;
    g_autoptr(vspSaveImage) image = NULL;
    g_autoptr(GBytes) block = NULL;
    g_autoptr(GVariant) transfer = NULL;
    guint8 digest[VSP_SAVE_IMAGE_DIGEST_SIZE];
    guint8 header[VSP_SAVE_IMAGE_HEADER_SIZE];
    vspPayloadEnd end;
    const vspCompression *wanted = NULL;
    gboolean recode = FALSE;
    guint32 format;
    guint64 size;
    gsize len;
    guint64 stored;
    int to, level, rc;

    g_return_val_if_fail(in != NULL && out != NULL, -1);
    g_return_val_if_fail(error == NULL || *error == NULL, -1);

    image = vspSaveImageOpenComplete(in, &fd, error);
    if (!image || vspSaveImagePayloadCheck(image, fd, &end, error) < 0)
        return -1;
    if (image->format == VSP_SAVE_IMAGE_FORMAT_SPARSE) {
        vspSetError(error, VSP_ERROR_IMAGE_UNSUPPORTED,
                    _("%s is of format sparse, which has to stay where it is in the file"),
                    image->name);
        return -1;
    }
    format = image->format;
    if (compression && g_str_equal(compression, "raw"))
        format = VSP_SAVE_IMAGE_FORMAT_RAW;
    else if (compression && vspCompressionParse(compression, &wanted, &level, error) < 0)
        return -1;
    else if (wanted)
        format = wanted->number;
    /* With a level that was asked for, the same format is another one. */
    recode = format != image->format || (wanted && strchr(compression, ':'));
    block = vspSaveImageBlockNewWithRoom(image->xml, image->cookie, vspSaveImageWasRunning(image),
                                         format, room, error);
    if (!block)
        return -1;
    len = g_bytes_get_size(block);
    if (!g_uint64_checked_add(&size, recode ? 0 : image->payloadLength, len))
        size = G_MAXUINT64;
    to = openOutput(&output, image, fd, out, overwrite, size, error);
    if (to < 0 || writeAt(&output, g_bytes_get_data(block, NULL), len, error) < 0)
        return -1;
    if (lseek(to, (off_t)len, SEEK_SET) < 0) {
        vspSetErrno(error, errno, _("cannot write '%s'"), image->name);
        return -1;
    }
    if (recode)
        rc = vspSaveImagePayloadRecode(image, fd, to, out, wanted ? compression : NULL, &how, digest,
                                       &transfer, error);
    else
        rc = vspSaveImagePayloadMove(image, fd, to, out, &how, digest, &transfer, error);
    if (rc < 0)
        return -1;
    if (!g_variant_lookup(transfer, "payload-bytes", "t", &stored))
        stored = image->payloadLength;
    if (checkSize(to, image->name, stored + len, error) < 0)
        return -1;
    vspSaveImageBlockComplete(block, stored, digest, header);
    if (writeAt(&output, header, sizeof(header), error) < 0 || commit(&output, error) < 0)
        return -1;
    if (report)
        *report = makeReport(out, format, len, stored, digest, transfer);
    return 0;
}
