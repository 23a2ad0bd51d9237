/*
 * vsptarget.h: the file that a save or a dump writes
 *
 * Either a file that we create (mode 0600 from its first byte, whatever the umask), or an existing
 * empty regular file or block device, which is used as it is. Only what we created is ever removed.
 *
 * To replace a file that holds data a new one is written beside it, and renamed over it at the very
 * end: a failed job changes nothing.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_TARGET_H
#define VSP_TARGET_H

#include <glib.h>

typedef struct _vspTarget vspTarget;

/*
 * Finds out what @path is, without creating anything.
 *
 * Errors: VSP_ERROR_EXISTS (holds data and not @overwrite), VSP_ERROR_INVALID_ARGUMENT (neither a
 * regular file nor a block device), VSP_ERROR_NOT_FOUND (the folder), VSP_ERROR_ACCESS,
 * VSP_ERROR_IO
 */
vspTarget *vspTargetNew(const char *path, gboolean overwrite, GError **error);

/* Bytes that fit: what the file system has left, or the block device's size. */
int vspTargetGetRoom(const vspTarget *target, guint64 *room, GError **error);

/* Opens it O_WRONLY, creating it if need be. (transfer full). */
int vspTargetOpen(vspTarget *target, GError **error);

/* Writes to what Open returned, of which the helper may have made O_DIRECT. */
int vspTargetWriteAt(
    const vspTarget *target, int fd, const void *data, gsize len, guint64 offset, GError **error);

/* After the file's own data are durable: gives a replacement its final name, and makes the names
 * durable. 0, or -1 with @error. */
int vspTargetCommit(vspTarget *target, GError **error);

/* Puts things back: removes what was created, empties what was empty. Quiet; does nothing after
 * Commit. */
void vspTargetDiscard(vspTarget *target);

/* The path as one printable line. */
const char *vspTargetGetName(const vspTarget *target);

gboolean vspTargetIsBlockDevice(const vspTarget *target);

/* Does Discard, unless it was committed. */
void vspTargetFree(vspTarget *target);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(vspTarget, vspTargetFree)

#endif /* VSP_TARGET_H */
