/*
 * vspqmpconnect.h: from a socket's path to a connected descriptor
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_QMPCONNECT_H
#define VSP_QMPCONNECT_H

#include <gio/gio.h>

/* Connects to the AF_UNIX stream socket @path, of any length. (transfer full): close-on-exec,
 * non-blocking; -1 with @error. */
int vspQmpConnect(const char *path, GCancellable *cancellable, GError **error);

#endif /* VSP_QMPCONNECT_H */
