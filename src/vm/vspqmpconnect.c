/*
 * vspqmpconnect.c: from a socket's path to a connected descriptor
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gi18n-lib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "vsperrorpriv.h"
#include "vspfd.h"
#include "vspio.h"
#include "vspqmp.h"
#include "vspqmpconnect.h"

/* Between two tries while the listener's queue is full, which poll(2) can't wait for. Shorter:
 * busier; longer: slower to notice. */
#define RETRY_MS 20

/* sun_path has 108 bytes. A longer path is shortened by the folder's descriptor, which @folder
 * keeps open. */
static int
fillAddress(const char *path, struct sockaddr_un *address, int *folder)
{
    g_autofree char *parent = NULL;
    g_autofree char *name = NULL;
    g_autofree char *shorter = NULL;

    memset(address, 0, sizeof(*address));
    address->sun_family = AF_UNIX;
    if (strlen(path) < sizeof(address->sun_path)) {
        strcpy(address->sun_path, path);
        return 0;
    }

    parent = g_path_get_dirname(path);
    name = g_path_get_basename(path);
    *folder = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (*folder < 0)
        return -1;
    shorter = g_strdup_printf("/proc/self/fd/%d/%s", *folder, name);
    if (strlen(shorter) >= sizeof(address->sun_path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(address->sun_path, shorter);
    return 0;
}

int
vspQmpConnect(const char *path, GCancellable *cancellable, GError **error)
{
    gint64 deadline = vspDeadline(VSP_QMP_TIMEOUT_GREETING);
    g_autofree char *name = vspNameEscape(path);
    g_auto(vspFd) folder = -1;
    g_auto(vspFd) fd = -1;
    struct sockaddr_un address;

    if (*path == '\0') {
        vspSetError(error, VSP_ERROR_INVALID_ARGUMENT,
                    _("the path of the monitor socket is empty"));
        return -1;
    }
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || fillAddress(path, &address, &folder) < 0) {
        vspSetErrno(error, errno, _("cannot connect to the monitor '%s'"), name);
        return -1;
    }

    while (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
        if (errno == ECONNREFUSED) {
            vspSetError(error, VSP_ERROR_NOT_FOUND,
                        _("cannot connect to the monitor '%s': nobody listens there"), name);
            return -1;
        }
        if (errno != EAGAIN && errno != EINTR) {
            vspSetErrno(error, errno, _("cannot connect to the monitor '%s'"), name);
            return -1;
        }
        if (cancellable && g_cancellable_is_cancelled(cancellable)) {
            vspSetError(error, VSP_ERROR_ABORTED, _("cancelled"));
            return -1;
        }
        if (g_get_monotonic_time() >= deadline) {
            vspSetError(error, VSP_ERROR_TIMED_OUT,
                        _("cannot connect to the monitor '%s': its queue of clients stays full"),
                        name);
            return -1;
        }
        g_usleep(RETRY_MS * 1000);
    }
    return vspFdSteal(&fd);
}
