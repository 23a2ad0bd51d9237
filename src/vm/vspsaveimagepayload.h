/*
 * vspsaveimagepayload.h: an image's payload: how it begins and ends, and its way elsewhere
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_SAVEIMAGEPAYLOAD_H
#define VSP_SAVEIMAGEPAYLOAD_H

#include <gio/gio.h>
#include <vmspool/vsp-filewrapper.h>

#include "vspsaveimagepriv.h"

/* How a raw payload ends. */
typedef enum {
    VSP_PAYLOAD_END_UNKNOWN,   /* not raw, or on a device whose end is not the payload's */
    VSP_PAYLOAD_END_BAD,       /* not as QEMU ends one */
    VSP_PAYLOAD_END_PLAIN,     /* with the mark of the end, which is one byte of zero */
    VSP_PAYLOAD_END_DESCRIBED, /* with the mark and QEMU's description of what came before */
} vspPayloadEnd;

/* Looks at the last bytes. -1 with @error if they can't be read. */
int
vspSaveImagePayloadFindEnd(const vspSaveImage *image, int fd, vspPayloadEnd *end, GError **error);

/* What can be said of the payload without reading it: -1 with @error if it does not begin or end as
 * one of its format does, or if its format is not known. */
int vspSaveImagePayloadCheck(const vspSaveImage *image, int fd, vspPayloadEnd *end, GError **error);

typedef struct {
    const vspFileWrapperOptions *wrapper; /* nullable */
    vspProgressFunc progress;
    gpointer opaque;
    GCancellable *cancellable;
} vspPayloadMove;

/*
 * Moves the payload from @fd (borrowed) to where @out stands. If the seal has a digest, and the
 * payload another one, that is VSP_ERROR_IMAGE_CORRUPT, after everything was moved.
 *
 * @digest: (nullable): what it is
 * @report: (optional): statistics
 */
int vspSaveImagePayloadMove(const vspSaveImage *image,
                            int fd,
                            int out,
                            const char *outName,
                            const vspPayloadMove *how,
                            guint8 digest[VSP_SAVE_IMAGE_DIGEST_SIZE],
                            GVariant **report,
                            GError **error);

/* The same in another format: @compression is as for vspFileWrapperOptionsSetCompression(), NULL is raw.
 * @digest is that of what was written. */
int vspSaveImagePayloadRecode(const vspSaveImage *image,
                              int fd,
                              int out,
                              const char *outName,
                              const char *compression,
                              const vspPayloadMove *how,
                              guint8 digest[VSP_SAVE_IMAGE_DIGEST_SIZE],
                              GVariant **report,
                              GError **error);

/*
 * To nowhere: reads all of it.
 *
 * @end: (inout): as vspSaveImagePayloadCheck() left it; of a compressed payload, how what was compressed
 *   ends, and it is an error if that does not begin or end as QEMU's does
 */
int vspSaveImagePayloadRead(const vspSaveImage *image,
                            int fd,
                            const vspPayloadMove *how,
                            vspPayloadEnd *end,
                            guint8 digest[VSP_SAVE_IMAGE_DIGEST_SIZE],
                            GVariant **report,
                            GError **error);

/* What its payload is compressed by; NULL if it is not. */
const char *vspSaveImagePayloadCompression(const vspSaveImage *image);

#endif /* VSP_SAVEIMAGEPAYLOAD_H */
