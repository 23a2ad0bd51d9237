/*
 * ends.c: the files that a command reads from and writes to
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gi18n.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool.h"

int
vspToolOpenEnd(const char *path, gboolean output, gboolean force, gboolean *created, GError **error)
{
    int fd;

    if (g_str_equal(path, "-"))
        return output ? STDOUT_FILENO : STDIN_FILENO;
    if (!output) {
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    } else {
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, 0600);
        *created = fd >= 0;
        if (fd < 0 && errno == EEXIST)
            fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | (force ? O_TRUNC : 0));
    }
    if (fd < 0) {
        int errnum = errno;

        g_set_error(error, VSP_ERROR, errnum == ENOENT ? VSP_ERROR_NOT_FOUND : VSP_ERROR_IO,
                    _("cannot open '%s': %s"), path, g_strerror(errnum));
    }
    return fd;
}

gboolean
vspToolMayWrite(int fd, const char *path, gboolean force, GError **error)
{
    struct stat st;

    if (force || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
        return TRUE;
    g_set_error(error, VSP_ERROR, VSP_ERROR_EXISTS,
                _("'%s' holds data already; --force replaces it"), path);
    return FALSE;
}

gboolean
vspToolEmpty(int fd, const char *source, const char *path, GError **error)
{
    struct stat out, in;

    if (fstat(fd, &out) < 0 || !S_ISREG(out.st_mode) || out.st_size == 0)
        return TRUE;
    if (stat(source, &in) == 0 && in.st_dev == out.st_dev && in.st_ino == out.st_ino) {
        g_set_error(error, VSP_ERROR, VSP_ERROR_INVALID_ARGUMENT,
                    _("'%s' is what is read, and can't be written"), path);
        return FALSE;
    }
    if (ftruncate(fd, 0) == 0)
        return TRUE;
    g_set_error(error, VSP_ERROR, VSP_ERROR_IO, _("cannot write '%s': %s"), path,
                g_strerror(errno));
    return FALSE;
}
