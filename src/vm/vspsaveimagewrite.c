/*
 * vspsaveimagewrite.c: what a new save image has in front of its payload
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <inttypes.h>
#include <string.h>
#include <glib/gi18n-lib.h>

#include "vsperrorpriv.h"
#include "vspsaveimagepriv.h"

#define VERSION 2

GBytes *
vspSaveImageBlockNewWithRoom(const char *xml,
                             const char *cookie,
                             gboolean wasRunning,
                             guint32 format,
                             guint64 room,
                             GError **error)
{
    g_autoptr(vspDomainXml) domain = vspDomainXmlParse(xml, strlen(xml), error);
    vspSaveImageHeader header = {
        .version = VERSION,
        .wasRunning = wasRunning ? 1 : 0,
        .format = format,
    };
    gsize xmlSize = strlen(xml) + 1;
    gsize cookieSize = cookie && *cookie ? strlen(cookie) + 1 : 0;
    gsize total;
    char *block;

    if (!domain) {
        g_prefix_error(error, _("can't use the domain XML: "));
        return NULL;
    }
    /* Each is looked at by itself, so that the sum can't wrap. */
    if (xmlSize > VSP_SAVE_IMAGE_DATA_MAX || cookieSize > VSP_SAVE_IMAGE_DATA_MAX ||
        room > VSP_SAVE_IMAGE_DATA_MAX ||
        sizeof(header) + xmlSize + cookieSize + room + VSP_SAVE_IMAGE_ALIGNMENT >
            VSP_SAVE_IMAGE_DATA_MAX) {
        vspSetError(error, VSP_ERROR_INVALID_ARGUMENT,
                    _("can't use the domain XML: with its cookie and the room behind it has %" PRIu64
                      " bytes, which is more than the limit of %d"),
                    xmlSize + cookieSize + room, VSP_SAVE_IMAGE_DATA_MAX);
        return NULL;
    }
    total = sizeof(header) + xmlSize + cookieSize + (gsize)room;
    total = (total + VSP_SAVE_IMAGE_ALIGNMENT - 1) & ~(gsize)(VSP_SAVE_IMAGE_ALIGNMENT - 1);

    memcpy(header.magic, VSP_SAVE_IMAGE_MAGIC_PARTIAL, sizeof(header.magic));
    header.dataLen = (guint32)(total - sizeof(header));
    header.cookieOffset = cookieSize ? (guint32)xmlSize : 0;

    block = g_malloc0(total);
    memcpy(block, &header, sizeof(header));
    memcpy(block + sizeof(header), xml, xmlSize);
    if (cookieSize)
        memcpy(block + sizeof(header) + xmlSize, cookie, cookieSize);
    return g_bytes_new_take(block, total);
}

GBytes *
vspSaveImageBlockNew(const char *xml,
                     const char *cookie,
                     gboolean wasRunning,
                     vspSaveImageFormat format,
                     GError **error)
{
    return vspSaveImageBlockNewWithRoom(xml, cookie, wasRunning, (guint32)format,
                                        VSP_SAVE_IMAGE_SLACK, error);
}

void
vspSaveImageBlockComplete(GBytes *block,
                          guint64 payloadLength,
                          const guint8 *digest,
                          guint8 bytes[VSP_SAVE_IMAGE_HEADER_SIZE])
{
    vspSaveImageHeader header;

    memcpy(&header, g_bytes_get_data(block, NULL), sizeof(header));
    memcpy(header.magic, VSP_SAVE_IMAGE_MAGIC_COMPLETE, sizeof(header.magic));
    vspSaveImageSealWrite(header.seal, payloadLength, digest);
    memcpy(bytes, &header, sizeof(header));
}
