/*
 * vspsaveimagepriv.h: the save image's header: its numbers, and how the save flow makes one
 *
 * vmspool-save-image(5) is the specification.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_SAVEIMAGEPRIV_H
#define VSP_SAVEIMAGEPRIV_H

#include <vmspool/vsp-saveimage.h>
#include "vspxml.h"

#define VSP_SAVE_IMAGE_HEADER_SIZE 92
#define VSP_SAVE_IMAGE_SEAL_SIZE 40
#define VSP_SAVE_IMAGE_DIGEST_SIZE 16

/* The most bytes that the XML, the cookie and the room behind them may take. Larger: domains of an
 * absurd size could be saved. Smaller: a hostile image makes its reader allocate less. */
#define VSP_SAVE_IMAGE_DATA_MAX (16 * 1024 * 1024)

/* Room left behind the XML and the cookie for later edits, which keep the size; as libvirt does. */
#define VSP_SAVE_IMAGE_SLACK 65536

/* The payload of an image of ours begins at a multiple of this, so that it can be read with
 * O_DIRECT. It suits every sector size in use. */
#define VSP_SAVE_IMAGE_ALIGNMENT 4096

/* On-disk layout, host byte order (the reader also takes the other one). */
typedef struct {
    char magic[16]; /* no NUL */
    guint32 version;
    guint32 dataLen; /* header to payload, bytes */
    guint32 wasRunning;
    guint32 format;
    guint32 cookieOffset; /* from the end of the header; 0: no cookie */
    guint8 reserved[16];
    guint8 seal[VSP_SAVE_IMAGE_SEAL_SIZE];
} vspSaveImageHeader;

G_STATIC_ASSERT(sizeof(vspSaveImageHeader) == VSP_SAVE_IMAGE_HEADER_SIZE);

/* The numbers in the other byte order. */
void vspSaveImageHeaderSwap(vspSaveImageHeader *header);

#define VSP_SAVE_IMAGE_MAGIC "LibvirtQemud"
#define VSP_SAVE_IMAGE_MAGIC_COMPLETE VSP_SAVE_IMAGE_MAGIC "Save"
#define VSP_SAVE_IMAGE_MAGIC_PARTIAL VSP_SAVE_IMAGE_MAGIC "Part"

struct _vspSaveImage {
    char *name; /* for messages: escaped */
    guint64 fileSize;
    gboolean blockDevice;
    gboolean swapped;
    gboolean complete;
    vspSaveImageHeader header; /* numbers in host order, whatever the file has */
    guint32 format;            /* what the payload is; the header's number from version 2 on */
    char *xml;
    gsize xmlSize; /* on disk, with the NUL */
    char *cookie;  /* NULL if none */
    gsize cookieSize;
    guint64 payloadLength;
    gboolean payloadPlausible;
    vspSaveImageSeal seal;
    guint64 sealLength; /* these three of a valid seal only */
    gboolean hasDigest;
    guint8 digest[VSP_SAVE_IMAGE_DIGEST_SIZE];
    vspDomainXml *domain;
    GPtrArray *notices; /* NULL-terminated once the image is open */
};

/* Adds to the notices. */
void vspSaveImageNotice(vspSaveImage *image, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* Puts a seal of @payloadLength and @digest (nullable) into @seal. */
void vspSaveImageSealWrite(guint8 seal[VSP_SAVE_IMAGE_SEAL_SIZE],
                           guint64 payloadLength,
                           const guint8 *digest);

/* Reads the seal in @image's header into @image; adds a notice if it is there and no good. */
void vspSaveImageSealRead(vspSaveImage *image);

/*
 * Everything in front of the payload of a new image, with the *partial* magic and no seal: header,
 * @xml, @cookie (nullable) and at least VSP_SAVE_IMAGE_SLACK zeros; a multiple of
 * VSP_SAVE_IMAGE_ALIGNMENT long. Write it at offset 0 of the image.
 *
 * VSP_ERROR_INVALID_ARGUMENT if @xml is one that our own reader would refuse.
 */
GBytes *vspSaveImageBlockNew(const char *xml,
                             const char *cookie,
                             gboolean wasRunning,
                             vspSaveImageFormat format,
                             GError **error);

/* The same for any number of @format, with at least @room zeros. */
GBytes *vspSaveImageBlockNewWithRoom(const char *xml,
                                     const char *cookie,
                                     gboolean wasRunning,
                                     guint32 format,
                                     guint64 room,
                                     GError **error);

/*
 * The header that completes the image: @block's, with the *complete* magic and a seal. To be
 * written over the first bytes of the image once its payload is durable.
 *
 * @payloadLength: bytes as stored
 * @digest: (nullable): VSP_SAVE_IMAGE_DIGEST_SIZE bytes: XXH3-128 of the payload as stored, in its
 *   canonical byte order
 */
void vspSaveImageBlockComplete(GBytes *block,
                               guint64 payloadLength,
                               const guint8 *digest,
                               guint8 header[VSP_SAVE_IMAGE_HEADER_SIZE]);

/* Like vspSaveImageOpen(), and hands over the descriptor that was read from (transfer full), so
 * that what is restored is what was checked. */
vspSaveImage *vspSaveImageOpenKeep(const char *path, int *kept, GError **error);

/* The same, and VSP_ERROR_IMAGE_PARTIAL for one that is not complete. */
vspSaveImage *vspSaveImageOpenComplete(const char *path, int *kept, GError **error);

/* NULL-terminated, possibly empty: whole sentences about what is odd in the image but no error.
 * Owned by @image. */
const char *const *vspSaveImageGetNotices(const vspSaveImage *image);

/* The sealed digest of the payload, VSP_SAVE_IMAGE_DIGEST_SIZE bytes owned by @image; NULL if the
 * image has none. */
const guint8 *vspSaveImageGetDigest(const vspSaveImage *image);

/* Whether the payload begins with the bytes that its format begins with. */
gboolean vspSaveImageIsPayloadPlausible(const vspSaveImage *image);

#endif /* VSP_SAVEIMAGEPRIV_H */
