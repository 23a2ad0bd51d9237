/*
 * vspfd.h: who owns a file descriptor
 *
 * The only file of the tree that calls close(2) is vspfd.c. A descriptor is owned by one variable,
 * closed through a pointer to it, and the variable becomes -1.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_FD_H
#define VSP_FD_H

#include <glib.h>

/* An owned descriptor, or -1: g_auto(vspFd) fd = -1; */
typedef int vspFd;

/* Closes if open, sets to -1, keeps errno. For clean-up, where the result can't matter. */
void vspFdClose(int *fd);

/* Closes and tells: 0, or -1 with errno. The descriptor is gone either way (never retried: after
 * EINTR Linux has released it). */
int vspFdCloseChecked(int *fd);

/* Hands ownership on. */
int vspFdSteal(int *fd);

/* A close-on-exec duplicate, never one of 0 to 2. -1 with errno. */
int vspFdDup(int fd);

/* Closes everything but 0, 1, 2 and the @count descriptors in @keep (-1 is skipped). For a process
 * that has just been started and does not know what it inherited. */
void vspFdCloseOthers(const int *keep, gsize count);

int vspFdSetNonBlocking(int fd, gboolean nonBlocking);

/* What @fd is, by the kernel's table and without asking a file system: "socket:[4711]", or a path.
 * Two descriptors of the same pipe or socket have the same. NULL if it is not open, or without
 * /proc. */
char *vspFdGetLink(int fd);

/* A descriptor of this process with that link, or -1. */
int vspFdFindLink(const char *link);

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(vspFd, vspFdClose)

#endif /* VSP_FD_H */
