/*
 * fake-helper.c: iohelpers that do something wrong; the name it is started by says what
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <poll.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vspstatus.h"

#define STATUS_FD 3

static void
hello(int version)
{
    vspStatusHello record = {
        .header = { VSP_STATUS_MAGIC, version, VSP_STATUS_HELLO },
        .pid = getpid(),
    };

    send(STATUS_FD, &record, sizeof(record), MSG_NOSIGNAL);
}

static void
verdict(int ok, int errnum)
{
    vspStatusRecord record = { .verdict = { .ok = ok,
                                            .errnum = errnum,
                                            .operation = VSP_OPERATION_WRITE,
                                            .side = VSP_SIDE_FILE,
                                            .offset = 4711 } };

    vspStatusSend(STATUS_FD, &record, VSP_STATUS_VERDICT, TRUE);
}

static void
progress(guint64 bytes)
{
    vspStatusRecord record = { .progress = { .stage = 1, .bytesIn = bytes, .bytesOut = bytes } };

    vspStatusSend(STATUS_FD, &record, VSP_STATUS_PROGRESS, TRUE);
}

static void
drain(void)
{
    char buf[65536];

    while (read(STDIN_FILENO, buf, sizeof(buf)) > 0)
        continue;
}

/* A process that holds the channel until the library lets go of its end. */
static void
leaveHolder(void)
{
    struct pollfd pfd = { .fd = STATUS_FD, .events = 0 };

    if (fork() != 0)
        return;
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    do {
        while (poll(&pfd, 1, -1) < 0 && errno == EINTR)
            continue;
    } while (!(pfd.revents & (POLLHUP | POLLERR | POLLNVAL)));
    _exit(0);
}

int
main(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/');
    const char *what = slash ? slash + 1 : argv[0];

    if (g_str_equal(what, "other-version")) {
        hello(VSP_STATUS_VERSION + 1);
        pause();
    } else if (g_str_equal(what, "older-version")) {
        hello(0);
    } else if (g_str_equal(what, "other-protocol")) {
        send(STATUS_FD, "220 ready\r\n", 11, 0);
    } else if (g_str_equal(what, "says-why")) {
        fprintf(stderr, "the moon is\nin the way\n");
        return 3;
    } else if (g_str_equal(what, "refuses")) {
        verdict(0, EIO);
        return 1;
    } else if (g_str_equal(what, "no-verdict")) {
        hello(VSP_STATUS_VERSION);
        drain();
    } else if (g_str_equal(what, "says-why-later")) {
        hello(VSP_STATUS_VERSION);
        drain();
        progress(12345);
        fprintf(stderr, "assertion failed");
        abort();
    } else if (g_str_equal(what, "fails-at-once")) {
        hello(VSP_STATUS_VERSION);
        verdict(0, ENOSPC);
        return 1;
    } else if (g_str_equal(what, "two-verdicts")) {
        hello(VSP_STATUS_VERSION);
        drain();
        verdict(0, ENOSPC);
        verdict(1, 0);
    } else if (g_str_equal(what, "other-status")) {
        hello(VSP_STATUS_VERSION);
        drain();
        verdict(1, 0);
        return 1;
    } else if (g_str_equal(what, "does-not-end")) {
        hello(VSP_STATUS_VERSION);
        drain();
        verdict(1, 0);
        pause();
    } else if (g_str_equal(what, "holds-channel")) {
        hello(VSP_STATUS_VERSION);
        leaveHolder();
        pause();
    } else if (g_str_equal(what, "closes-channel")) {
        hello(VSP_STATUS_VERSION);
        close(STATUS_FD);
        pause();
    } else {
        fprintf(stderr, "no such behaviour: %s\n", what);
        return 1;
    }
    return 0;
}
