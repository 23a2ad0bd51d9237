/*
 * vspfd.c: who owns a file descriptor
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vspfd.h"

void
vspFdClose(int *fd)
{
    int saved = errno;

    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    errno = saved;
}

int
vspFdCloseChecked(int *fd)
{
    int rc = 0;

    if (*fd >= 0)
        rc = close(*fd);
    *fd = -1;
    /* After EINTR the descriptor is closed on Linux, and the data's fate is fdatasync's business. */
    if (rc < 0 && errno == EINTR)
        rc = 0;
    return rc;
}

int
vspFdSteal(int *fd)
{
    int taken = *fd;

    *fd = -1;
    return taken;
}

int
vspFdDup(int fd)
{
    return fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

int
vspFdSetNonBlocking(int fd, gboolean nonBlocking)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0)
        return -1;
    return fcntl(fd, F_SETFL, nonBlocking ? flags | O_NONBLOCK : flags & ~O_NONBLOCK);
}

char *
vspFdGetLink(int fd)
{
    g_autofree char *path = g_strdup_printf("/proc/self/fd/%d", fd);

    return g_file_read_link(path, NULL);
}

int
vspFdFindLink(const char *link)
{
    g_autoptr(GDir) dir = g_dir_open("/proc/self/fd", 0, NULL);
    const char *name;

    while (dir && (name = g_dir_read_name(dir))) {
        int fd = atoi(name);
        g_autofree char *other = vspFdGetLink(fd);

        if (g_strcmp0(other, link) == 0)
            return fd;
    }
    return -1;
}

void
vspFdCloseOthers(const int *keep, gsize count)
{
    guint from = STDERR_FILENO + 1;

    /* From gap to gap between those to keep, whatever their order; no loop over numbers. Linux before
     * 5.9 lacks close_range(): what was left open by others then stays open, which is no worse than
     * before. */
    for (;;) {
        guint next = G_MAXUINT;

        for (gsize i = 0; i < count; i++) {
            if (keep[i] >= 0 && (guint) keep[i] >= from)
                next = MIN(next, (guint) keep[i]);
        }
        if (next > from)
            syscall(SYS_close_range, from, next == G_MAXUINT ? next : next - 1, 0);
        if (next == G_MAXUINT)
            return;
        from = next + 1;
    }
}
