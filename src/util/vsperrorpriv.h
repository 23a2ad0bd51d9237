/*
 * vsperrorpriv.h: setting errors; the convention is docs/errors.md
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_ERRORPRIV_H
#define VSP_ERRORPRIV_H

#include <vmspool/vsp-error.h>

/* The code a caller can act on, for an errno. */
vspError vspErrorFromErrno(int errnum);

/* Sets @error to "MESSAGE: errno's text". The message says operation and name, and offset if any. */
void vspSetErrno(GError **error, int errnum, const char *format, ...) G_GNUC_PRINTF(3, 4);

/* Sets @error; a shorthand with the library's own domain. */
void vspSetError(GError **error, vspError code, const char *format, ...) G_GNUC_PRINTF(3, 4);

/* errno's text; unlike strerror() it can be called from any thread. Owned by GLib. */
const char *vspErrnoText(int errnum);

/* @name as one line with control characters escaped, for messages. */
char *vspNameEscape(const char *name);

#endif /* VSP_ERRORPRIV_H */
