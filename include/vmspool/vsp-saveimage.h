/*
 * vsp-saveimage.h: libvirt's QEMU save image
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_SAVEIMAGE_H
#define VSP_SAVEIMAGE_H

#include <gio/gio.h>
#include <vmspool/vsp-filewrapper.h>
#include <vmspool/vsp-macros.h>
#include <vmspool/vsp-report.h>

VSP_BEGIN_DECLS

/** vspSaveImageFormat: how the payload is stored. On-disk values. Since: 0.1 */
typedef enum {
    VSP_SAVE_IMAGE_FORMAT_RAW = 0,
    VSP_SAVE_IMAGE_FORMAT_GZIP = 1,
    VSP_SAVE_IMAGE_FORMAT_BZIP2 = 2,
    VSP_SAVE_IMAGE_FORMAT_XZ = 3,
    VSP_SAVE_IMAGE_FORMAT_LZOP = 4,
    VSP_SAVE_IMAGE_FORMAT_ZSTD = 5,
    VSP_SAVE_IMAGE_FORMAT_SPARSE = 6,
} vspSaveImageFormat;

/** vspSaveImageSeal: what the seal in the header's reserved words says. Since: 0.1 */
typedef enum {
    VSP_SAVE_IMAGE_SEAL_NONE = 0,    /* all zero: somebody else's image */
    VSP_SAVE_IMAGE_SEAL_VALID = 1,   /* ours, and in order */
    VSP_SAVE_IMAGE_SEAL_IGNORED = 2, /* damaged, foreign, or of an unknown version */
} vspSaveImageSeal;

/**
 * vspRunState:
 * @VSP_RUN_STATE_SAME: as it was when saved
 * @VSP_RUN_STATE_RUNNING: run
 * @VSP_RUN_STATE_PAUSED: stay paused
 *
 * The state of the VM after a restore.
 *
 * Since: 0.1
 */
typedef enum {
    VSP_RUN_STATE_SAME = 0,
    VSP_RUN_STATE_RUNNING = 1,
    VSP_RUN_STATE_PAUSED = 2,
} vspRunState;

typedef struct _vspSaveImage vspSaveImage;

/**
 * vspSaveImageOpen:
 * @path: a regular file or block device; anything else is refused without blocking
 * @error: return location
 *
 * Reads and checks the header and the XML; never the payload. Nothing is written.
 *
 * A partial image opens: ask vspSaveImageIsComplete().
 *
 * Returns: (transfer full): NULL on failure
 *
 * Errors: %VSP_ERROR_NOT_FOUND, %VSP_ERROR_ACCESS, %VSP_ERROR_IO, %VSP_ERROR_IMAGE_EMPTY,
 *   %VSP_ERROR_IMAGE_FOREIGN, %VSP_ERROR_IMAGE_CUT, %VSP_ERROR_IMAGE_CORRUPT,
 *   %VSP_ERROR_IMAGE_UNSUPPORTED
 *
 * Since: 0.1
 */
vspSaveImage *vspSaveImageOpen(const char *path, GError **error);

/**
 * vspSaveImageOpenFd:
 * @fd: open for reading, without O_DIRECT, a regular file or block device; borrowed, not used after
 *   the call, and its position is not changed
 * @name: what error messages call it
 *
 * Since: 0.1
 */
vspSaveImage *vspSaveImageOpenFd(int fd, const char *name, GError **error);

/** vspSaveImageFree: @image: (nullable). Since: 0.1 */
void vspSaveImageFree(vspSaveImage *image);

/** vspSaveImageIsComplete: whether the save that wrote it finished. Since: 0.1 */
gboolean vspSaveImageIsComplete(const vspSaveImage *image);

/** vspSaveImageGetVersion: the header's version, 0 to 2. Since: 0.1 */
guint32 vspSaveImageGetVersion(const vspSaveImage *image);

/** vspSaveImageIsByteSwapped: whether its byte order is not this host's. Since: 0.1 */
gboolean vspSaveImageIsByteSwapped(const vspSaveImage *image);

/** vspSaveImageWasRunning: whether the VM is to run after a restore. Since: 0.1 */
gboolean vspSaveImageWasRunning(const vspSaveImage *image);

/**
 * vspSaveImageGetFormat:
 *
 * Returns: the number found, which may be none of #vspSaveImageFormat; for version 0 or 1, which
 *   knows no compression whatever the number, %VSP_SAVE_IMAGE_FORMAT_RAW
 *
 * Since: 0.1
 */
guint32 vspSaveImageGetFormat(const vspSaveImage *image);

/** vspSaveImageGetXml: (transfer none): the domain XML, NUL-terminated, exactly as stored. Since: 0.1 */
const char *vspSaveImageGetXml(const vspSaveImage *image);

/**
 * vspSaveImageGetPublicXml:
 * @hidden: (out) (optional): how many secrets were left out
 *
 * Returns: (transfer full): the domain XML without passwords: those of graphics devices, and those
 *   in recorded QEMU arguments; every other byte as stored
 *
 * Since: 0.1
 */
char *vspSaveImageGetPublicXml(const vspSaveImage *image, guint *hidden);

/** vspSaveImageGetCookie: (transfer none) (nullable): the cookie's XML. Since: 0.1 */
const char *vspSaveImageGetCookie(const vspSaveImage *image);

/** vspSaveImageGetPayloadOffset: in bytes from the start of the file. Since: 0.1 */
guint64 vspSaveImageGetPayloadOffset(const vspSaveImage *image);

/**
 * vspSaveImageGetPayloadLength:
 *
 * Returns: bytes as stored: by the seal if there is a valid one, else what the file has
 *
 * Since: 0.1
 */
guint64 vspSaveImageGetPayloadLength(const vspSaveImage *image);

/** vspSaveImageGetSeal: what the seal says. Since: 0.1 */
vspSaveImageSeal vspSaveImageGetSeal(const vspSaveImage *image);

/** vspSaveImageGetDomainName: (transfer none) (nullable): from the XML. Since: 0.1 */
const char *vspSaveImageGetDomainName(const vspSaveImage *image);

/** vspSaveImageGetDomainUuid: (transfer none) (nullable): from the XML. Since: 0.1 */
const char *vspSaveImageGetDomainUuid(const vspSaveImage *image);

/** vspSaveImageGetDomainMemory: bytes, from the XML; 0 if it does not say. Since: 0.1 */
guint64 vspSaveImageGetDomainMemory(const vspSaveImage *image);

/**
 * vspSaveImageGetRecordedCommand:
 *
 * The command line of the QEMU that was saved, if the image records it. Untrusted: never run it
 * without asking the user by name.
 *
 * Returns: (transfer none) (nullable): NULL-terminated
 *
 * Since: 0.1
 */
const char *const *vspSaveImageGetRecordedCommand(const vspSaveImage *image);

/**
 * vspSaveImageGetReport:
 *
 * Returns: (transfer full): all of the above and every size and offset, `a{sv}`, not floating;
 *   the keys are listed in vmspool-info(1)
 *
 * Since: 0.1
 */
GVariant *vspSaveImageGetReport(const vspSaveImage *image);

/** vspSaveImageFormatToString: "raw", "gzip", ...; NULL for a number without a name. Since: 0.1 */
const char *vspSaveImageFormatToString(guint32 format);

/**
 * vspSaveImageEditFlags:
 * @VSP_SAVE_IMAGE_EDIT_FORCE: take an XML that is of another name, UUID or memory size
 * @VSP_SAVE_IMAGE_EDIT_IN_PLACE: write over the image instead of a copy of it
 *
 * Since: 0.1
 */
typedef enum {
    VSP_SAVE_IMAGE_EDIT_FORCE = (1 << 0),
    VSP_SAVE_IMAGE_EDIT_IN_PLACE = (1 << 1),
} vspSaveImageEditFlags;

/**
 * vspSaveImageEdit:
 * @path: the image
 * @xml: (nullable): the new domain XML, stored byte for byte; NULL leaves the old one
 * @state: what a restore is to do
 * @flags: #vspSaveImageEditFlags
 * @progress: (nullable): called from the calling thread, while a copy is made
 * @opaque: for @progress
 * @cancellable: (nullable): cancel from any thread: the image is as it was
 * @report: (out) (optional) (transfer full): what was done; the keys are in vmspool-xml(1)
 * @error: return location
 *
 * Changes what stands in front of the VM's state. That state, its offset, the byte order and the
 * seal stay. The image is changed durably or not at all, even if the process is killed or the host
 * goes down: a change within one sector is one write, for anything else a changed copy (that shares
 * the VM's state with the original, if the file system can do that) is renamed over the image. With
 * %VSP_SAVE_IMAGE_EDIT_IN_PLACE there is no copy, and an image whose edit is interrupted is marked
 * incomplete.
 *
 * Returns: 0, or -1 with @error set
 *
 * Errors: %VSP_ERROR_INVALID_ARGUMENT: @xml is not a domain's, is of another domain, or does not fit;
 *   those of vspSaveImageOpen(), %VSP_ERROR_IMAGE_PARTIAL, and those of writing a file
 *
 * Since: 0.1
 */
int vspSaveImageEdit(const char *path,
                     const char *xml,
                     vspRunState state,
                     unsigned int flags,
                     vspProgressFunc progress,
                     gpointer opaque,
                     GCancellable *cancellable,
                     GVariant **report,
                     GError **error);

/** vspSaveImagePart: what can be taken out of an image. Since: 0.1 */
typedef enum {
    VSP_SAVE_IMAGE_PART_PAYLOAD = 0, /* the VM's state, as stored */
    VSP_SAVE_IMAGE_PART_XML = 1,
    VSP_SAVE_IMAGE_PART_COOKIE = 2,
} vspSaveImagePart;

/**
 * vspSaveImageExtract:
 * @path: the image, which must be complete
 * @part: which part of it; a text comes without its NUL
 * @out: written to, from where it stands; borrowed
 * @outName: what messages call it
 * @options: (nullable): how the payload moves
 * @progress: (nullable): called from the calling thread
 * @opaque: for @progress
 * @cancellable: (nullable): cancel from any thread
 * @report: (out) (optional) (transfer full): statistics; of a text only "bytes-out"
 * @error: return location
 *
 * Copies a part of an image elsewhere. If @out is a file, success means that it is durable. A payload
 * that is not what the seal's digest says is told after it was written, as
 * %VSP_ERROR_IMAGE_CORRUPT.
 *
 * Returns: 0, or -1 with @error set; %VSP_ERROR_NOT_FOUND if there is no cookie
 *
 * Since: 0.1
 */
int vspSaveImageExtract(const char *path,
                        vspSaveImagePart part,
                        int out,
                        const char *outName,
                        const vspFileWrapperOptions *options,
                        vspProgressFunc progress,
                        gpointer opaque,
                        GCancellable *cancellable,
                        GVariant **report,
                        GError **error);

/**
 * vspSaveImageVerify:
 * @path: the image
 * @options: (nullable): how the payload is read
 * @progress: (nullable): called from the calling thread
 * @opaque: for @progress
 * @cancellable: (nullable): cancel from any thread
 * @report: (out) (optional) (transfer full): what was found; the keys are in vmspool-verify(1)
 * @error: return location
 *
 * Reads all of an image and compares it with what it says of itself: header and XML, how the payload
 * begins and ends, its length and digest by the seal.
 *
 * Returns: 0, or -1 with @error set
 *
 * Errors: those of vspSaveImageOpen(), %VSP_ERROR_IMAGE_PARTIAL, %VSP_ERROR_IMAGE_CUT,
 *   %VSP_ERROR_IMAGE_CORRUPT, %VSP_ERROR_IMAGE_UNSUPPORTED for a format that is not known
 *
 * Since: 0.1
 */
int vspSaveImageVerify(const char *path,
                       const vspFileWrapperOptions *options,
                       vspProgressFunc progress,
                       gpointer opaque,
                       GCancellable *cancellable,
                       GVariant **report,
                       GError **error);

/**
 * vspSaveImageMarkComplete:
 * @path: an image that lacks nothing but the mark of a complete one
 * @options: (nullable): how the payload is read
 * @progress: (nullable): called from the calling thread
 * @opaque: for @progress
 * @cancellable: (nullable): cancel from any thread
 * @report: (out) (optional) (transfer full): as that of vspSaveImageVerify()
 * @error: return location
 *
 * For a save that was interrupted between the last byte and the mark. The payload has to be raw, and
 * to begin and end as QEMU's do, with the description that QEMU puts last. It is read, synced, and
 * then the image is marked complete and sealed, by one write.
 *
 * Returns: 0, or -1 with @error set
 *
 * Errors: %VSP_ERROR_INVALID_ARGUMENT: it is marked already; %VSP_ERROR_IMAGE_PARTIAL: the payload is
 *   not complete; %VSP_ERROR_IMAGE_UNSUPPORTED: that can't be told
 *
 * Since: 0.1
 */
int vspSaveImageMarkComplete(const char *path,
                             const vspFileWrapperOptions *options,
                             vspProgressFunc progress,
                             gpointer opaque,
                             GCancellable *cancellable,
                             GVariant **report,
                             GError **error);

/**
 * vspSaveImageConvert:
 * @in: the image, which must be complete; it is only read
 * @out: the file or block device to write; may be the same file as @in, which is then replaced
 * @compression: (nullable): as for vspFileWrapperOptionsSetCompression(), or "raw"; NULL leaves the
 *   format and the stored bytes
 * @room: bytes to leave behind XML and cookie for later edits, 64 KiB is usual
 * @overwrite: replace a file that holds data
 * @options: (nullable): how the bytes move
 * @progress: (nullable): called from the calling thread
 * @opaque: for @progress
 * @cancellable: (nullable): cancel from any thread
 * @report: (out) (optional) (transfer full): what was written; the keys are in vmspool-convert(1)
 * @error: return location
 *
 * Writes an image anew, as vspVmSave() would have: version 2 in this host's byte order, the payload at
 * a multiple of 4096, sealed with a digest. The payload is checked as by vspSaveImageVerify() on the
 * way. A new file is 0600; one that replaces @in keeps its owner and mode. A file that holds data has
 * not changed until all of the new one is durable.
 *
 * Returns: 0, or -1 with @error set
 *
 * Errors: those of vspSaveImageVerify() and of writing a file; %VSP_ERROR_IMAGE_UNSUPPORTED for the
 *   format sparse, which has offsets of the file in it
 *
 * Since: 0.1
 */
int vspSaveImageConvert(const char *in,
                        const char *out,
                        const char *compression,
                        guint64 room,
                        gboolean overwrite,
                        const vspFileWrapperOptions *options,
                        vspProgressFunc progress,
                        gpointer opaque,
                        GCancellable *cancellable,
                        GVariant **report,
                        GError **error);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(vspSaveImage, vspSaveImageFree)

VSP_END_DECLS

#endif /* VSP_SAVEIMAGE_H */
