/*
 * vspsaveimageseal.c: the seal: payload length and digest in the header's last reserved words
 *
 * Little-endian whatever the order of the header, so that it needs no swapping, and with its own
 * magic and CRC, so that words to which a later libvirt gives a meaning are not taken for it.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <string.h>
#include <glib/gi18n-lib.h>

#include "vspcrc32c.h"
#include "vspsaveimagepriv.h"

#define SEAL_MAGIC "VSP"
#define SEAL_VERSION 1
#define SEAL_HAS_DIGEST (1u << 0)

typedef struct {
    char magic[3]; /* no NUL */
    guint8 version;
    guint32 flags;
    guint64 payloadLength;
    guint8 digest[VSP_SAVE_IMAGE_DIGEST_SIZE];
    guint32 zero;
    guint32 crc; /* of all before it */
} seal;

G_STATIC_ASSERT(sizeof(seal) == VSP_SAVE_IMAGE_SEAL_SIZE);

static guint32
sealCrc(const seal *self)
{
    return vspCrc32c(0, self, G_STRUCT_OFFSET(seal, crc));
}

void
vspSaveImageSealWrite(guint8 bytes[VSP_SAVE_IMAGE_SEAL_SIZE],
                      guint64 payloadLength,
                      const guint8 *digest)
{
    seal self = { .version = SEAL_VERSION, .payloadLength = GUINT64_TO_LE(payloadLength) };

    memcpy(self.magic, SEAL_MAGIC, sizeof(self.magic));
    if (digest) {
        self.flags = GUINT32_TO_LE(SEAL_HAS_DIGEST);
        memcpy(self.digest, digest, sizeof(self.digest));
    }
    self.crc = GUINT32_TO_LE(sealCrc(&self));
    memcpy(bytes, &self, sizeof(self));
}

/* What is wrong with a seal that is there, or NULL. */
static const char *
findFault(const seal *self)
{
    guint32 flags = GUINT32_FROM_LE(self->flags);

    if (memcmp(self->magic, SEAL_MAGIC, sizeof(self->magic)) != 0)
        return _("the header's last reserved words hold data of somebody else's");
    if (self->version != SEAL_VERSION)
        return _("the seal is of a version that is not known, and was ignored");
    if (sealCrc(self) != GUINT32_FROM_LE(self->crc))
        return _("the seal is damaged, and was ignored");
    if ((flags & ~SEAL_HAS_DIGEST) || self->zero)
        return _("the seal says things that are not known, and was ignored");
    return NULL;
}

void
vspSaveImageSealRead(vspSaveImage *image)
{
    static const guint8 none[VSP_SAVE_IMAGE_SEAL_SIZE];
    const char *fault;
    seal self;

    memcpy(&self, image->header.seal, sizeof(self));
    if (memcmp(&self, none, sizeof(none)) == 0) {
        image->seal = VSP_SAVE_IMAGE_SEAL_NONE;
        return;
    }
    fault = findFault(&self);
    /* It is written together with the mark of a complete image: this one is left from another save.
     */
    if (!fault && !image->complete)
        fault = _("the seal is not this image's, which is incomplete, and was ignored");
    if (fault) {
        image->seal = VSP_SAVE_IMAGE_SEAL_IGNORED;
        vspSaveImageNotice(image, "%s", fault);
        return;
    }
    image->seal = VSP_SAVE_IMAGE_SEAL_VALID;
    image->sealLength = GUINT64_FROM_LE(self.payloadLength);
    if (GUINT32_FROM_LE(self.flags) & SEAL_HAS_DIGEST) {
        image->hasDigest = TRUE;
        memcpy(image->digest, self.digest, sizeof(image->digest));
    }
}
