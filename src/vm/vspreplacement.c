/*
 * vspreplacement.c: a changed copy that takes the place of an image
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <glib/gi18n-lib.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "vsperrorpriv.h"
#include "vspfd.h"
#include "vspreplacement.h"
#include "vsptarget.h"

/* Of names, and of one value. The kernel has the same limit. */
#define ATTRIBUTES_MAX (64 * 1024)

struct _vspReplacement {
    char *path; /* without symbolic links */
    int old;    /* borrowed */
    struct stat before;
    vspTarget *target;
    int fd;
};

vspReplacement *
vspReplacementNew(const char *path, int fd, GError **error)
{
    g_autoptr(vspReplacement) self = g_new0(vspReplacement, 1);
    char *real = realpath(path, NULL);

    self->fd = -1;
    self->old = fd;
    self->path = g_strdup(real);
    free(real);
    if (!self->path || fstat(fd, &self->before) < 0) {
        g_autofree char *name = vspNameEscape(path);

        vspSetErrno(error, errno, _("cannot replace '%s'"), name);
        return NULL;
    }
    self->target = vspTargetNew(self->path, TRUE, error);
    if (!self->target)
        return NULL;
    self->fd = vspTargetOpen(self->target, error);
    return self->fd < 0 ? NULL : g_steal_pointer(&self);
}

int
vspReplacementGetFd(const vspReplacement *self)
{
    return self->fd;
}

int
vspReplacementWriteAt(
    vspReplacement *self, const void *data, gsize len, guint64 offset, GError **error)
{
    return vspTargetWriteAt(self->target, self->fd, data, len, offset, error);
}

/* Security labels and the like. What can't be carried over, the file system has its own idea of. */
static void
copyAttributes(const vspReplacement *self)
{
    g_autofree char *names = g_malloc(ATTRIBUTES_MAX);
    g_autofree char *value = g_malloc(ATTRIBUTES_MAX);
    ssize_t len = flistxattr(self->old, names, ATTRIBUTES_MAX);

    for (const char *name = names; len > 0 && name < names + len; name += strlen(name) + 1) {
        ssize_t size = fgetxattr(self->old, name, value, ATTRIBUTES_MAX);

        if (size >= 0 && fsetxattr(self->fd, name, value, (size_t)size, 0) < 0)
            g_debug("%s: %s is not carried over: %s", self->path, name, vspErrnoText(errno));
    }
}

/* Last, so that nobody else can read it before it is the file that they may read. */
static int
keepOwner(vspReplacement *self, GError **error)
{
    struct stat st;

    if (fstat(self->fd, &st) < 0 ||
        ((st.st_uid != self->before.st_uid || st.st_gid != self->before.st_gid) &&
         fchown(self->fd, self->before.st_uid, self->before.st_gid) < 0)) {
        vspSetErrno(error, errno, _("cannot give the copy of '%s' the same owner"),
                    vspTargetGetName(self->target));
        return -1;
    }
    copyAttributes(self);
    if (fchmod(self->fd, self->before.st_mode & 07777) < 0) {
        vspSetErrno(error, errno, _("cannot give the copy of '%s' the same mode"),
                    vspTargetGetName(self->target));
        return -1;
    }
    return 0;
}

/* Somebody else's change must not get lost. */
static int
checkUnchanged(const vspReplacement *self, GError **error)
{
    const struct stat *before = &self->before;
    struct stat st;

    if (lstat(self->path, &st) == 0 && st.st_dev == before->st_dev && st.st_ino == before->st_ino &&
        st.st_size == before->st_size && st.st_mtim.tv_sec == before->st_mtim.tv_sec &&
        st.st_mtim.tv_nsec == before->st_mtim.tv_nsec)
        return 0;
    vspSetError(error, VSP_ERROR_BUSY, _("'%s' was changed by somebody else meanwhile"),
                vspTargetGetName(self->target));
    return -1;
}

int
vspReplacementCommit(vspReplacement *self, GError **error)
{
    if (keepOwner(self, error) < 0)
        return -1;
    if (fsync(self->fd) < 0) {
        vspSetErrno(error, errno, _("cannot sync '%s'"), vspTargetGetName(self->target));
        return -1;
    }
    if (vspFdCloseChecked(&self->fd) < 0) {
        vspSetErrno(error, errno, _("cannot close '%s'"), vspTargetGetName(self->target));
        return -1;
    }
    if (checkUnchanged(self, error) < 0)
        return -1;
    return vspTargetCommit(self->target, error);
}

void
vspReplacementFree(vspReplacement *self)
{
    if (!self)
        return;
    vspTargetFree(self->target);
    vspFdClose(&self->fd);
    g_free(self->path);
    g_free(self);
}
