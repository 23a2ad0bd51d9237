/*
 * vspqmpmessage.h: QMP messages, made and taken apart; what the client alone needs of it
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_QMPMESSAGE_H
#define VSP_QMPMESSAGE_H

#include <glib.h>

/* A command as one line with its newline. @arguments: nullable, a{sv}, not floating. */
char *vspQmpMessageFormat(const char *command, GVariant *arguments, const char *id);

/* The value of "return" in @reply to @command, or QEMU's refusal as @error. (transfer full) */
GVariant *vspQmpMessageGetResult(const char *command, GVariant *reply, GError **error);

#endif /* VSP_QMPMESSAGE_H */
