/*
 * vsp-saveimage.h: libvirt's QEMU save image
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_SAVEIMAGE_H
#define VSP_SAVEIMAGE_H

#include <vmspool/vsp-macros.h>

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

G_DEFINE_AUTOPTR_CLEANUP_FUNC(vspSaveImage, vspSaveImageFree)

VSP_END_DECLS

#endif /* VSP_SAVEIMAGE_H */
