/*
 * save-twenty-lines.c: writes stdin to a file at the speed of the disk, and knows when it is there
 *
 *   producer | save-twenty-lines FILE
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
#include <vmspool/vmspool.h>

int
main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "out";
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    g_autoptr(vspFileWrapperFd) wfd = NULL;
    g_autoptr(GError) error = NULL;
    char buf[65536];
    ssize_t n;

    if (fd < 0) {
        perror(path);
        return 1;
    }
    signal(SIGPIPE, SIG_IGN); /* a helper that fails is told by Close, with the reason */
    wfd = vspFileWrapperFdNew(&fd, path, VSP_FILE_WRAPPER_BYPASS_CACHE, &error);
    if (wfd) {
        /* fd is a stream now: write it here, or give it to QEMU, a compressor, ... */
        while ((n = read(STDIN_FILENO, buf, sizeof(buf))) > 0 && write(fd, buf, n) == n)
            continue;
        close(fd);
        if (vspFileWrapperFdClose(wfd, &error) == 0)
            return n == 0 ? 0 : 1; /* 0: every byte is on the disk */
    }
    g_printerr("%s\n", error->message);
    return 1;
}
