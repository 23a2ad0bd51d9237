/*
 * vspqmpframer.c: cuts a stream of bytes into JSON objects
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <glib/gi18n-lib.h>

#include "vsperrorpriv.h"
#include "vspqmpframer.h"

struct _vspQmpFramer {
    GByteArray *buffer;
    gsize head;    /* where the next message begins */
    gsize scanned; /* first byte not looked at; everything below is reflected in the fields below */
    gsize depth;
    gboolean inString;
    gboolean escaped;
    gsize limit;
};

vspQmpFramer *
vspQmpFramerNew(gsize limit)
{
    vspQmpFramer *framer = g_new0(vspQmpFramer, 1);

    framer->buffer = g_byte_array_new();
    framer->limit = limit;
    return framer;
}

void
vspQmpFramerFree(vspQmpFramer *framer)
{
    if (!framer)
        return;
    g_byte_array_unref(framer->buffer);
    g_free(framer);
}

void
vspQmpFramerPush(vspQmpFramer *framer, const void *data, gsize len)
{
    if (framer->head > 0) {
        g_byte_array_remove_range(framer->buffer, 0, framer->head);
        framer->scanned -= framer->head;
        framer->head = 0;
    }
    g_byte_array_append(framer->buffer, data, len);
}

/* TRUE at the brace that ends the message. */
static gboolean
framerScanByte(vspQmpFramer *framer, guint8 byte)
{
    if (framer->escaped) {
        framer->escaped = FALSE;
    } else if (framer->inString) {
        if (byte == '\\')
            framer->escaped = TRUE;
        else if (byte == '"')
            framer->inString = FALSE;
    } else if (byte == '"') {
        framer->inString = TRUE;
    } else if (byte == '{') {
        framer->depth++;
    } else if (byte == '}') {
        return --framer->depth == 0;
    }
    return FALSE;
}

int
vspQmpFramerNext(vspQmpFramer *framer, const char **text, gsize *len, GError **error)
{
    const guint8 *data = framer->buffer->data;

    while (framer->scanned < framer->buffer->len) {
        guint8 byte = data[framer->scanned];

        if (framer->depth == 0) {
            if (g_ascii_isspace(byte)) {
                framer->head = ++framer->scanned;
                continue;
            }
            if (byte != '{') {
                vspSetError(
                    error, VSP_ERROR_QEMU,
                    _("what answers there does not speak QMP (the human monitor does not)"));
                return -1;
            }
        }

        framer->scanned++;
        if (framerScanByte(framer, byte)) {
            *text = (const char *)data + framer->head;
            *len = framer->scanned - framer->head;
            framer->head = framer->scanned;
            return 1;
        }
        if (framer->scanned - framer->head > framer->limit) {
            vspSetError(error, VSP_ERROR_QEMU,
                        _("the monitor sent a message of more than %zu bytes"), framer->limit);
            return -1;
        }
    }
    return 0;
}
