/*
 * testfs.h: small file systems and devices that are gone with their descriptor
 *
 * Nothing is mounted at a path, so nothing has to be unmounted, however a test ends. All need root;
 * -1 means that they can't be had, and the test is to be skipped.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_TESTFS_H
#define VSP_TESTFS_H

#include <glib.h>

/* The root directory of a new tmpfs of @bytes, for openat(). */
int vspTestTmpfs(guint64 bytes);

/* A loop device over a new file in @dir, with that logical sector size; its path into *@path. It
 * exists as long as the descriptor (O_RDWR) is open. */
int vspTestLoop(const char *dir, guint64 bytes, guint sector, char **path);

/* The root directory of a new file system of @type (such as "ext4") on such a device; its mkfs has
 * to be installed. */
int vspTestDiskFs(const char *dir, const char *type, guint64 bytes, guint sector);

/* A path by which a file in such a directory can be opened as long as the directory is; g_autofree.
 */
char *vspTestFsPath(int root, const char *name);

#endif /* VSP_TESTFS_H */
