/*
 * vspreplacement.h: a changed copy that takes the place of an image
 *
 * Until it is committed the old file is untouched, and afterwards the new one is there in whole,
 * whatever is killed or fails in between. Owner, mode and extended attributes are kept.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_REPLACEMENT_H
#define VSP_REPLACEMENT_H

#include <glib.h>

typedef struct _vspReplacement vspReplacement;

/*
 * @path: a regular file; where it is a symbolic link, what that leads to is replaced
 * @fd: borrowed: the file as it was opened
 *
 * Creates the new file, empty and of mode 0600.
 */
vspReplacement *vspReplacementNew(const char *path, int fd, GError **error);

/* The new file, for writing; owned by @self. */
int vspReplacementGetFd(const vspReplacement *self);

/* Writes @len bytes at @offset, whatever the helper has made of the descriptor. */
int vspReplacementWriteAt(
    vspReplacement *self, const void *data, gsize len, guint64 offset, GError **error);

/* Syncs, and puts the new file in the old one's place; refuses if that was changed or replaced
 * meanwhile. */
int vspReplacementCommit(vspReplacement *self, GError **error);

/* Removes the new file unless it was committed. */
void vspReplacementFree(vspReplacement *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(vspReplacement, vspReplacementFree)

#endif /* VSP_REPLACEMENT_H */
