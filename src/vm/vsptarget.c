/*
 * vsptarget.c: the file that a save or a dump writes
 *
 * Everything is done relative to a descriptor of the folder, so that a folder that is renamed or
 * replaced meanwhile changes nothing. A symbolic link is followed only to a block device (that is
 * how logical volumes are named); through any other a third party could choose what we write to.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "vsperrorpriv.h"
#include "vspfd.h"
#include "vspio.h"
#include "vsptarget.h"

typedef enum {
    TARGET_NEW,     /* does not exist */
    TARGET_EMPTY,   /* an empty regular file */
    TARGET_REPLACE, /* a regular file with data that may be overwritten */
    TARGET_BLOCK,
} vspTargetKind;

struct _vspTarget {
    char *name; /* for messages */
    vspTargetKind kind;
    int folder;        /* O_PATH */
    char *base;        /* in @folder */
    char *temporary;   /* in @folder: what is written before it is renamed, TARGET_REPLACE only */
    gboolean followed; /* @base is a symbolic link to the block device */
    dev_t dev;         /* of the existing file; later of the one that we opened */
    ino_t ino;
    gboolean created;
    gboolean opened;
    gboolean committed;
};

static int
targetClassify(vspTarget *target, gboolean overwrite, GError **error)
{
    struct stat st;

    if (fstatat(target->folder, target->base, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        if (errno == ENOENT) {
            target->kind = TARGET_NEW;
            return 0;
        }
        vspSetErrno(error, errno, _("cannot write '%s'"), target->name);
        return -1;
    }
    if (S_ISLNK(st.st_mode)) {
        if (fstatat(target->folder, target->base, &st, 0) < 0 || !S_ISBLK(st.st_mode)) {
            vspSetError(error, VSP_ERROR_INVALID_ARGUMENT,
                        _("cannot write '%s': it is a symbolic link to something that is not a "
                          "block device"),
                        target->name);
            return -1;
        }
        target->followed = TRUE;
    }

    target->dev = st.st_dev;
    target->ino = st.st_ino;
    if (S_ISBLK(st.st_mode)) {
        target->kind = TARGET_BLOCK;
    } else if (!S_ISREG(st.st_mode)) {
        vspSetError(error, VSP_ERROR_INVALID_ARGUMENT,
                    _("cannot write '%s': it is neither a regular file nor a block device"),
                    target->name);
        return -1;
    } else if (st.st_size == 0) {
        target->kind = TARGET_EMPTY;
    } else if (overwrite) {
        target->kind = TARGET_REPLACE;
    } else {
        vspSetError(error, VSP_ERROR_EXISTS, _("'%s' exists and holds data"), target->name);
        return -1;
    }
    return 0;
}

vspTarget *
vspTargetNew(const char *path, gboolean overwrite, GError **error)
{
    g_autoptr(vspTarget) target = g_new0(vspTarget, 1);
    g_autofree char *parent = g_path_get_dirname(path);
    g_autofree char *parentName = vspNameEscape(parent);

    target->folder = -1;
    target->name = vspNameEscape(path);
    target->base = g_path_get_basename(path);
    if (*path == '\0' || g_str_has_suffix(path, "/") || g_str_equal(target->base, ".") ||
        g_str_equal(target->base, "..")) {
        vspSetError(error, VSP_ERROR_INVALID_ARGUMENT, _("'%s' does not name a file"),
                    target->name);
        return NULL;
    }
    target->folder = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (target->folder < 0) {
        vspSetErrno(error, errno, _("cannot write '%s': folder '%s'"), target->name, parentName);
        return NULL;
    }
    if (targetClassify(target, overwrite, error) < 0)
        return NULL;
    if ((target->kind == TARGET_NEW || target->kind == TARGET_REPLACE) &&
        faccessat(target->folder, ".", W_OK | X_OK, AT_EACCESS) < 0) {
        vspSetErrno(error, errno, _("cannot write '%s': folder '%s'"), target->name, parentName);
        return NULL;
    }
    return g_steal_pointer(&target);
}

static int
targetBlockSize(const vspTarget *target, guint64 *room, GError **error)
{
    g_auto(vspFd) fd = openat(target->folder, target->base, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    off_t size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);

    if (size < 0) {
        vspSetErrno(error, errno, _("cannot find out the size of '%s'"), target->name);
        return -1;
    }
    *room = size;
    return 0;
}

int
vspTargetGetRoom(const vspTarget *target, guint64 *room, GError **error)
{
    struct statvfs vfs;
    guint64 blocks;

    if (target->kind == TARGET_BLOCK)
        return targetBlockSize(target, room, error);
    if (fstatvfs(target->folder, &vfs) < 0) {
        vspSetErrno(error, errno, _("cannot find out the free space for '%s'"), target->name);
        return -1;
    }
    blocks = geteuid() == 0 ? vfs.f_bfree : vfs.f_bavail;
    *room = blocks * vfs.f_frsize;
    return 0;
}

/* Creates @name, 0600 from the start. */
static int
targetCreate(vspTarget *target, const char *name)
{
    g_auto(vspFd) fd =
        openat(target->folder, name,
               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0600);

    if (fd < 0)
        return -1;
    target->created = TRUE;
    /* A umask can have taken away even the owner's bits. */
    if (fchmod(fd, 0600) < 0)
        return -1;
    return vspFdSteal(&fd);
}

static int
targetCreateBeside(vspTarget *target)
{
    int fd = -1;

    for (int i = 0; i < 100 && fd < 0; i++) {
        g_free(target->temporary);
        /* Short of NAME_MAX also when the file's own name is not. */
        target->temporary = g_strdup_printf(".%.200s.%08x", target->base, g_random_int());
        fd = targetCreate(target, target->temporary);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    return fd;
}

static int
targetOpenExisting(vspTarget *target)
{
    int flags = O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    g_auto(vspFd) fd = -1;
    struct stat st;

    if (!target->followed)
        flags |= O_NOFOLLOW;
    /* On a block device this asks for nobody else to have it, a mounted file system above all. */
    if (target->kind == TARGET_BLOCK)
        flags |= O_EXCL;
    fd = openat(target->folder, target->base, flags);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -1;
    if (st.st_dev != target->dev || st.st_ino != target->ino ||
        (target->kind == TARGET_EMPTY && st.st_size != 0)) {
        errno = ESTALE;
        return -1;
    }
    if (vspFdSetNonBlocking(fd, FALSE) < 0)
        return -1;
    return vspFdSteal(&fd);
}

int
vspTargetOpen(vspTarget *target, GError **error)
{
    g_auto(vspFd) fd = -1;
    struct stat st;

    switch (target->kind) {
    case TARGET_NEW:
        fd = targetCreate(target, target->base);
        break;
    case TARGET_REPLACE:
        fd = targetCreateBeside(target);
        break;
    case TARGET_EMPTY:
    case TARGET_BLOCK:
        fd = targetOpenExisting(target);
        break;
    }
    if (fd < 0 || fstat(fd, &st) < 0) {
        vspSetErrno(error, errno, _("cannot open '%s' for writing"), target->name);
        return -1;
    }
    target->dev = st.st_dev;
    target->ino = st.st_ino;
    target->opened = TRUE;
    return vspFdSteal(&fd);
}

int
vspTargetWriteAt(
    const vspTarget *target, int fd, const void *data, gsize len, guint64 offset, GError **error)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_DIRECT) < 0 ||
        vspPwriteFull(fd, data, len, (off_t)offset) < 0) {
        vspSetErrno(error, errno, _("cannot write '%s' at offset %" PRIu64), target->name, offset);
        return -1;
    }
    return 0;
}

static int
targetSyncFolder(vspTarget *target)
{
    g_auto(vspFd) fd = openat(target->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    /* Without permission to read the folder, or on a file system that can't sync one, the name is
     * as durable as that file system makes it. */
    if (fd < 0)
        return errno == EACCES ? 0 : -1;
    if (fsync(fd) < 0 && errno != EINVAL && errno != EROFS && errno != ENOTSUP)
        return -1;
    return 0;
}

int
vspTargetCommit(vspTarget *target, GError **error)
{
    if (target->kind == TARGET_REPLACE) {
        if (renameat(target->folder, target->temporary, target->folder, target->base) < 0) {
            vspSetErrno(error, errno, _("cannot replace '%s'"), target->name);
            return -1;
        }
        /* The old file is gone. What is there now is ours, and if its name can't be made durable it
         * is removed like any other that we created. */
        g_clear_pointer(&target->temporary, g_free);
        target->kind = TARGET_NEW;
    }
    if (target->kind != TARGET_BLOCK && targetSyncFolder(target) < 0) {
        vspSetErrno(error, errno, _("cannot sync the folder of '%s'"), target->name);
        return -1;
    }
    target->committed = TRUE;
    return 0;
}

void
vspTargetDiscard(vspTarget *target)
{
    const char *name = target->temporary ? target->temporary : target->base;
    struct stat st;

    if (target->committed)
        return;
    if (target->created) {
        /* Only what is still the file that we made: somebody may have put another in its place. */
        if (!target->opened || (fstatat(target->folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
                                st.st_dev == target->dev && st.st_ino == target->ino))
            unlinkat(target->folder, name, 0);
        target->created = FALSE;
    } else if (target->opened && target->kind == TARGET_EMPTY) {
        g_auto(vspFd) fd = targetOpenExisting(&(vspTarget){ .kind = TARGET_REPLACE,
                                                            .folder = target->folder,
                                                            .base = target->base,
                                                            .dev = target->dev,
                                                            .ino = target->ino });

        if (fd >= 0 && ftruncate(fd, 0) < 0)
            g_debug("%s: cannot empty it again: %s", target->name, vspErrnoText(errno));
    }
    target->opened = FALSE;
}

const char *
vspTargetGetName(const vspTarget *target)
{
    return target->name;
}

gboolean
vspTargetIsBlockDevice(const vspTarget *target)
{
    return target->kind == TARGET_BLOCK;
}

void
vspTargetFree(vspTarget *target)
{
    if (!target)
        return;
    if (target->folder >= 0)
        vspTargetDiscard(target);
    vspFdClose(&target->folder);
    g_free(target->temporary);
    g_free(target->base);
    g_free(target->name);
    g_free(target);
}
