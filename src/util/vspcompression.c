/*
 * vspcompression.c: the compression formats: names, numbers, levels
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>
#include <vmspool/vsp-filewrapper.h>

#include "vspcompression.h"
#include "vsperrorpriv.h"

/* Default levels are those of the formats' own programs; for xz the one that libvirt uses, whose own is
 * four times as slow for some hundredths of the size. */
static const vspCompression formats[] = {
    { "gzip", 1, 1, 9, 6, "\x1f\x8b", 2 },
    { "bzip2", 2, 1, 9, 9, "BZh", 3 },
    { "xz", 3, 0, 9, 3, "\xfd" "7zXZ\0", 6 },
    { "lzop", 4, 1, 9, 3, "\x89LZO\0\r\n\x1a\n", 9 },
    { "zstd", 5, 1, 22, 3, "\x28\xb5\x2f\xfd", 4 },
};

const vspCompression *
vspCompressionFind(const char *name, gssize length)
{
    gsize len = length < 0 ? strlen(name) : (gsize) length;

    for (gsize i = 0; i < G_N_ELEMENTS(formats); i++) {
        if (strlen(formats[i].name) == len && strncmp(formats[i].name, name, len) == 0)
            return &formats[i];
    }
    return NULL;
}

const vspCompression *
vspCompressionFromNumber(guint32 number)
{
    for (gsize i = 0; i < G_N_ELEMENTS(formats); i++) {
        if (formats[i].number == number)
            return &formats[i];
    }
    return NULL;
}

int
vspCompressionParse(const char *text, const vspCompression **compression, int *level, GError **error)
{
    const char *colon = strchr(text, ':');
    const vspCompression *found = vspCompressionFind(text, colon ? colon - text : -1);
    gint64 number;

    if (!found) {
        vspSetError(error, VSP_ERROR_INVALID_ARGUMENT,
                    _("no such compression: '%s'; there are gzip, bzip2, xz, lzop and zstd"), text);
        return -1;
    }
    *compression = found;
    *level = found->levelDefault;
    if (!colon)
        return 0;
    if (!g_ascii_string_to_signed(colon + 1, 10, found->levelMin, found->levelMax, &number, NULL)) {
        vspSetError(error, VSP_ERROR_INVALID_ARGUMENT, _("%s has the levels %d to %d, not '%s'"),
                    found->name, found->levelMin, found->levelMax, colon + 1);
        return -1;
    }
    *level = number;
    return 0;
}

int
vspCompressionCheck(const char *compression, GError **error)
{
    const vspCompression *found;
    int level;

    return vspCompressionParse(compression, &found, &level, error);
}
