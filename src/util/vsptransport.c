/*
 * vsptransport.c: the pipe or socket pair between the caller and the iohelper
 *
 * Sizes are hints: whatever the kernel refuses, a pair comes out, and what it got is read back.
 *
 * Pipes.  F_SETPIPE_SZ beyond /proc/sys/fs/pipe-max-size is EPERM without CAP_SYS_RESOURCE, beyond
 * the user's soft limit too, and ENOMEM or EBUSY are known as well. The answer to each is the same:
 * half as much. A user over the soft limit gets pipes of a page or two, too small to be of use, so
 * below 256 KiB a socket pair takes the pipe's place.
 *
 * Sockets.  For AF_UNIX stream sockets only the sender's SO_SNDBUF counts: skbs are charged to the
 * sender until they are read. The kernel doubles what is asked to cover its own overhead, and clips
 * at net.core.wmem_max without an error; SO_SNDBUFFORCE goes beyond it with CAP_NET_ADMIN.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gi18n-lib.h>
#include <stdio.h>
#include <linux/vm_sockets.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vsperrorpriv.h"
#include "vspfd.h"
#include "vsptransport.h"

/* Larger pipes keep both sides busy for longer between switches; each costs kernel memory of its
 * size for as long as it lives. Beyond 4 MiB nothing is gained. */
#define PIPE_SIZE_MAX (4 * 1024 * 1024)
/* The kernel's default for pipe-max-size, used where the value can't be read. */
#define PIPE_SIZE_DEFAULT (1024 * 1024)
/* Below this a pipe costs more in switches than a socket pair in copies. */
#define PIPE_SIZE_USEFUL (256 * 1024)

/* More lets the writer run further ahead of the disk; it is kernel memory per connection, and the
 * gain is flat beyond 2 MiB. */
#define SOCKET_SEND_BUFFER (2 * 1024 * 1024)
/* Where asking for less ends. */
#define SOCKET_SEND_BUFFER_MIN (64 * 1024)

static gsize
pipeSizeLimit(void)
{
    unsigned long value;
    g_autofree char *text = NULL;

    if (g_file_get_contents("/proc/sys/fs/pipe-max-size", &text, NULL, NULL) &&
        sscanf(text, "%lu", &value) == 1)
        return CLAMP(value, 4096, PIPE_SIZE_MAX);
    return PIPE_SIZE_DEFAULT;
}

gsize
vspTransportEnlargePipe(int fd)
{
    int have = fcntl(fd, F_GETPIPE_SZ);
    gsize want;

    if (have < 0)
        return 0;
    want = pipeSizeLimit();
    while (want > (gsize) have) {
        if (fcntl(fd, F_SETPIPE_SZ, (int) want) >= 0)
            break;
        want /= 2;
    }
    /* Read back: what is set is rounded up to a power of two pages. */
    have = fcntl(fd, F_GETPIPE_SZ);
    return have < 0 ? 0 : have;
}

static int
openPipe(vspTransportPair *pair)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0)
        return -1;
    pair->kind = VSP_TRANSPORT_PIPE;
    pair->readEnd = fds[0];
    pair->writeEnd = fds[1];
    pair->asked = pipeSizeLimit();
    pair->granted = vspTransportEnlargePipe(fds[1]);
    return 0;
}

/* What the kernel has granted. -1 with errno. */
static gssize
getSendBuffer(int fd)
{
    int have = 0;
    socklen_t len = sizeof(have);

    if (getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &have, &len) < 0)
        return -1;
    return have / 2; /* the kernel's doubling taken back */
}

/* Sets and reads back. -1 with errno. */
static gssize
setSendBuffer(int fd, int want)
{
    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &want, sizeof(want)) < 0) {
        /* Clipped silently on Linux; refused where a limit is enforced by an error. */
        while (setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &want, sizeof(want)) < 0) {
            if (want / 2 < SOCKET_SEND_BUFFER_MIN)
                return -1;
            want /= 2;
        }
    }
    return getSendBuffer(fd);
}

static int
openSocket(vspTransportPair *pair)
{
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        return -1;
    pair->kind = VSP_TRANSPORT_SOCKET;
    pair->readEnd = fds[0];
    pair->writeEnd = fds[1];
    pair->asked = SOCKET_SEND_BUFFER;
    /* Refused: what there is will have to do. */
    setSendBuffer(fds[1], SOCKET_SEND_BUFFER);
    pair->granted = MAX(getSendBuffer(fds[1]), 0);
    return 0;
}

int
vspTransportOpen(vspTransport kind, vspTransportPair *pair, GError **error)
{
    *pair = (vspTransportPair){ .readEnd = -1, .writeEnd = -1 };

    if (kind == VSP_TRANSPORT_PIPE) {
        vspTransportPair other = { .readEnd = -1, .writeEnd = -1 };

        if (openPipe(pair) < 0) {
            if (openSocket(pair) == 0)
                pair->fallback = "no pipe could be made";
        } else if (pair->granted < PIPE_SIZE_USEFUL && openSocket(&other) == 0) {
            other.asked = pair->asked;
            other.fallback = "the host grants only small pipes";
            vspTransportClose(pair);
            *pair = other;
        }
    } else if (openSocket(pair) < 0 && openPipe(pair) == 0) {
        pair->fallback = "no socket pair could be made";
    }

    if (pair->readEnd < 0) {
        vspSetErrno(error, errno, _("cannot create the transport to the iohelper"));
        return -1;
    }
    return 0;
}

/* Sets and reads back. -1 with errno. */
static gssize
setVmSocketBuffer(int fd, guint64 bytes)
{
    guint64 have = 0;
    socklen_t len = sizeof(have);

    /* A buffer beyond the maximum is clipped, so that is raised first. */
    if (setsockopt(fd, AF_VSOCK, SO_VM_SOCKETS_BUFFER_MAX_SIZE, &bytes, sizeof(bytes)) < 0 ||
        setsockopt(fd, AF_VSOCK, SO_VM_SOCKETS_BUFFER_SIZE, &bytes, sizeof(bytes)) < 0 ||
        getsockopt(fd, AF_VSOCK, SO_VM_SOCKETS_BUFFER_SIZE, &have, &len) < 0)
        return -1;
    return have;
}

gssize
vspSocketSetSendBuffer(int fd, gsize bytes, GError **error)
{
    int family = 0;
    socklen_t len = sizeof(family);
    gssize granted;

    if (bytes > G_MAXINT / 2) {
        vspSetError(error, VSP_ERROR_INVALID_ARGUMENT, _("no socket has a send buffer of %zu bytes"), bytes);
        return -1;
    }
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &len) < 0)
        granted = -1;
    else
        granted = family == AF_VSOCK ? setVmSocketBuffer(fd, bytes) : setSendBuffer(fd, bytes);
    if (granted < 0)
        vspSetErrno(error, errno, _("cannot set the send buffer of descriptor %d"), fd);
    return granted;
}

void
vspTransportClose(vspTransportPair *pair)
{
    vspFdClose(&pair->readEnd);
    vspFdClose(&pair->writeEnd);
}
