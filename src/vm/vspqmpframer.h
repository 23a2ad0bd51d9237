/*
 * vspqmpframer.h: cuts a stream of bytes into JSON objects
 *
 * QEMU ends each message with a newline, but a monitor in pretty mode also puts newlines inside
 * one. So the cut is found by counting braces outside of strings, which also works byte by byte.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_QMPFRAMER_H
#define VSP_QMPFRAMER_H

#include <glib.h>

typedef struct _vspQmpFramer vspQmpFramer;

/* @limit: the longest message accepted, bytes. */
vspQmpFramer *vspQmpFramerNew(gsize limit);
void vspQmpFramerFree(vspQmpFramer *framer);

/* Appends bytes as they came in. Invalidates what Next() returned. */
void vspQmpFramerPush(vspQmpFramer *framer, const void *data, gsize len);

/* The next whole message. 1: @text (@len bytes, no NUL) is valid until the next Push; 0: more bytes
 * are needed; -1 with @error: not a stream of JSON objects, or a message beyond the limit. */
int vspQmpFramerNext(vspQmpFramer *framer, const char **text, gsize *len, GError **error);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(vspQmpFramer, vspQmpFramerFree)

#endif /* VSP_QMPFRAMER_H */
