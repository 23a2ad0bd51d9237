/*
 * vspsaveimageedit.c: changes what stands in front of an image's payload
 *
 * An edit that is interrupted leaves the old image or the new one. Header and XML lie in several
 * sectors, and a disk writes one at a time: no order of writes over the image itself gives that,
 * because the XML has to begin at its fixed place and so the old one has to go first. Hence
 *
 *   the change lies within a sector        one write (the run state, above all)
 *   anything else                          a copy of the file is changed and renamed over it; where
 *                                          the file system shares data between files, that is no
 *                                          matter of the payload's size
 *   block devices, and on request          over the image itself, in this order: marked incomplete,
 *                                          changed, marked complete, each durable before the next.
 *                                          An interruption leaves an image that nobody will restore
 *                                          by a mixture of two XMLs.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vmspool/vsp-copy.h>

#include "vsperrorpriv.h"
#include "vspfd.h"
#include "vspio.h"
#include "vspreplacement.h"
#include "vspsaveimagepriv.h"

/* What every disk writes whole or not at all. */
#define SECTOR 512

#define MAGIC_SIZE 16

typedef struct {
    const char *path;
    vspSaveImage *image;
    int fd; /* of the old file, for reading */
    char *before;
    char *after; /* both: everything in front of the payload */
    gsize size;
    const char *method;
} vspSaveImageChange;

static void
changeClear(vspSaveImageChange *self)
{
    vspSaveImageFree(self->image);
    vspFdClose(&self->fd);
    g_free(self->before);
    g_free(self->after);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(vspSaveImageChange, changeClear)

/* The VM's state is that of one VM, of one size. */
static int
checkDomain(const vspSaveImage *image, const char *xml, gboolean force, GError **error)
{
    g_autoptr(vspDomainXml) now = vspDomainXmlParse(xml, strlen(xml), error);
    const vspDomainXml *old = image->domain;
    g_autofree char *oldText = NULL;
    g_autofree char *newText = NULL;

    if (!now) {
        g_prefix_error(error, _("can't use the domain XML: "));
        return -1;
    }
    if (force)
        return 0;
    if (g_strcmp0(old->name, now->name) != 0) {
        oldText = vspNameEscape(old->name ? old->name : "");
        newText = vspNameEscape(now->name ? now->name : "");
        vspSetError(error, VSP_ERROR_INVALID_ARGUMENT,
                    _("the new XML is of a domain '%s', and the VM's state is of '%s'"), newText,
                    oldText);
        return -1;
    }
    if (g_ascii_strcasecmp(old->uuid ? old->uuid : "", now->uuid ? now->uuid : "") != 0) {
        oldText = vspNameEscape(old->uuid ? old->uuid : "");
        newText = vspNameEscape(now->uuid ? now->uuid : "");
        vspSetError(error, VSP_ERROR_INVALID_ARGUMENT,
                    _("the new XML has the UUID '%s', and the VM's state is of '%s'"), newText,
                    oldText);
        return -1;
    }
    if (old->memory != now->memory) {
        vspSetError(error, VSP_ERROR_INVALID_ARGUMENT,
                    _("the new XML has %" PRIu64 " bytes of memory, and the VM's state is of a VM"
                      " with %" PRIu64),
                    now->memory, old->memory);
        return -1;
    }
    return 0;
}

/* The new text with its cookie right behind it, and zeros. */
static int
layOut(vspSaveImageChange *self, vspSaveImageHeader *header, const char *xml, GError **error)
{
    char *data = self->after + sizeof(*header);
    gsize room = self->size - sizeof(*header);
    gsize cookieSize = self->image->cookieSize;
    gsize xmlSize = strlen(xml) + 1;

    if (xmlSize > room || cookieSize > room - xmlSize) {
        vspSetError(error, VSP_ERROR_INVALID_ARGUMENT,
                    _("the new XML does not fit: it needs %zu bytes, and %s has %zu;"
                      " 'vmspool convert --xml-room' makes room"),
                    xmlSize + cookieSize, self->image->name, room);
        return -1;
    }
    memset(data, 0, room);
    memcpy(data, xml, xmlSize);
    if (cookieSize)
        memcpy(data + xmlSize, self->image->cookie, cookieSize);
    header->cookieOffset = cookieSize ? (guint32)xmlSize : 0;
    return 0;
}

static int
prepare(vspSaveImageChange *self, const char *xml, vspRunState state, GError **error)
{
    vspSaveImageHeader header = self->image->header;
    ssize_t n;

    self->size = (gsize)vspSaveImageGetPayloadOffset(self->image);
    self->before = g_malloc(self->size);
    n = vspPreadFull(self->fd, self->before, self->size, 0);
    if (n != (ssize_t)self->size) {
        vspSetErrno(error, n < 0 ? errno : ENODATA, _("can't read %s"), self->image->name);
        return -1;
    }
    self->after = g_memdup2(self->before, self->size);
    if (xml && strcmp(xml, self->image->xml) != 0 && layOut(self, &header, xml, error) < 0)
        return -1;
    if (state != VSP_RUN_STATE_SAME)
        header.wasRunning = state == VSP_RUN_STATE_RUNNING ? 1 : 0;
    if (self->image->swapped)
        vspSaveImageHeaderSwap(&header);
    memcpy(self->after, &header, sizeof(header));
    return 0;
}

/* The bytes from @first to @last differ; FALSE if none do. */
static gboolean
findChange(const vspSaveImageChange *self, gsize *first, gsize *last)
{
    gsize from = 0;
    gsize to = self->size;

    while (from < to && self->before[from] == self->after[from])
        from++;
    while (to > from && self->before[to - 1] == self->after[to - 1])
        to--;
    *first = from;
    *last = to - 1;
    return from < to;
}

/* --- over the image itself --- */

/* For writing, and still the file that was read. */
static int
openForWriting(const vspSaveImageChange *self, GError **error)
{
    g_auto(vspFd) fd = open(self->path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat was, is;

    if (fd < 0 || fstat(fd, &is) < 0 || fstat(self->fd, &was) < 0) {
        vspSetErrno(error, errno, _("cannot open '%s' for writing"), self->image->name);
        return -1;
    }
    if (was.st_dev != is.st_dev || was.st_ino != is.st_ino) {
        vspSetError(error, VSP_ERROR_BUSY, _("'%s' was changed by somebody else meanwhile"),
                    self->image->name);
        return -1;
    }
    return vspFdSteal(&fd);
}

/* Durable, so that what is written next is never on the disk before it. */
static int
writeStep(int fd, const char *bytes, gsize from, gsize to)
{
    if (vspPwriteFull(fd, bytes + from, to - from, (off_t)from) < 0)
        return -1;
    return fdatasync(fd);
}

static int
writeMarked(const vspSaveImageChange *self, int fd)
{
    if (writeStep(fd, VSP_SAVE_IMAGE_MAGIC_PARTIAL, 0, MAGIC_SIZE) < 0 ||
        writeStep(fd, self->after, MAGIC_SIZE, self->size) < 0)
        return -1;
    return writeStep(fd, self->after, 0, MAGIC_SIZE);
}

/* A write that failed has not changed what it did not reach. Quiet: the first failure is told. */
static gboolean
putBack(const vspSaveImageChange *self, int fd)
{
    return writeStep(fd, self->before, MAGIC_SIZE, self->size) == 0 &&
           writeStep(fd, self->before, 0, MAGIC_SIZE) == 0;
}

static int
changeInPlace(vspSaveImageChange *self, gsize first, gsize last, GError **error)
{
    g_auto(vspFd) fd = openForWriting(self, error);
    int rc;

    if (fd < 0)
        return -1;
    self->method = "in-place";
    if (first / SECTOR == last / SECTOR)
        rc = writeStep(fd, self->after, first, last + 1);
    else
        rc = writeMarked(self, fd);
    if (rc < 0) {
        int errnum = errno;

        if (putBack(self, fd))
            vspSetErrno(error, errnum, _("cannot write '%s'"), self->image->name);
        else
            vspSetErrno(error, errnum, _("cannot write '%s', nor put back what it had"),
                        self->image->name);
        return -1;
    }
    if (vspFdCloseChecked(&fd) < 0) {
        vspSetErrno(error, errno, _("cannot close '%s'"), self->image->name);
        return -1;
    }
    return 0;
}

/* --- a copy in its place --- */

/* All of the file into @out: shared with the old one, if the file system can do that. */
static int
copyFile(vspSaveImageChange *self,
         int out,
         vspProgressFunc progress,
         gpointer opaque,
         GCancellable *cancellable,
         GError **error)
{
    g_autoptr(vspFileWrapperOptions) options = vspFileWrapperOptionsNew();
    struct stat st;

    self->method = "clone";
    if (ioctl(out, FICLONE, self->fd) == 0)
        return 0;
    self->method = "copy";
    if (fstat(self->fd, &st) == 0 && (guint64)st.st_blocks * SECTOR < (guint64)st.st_size)
        vspFileWrapperOptionsSetFlags(options, VSP_FILE_WRAPPER_SPARSE);
    return vspCopy(self->fd, self->path, out, self->path, options, progress, opaque, cancellable,
                   NULL, error);
}

static int
changeCopy(vspSaveImageChange *self,
           vspProgressFunc progress,
           gpointer opaque,
           GCancellable *cancellable,
           GError **error)
{
    g_autoptr(vspReplacement) copy = NULL;

    if (self->image->blockDevice) {
        vspSetError(error, VSP_ERROR_INVALID_ARGUMENT,
                    _("%s is a block device, which can only be changed in place"),
                    self->image->name);
        return -1;
    }
    copy = vspReplacementNew(self->path, self->fd, error);
    if (!copy ||
        copyFile(self, vspReplacementGetFd(copy), progress, opaque, cancellable, error) < 0 ||
        vspReplacementWriteAt(copy, self->after, self->size, 0, error) < 0)
        return -1;
    if (g_cancellable_is_cancelled(cancellable)) {
        vspSetError(error, VSP_ERROR_ABORTED, _("cancelled: %s is as it was"), self->image->name);
        return -1;
    }
    return vspReplacementCommit(copy, error);
}

static GVariant *
makeReport(const vspSaveImageChange *self)
{
    vspSaveImageHeader header;
    GVariantBuilder builder;
    g_autofree char *name = g_utf8_make_valid(self->image->name, -1);

    memcpy(&header, self->after, sizeof(header));
    g_variant_builder_init(&builder, G_VARIANT_TYPE_VARDICT);
    g_variant_builder_add(&builder, "{sv}", "file", g_variant_new_string(name));
    g_variant_builder_add(&builder, "{sv}", "changed", g_variant_new_boolean(self->method != NULL));
    if (self->method)
        g_variant_builder_add(&builder, "{sv}", "method", g_variant_new_string(self->method));
    g_variant_builder_add(&builder, "{sv}", "xml-size",
                          g_variant_new_uint64(strlen(self->after + sizeof(header)) + 1));
    g_variant_builder_add(&builder, "{sv}", "room-size",
                          g_variant_new_uint64(self->size - sizeof(header)));
    g_variant_builder_add(&builder, "{sv}", "was-running",
                          g_variant_new_boolean(header.wasRunning != 0));
    return g_variant_ref_sink(g_variant_builder_end(&builder));
}

int
vspSaveImageEdit(const char *path,
                 const char *xml,
                 vspRunState state,
                 unsigned int flags,
                 vspProgressFunc progress,
                 gpointer opaque,
                 GCancellable *cancellable,
                 GVariant **report,
                 GError **error)
{
    g_auto(vspSaveImageChange) self = { .path = path, .fd = -1 };
    gsize first, last;

    g_return_val_if_fail(path != NULL, -1);
    g_return_val_if_fail(error == NULL || *error == NULL, -1);

    self.image = vspSaveImageOpenComplete(path, &self.fd, error);
    if (!self.image)
        return -1;
    if (xml && checkDomain(self.image, xml, (flags & VSP_SAVE_IMAGE_EDIT_FORCE) != 0, error) < 0)
        return -1;
    if (prepare(&self, xml, state, error) < 0)
        return -1;
    if (findChange(&self, &first, &last)) {
        int rc;

        if (first / SECTOR == last / SECTOR || (flags & VSP_SAVE_IMAGE_EDIT_IN_PLACE))
            rc = changeInPlace(&self, first, last, error);
        else
            rc = changeCopy(&self, progress, opaque, cancellable, error);
        if (rc < 0)
            return -1;
    }
    if (report)
        *report = makeReport(&self);
    return 0;
}
