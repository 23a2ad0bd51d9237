/*
 * helperdrive.c: feeds or drains a program over a pipe or a socket pair, and times it
 *
 * The program gets what libvirtd gives its iohelper: the stream as stdin and the file as stdout, or
 * the other way round. So anything that copies stdin to stdout can be driven. In its arguments @F
 * stands for the number of the file's descriptor and @N for its name.
 *
 * The clock starts before the program is started and stops when it has ended and the file is
 * synced.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drive.h"

extern char **environ;

typedef struct _vspEnding vspEnding;
struct _vspEnding {
    int error; /* errno of a failed start */
    int status;
    struct rusage usage;
};

static const char usage[] =
    "helperdrive OPTIONS -- PROGRAM ARGUMENTS...   (@F: the file's descriptor, @N: its name)\n"
    "helperdrive OPTIONS --make                    (write the stream into the file, untimed)\n"
    "helperdrive --sink BYTES                      (read stdin to its end, so many at "
    "once)\n" VSP_DRIVE_HELP "  --transport=KIND     pipe (the default) or socket\n"
    "  --buffer=BYTES       its buffer: F_SETPIPE_SZ, SO_SNDBUF; 0: the kernel's default\n";

/* ends[0] is read from, ends[1] written to. */
static int
makeTransport(bool useSocket, uint64_t bytes, int ends[2], long *granted)
{
    int value = bytes;
    socklen_t length = sizeof(value);

    if (!useSocket) {
        if (pipe2(ends, O_CLOEXEC) < 0 || (bytes && fcntl(ends[1], F_SETPIPE_SZ, value) < 0))
            return -1;
        *granted = fcntl(ends[1], F_GETPIPE_SZ);
        return 0;
    }
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return -1;
    /* What is above net.core.wmem_max needs the privilege. Without it the kernel clips. */
    if (bytes && setsockopt(ends[1], SOL_SOCKET, SO_SNDBUFFORCE, &value, sizeof(value)) < 0 &&
        setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &value, sizeof(value)) < 0)
        return -1;
    if (getsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &value, &length) < 0)
        return -1;
    *granted = value / 2; /* the kernel doubles it, for its own needs */
    return 0;
}

/* Starts the program when told to, and tells how it ended.
 *
 * A process of its own because of ru_maxrss: a program that is forked from a process with a payload
 * of 64 MiB starts with a peak of 64 MiB, by vfork as well. This one is forked before there is a
 * payload. */
static void
launch(char **argv, int in, int out, int go, int report)
{
    posix_spawn_file_actions_t actions;
    vspEnding end = { 0 };
    char byte;
    pid_t pid;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in, 0);
    posix_spawn_file_actions_adddup2(&actions, out, 1);
    if (read(go, &byte, 1) != 1)
        _exit(1);
    end.error = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
    close(in);
    close(out);
    if (!end.error && wait4(pid, &end.status, 0, &end.usage) < 0)
        end.error = errno;
    if (write(report, &end, sizeof(end)) != sizeof(end))
        _exit(1);
    _exit(0);
}

static void
run(vspDrive *drive, char **argv, bool useSocket, uint64_t buffer)
{
    int ends[2], go[2], report[2];
    vspEnding end;
    double started;
    ssize_t got;
    pid_t launcher;
    int err = 0;

    if (makeTransport(useSocket, buffer, ends, &drive->granted) < 0 || pipe2(go, O_CLOEXEC) < 0 ||
        pipe2(report, O_CLOEXEC) < 0) {
        vspDriveFail(drive, "cannot make the transport", errno);
        return;
    }
    launcher = fork();
    if (launcher < 0) {
        vspDriveFail(drive, "cannot fork", errno);
        return;
    }
    if (launcher == 0) {
        close(go[1]);
        close(ends[drive->restore ? 0 : 1]);
        if (drive->restore)
            launch(argv, drive->fd, ends[1], go[0], report[1]);
        else
            launch(argv, ends[0], drive->fd, go[0], report[1]);
    }
    close(ends[drive->restore ? 1 : 0]);
    close(report[1]);
    close(go[0]);
    close(drive->fd);
    signal(SIGPIPE, SIG_IGN);
    if (vspDriveReady(drive) < 0) {
        vspDriveFail(drive, "cannot make the payload", errno);
        return;
    }

    started = vspDriveNow();
    if (write(go[1], "!", 1) != 1)
        vspDriveFail(drive, "cannot start", errno);
    if (drive->restore) {
        if (vspLoadConsume(&drive->load, ends[0], drive->map, &drive->bytes) < 0)
            err = errno;
        close(ends[0]);
    } else {
        if (vspLoadProduce(&drive->load, ends[1]) < 0)
            err = errno;
        else
            drive->bytes = drive->load.bytes;
        close(ends[1]);
    }
    got = read(report[0], &end, sizeof(end));

    /* What the program has to say comes first: a broken pipe follows from it. */
    if (got != sizeof(end))
        vspDriveFail(drive, "the launcher ended", 0);
    else if (end.error)
        vspDriveFail(drive, "cannot run the program", end.error);
    else if (err == EILSEQ)
        vspDriveFail(drive, "what arrived is not what is in the file", 0);
    else if (!WIFEXITED(end.status) || WEXITSTATUS(end.status) != 0)
        vspDriveFail(drive, "the program failed", 0);
    else if (err)
        vspDriveFail(drive, "the stream broke", err);
    vspDriveFinish(drive, started);
    drive->child = end.usage;
    drive->peakKib = end.usage.ru_maxrss;
    waitpid(launcher, NULL, 0);
}

static int
sink(const char *text)
{
    vspLoad load = { 0 };
    uint64_t size, bytes;

    if (!vspDriveNumber(text, &size) || size == 0) {
        fputs(usage, stderr);
        return 2;
    }
    load.chunk = size;
    return vspLoadConsume(&load, 0, NULL, &bytes) < 0;
}

static int
make(vspDrive *drive)
{
    if (vspDrivePrepare(drive) < 0 || vspDriveReady(drive) < 0 ||
        vspLoadProduce(&drive->load, drive->fd) < 0 || fdatasync(drive->fd) < 0) {
        perror(drive->path);
        return 1;
    }
    return 0;
}

int
main(int argc, char **argv)
{
    vspDrive drive = VSP_DRIVE_INIT;
    bool useSocket = false, onlyMake = false;
    uint64_t buffer = 1 << 20;
    char number[2] = "1";
    int option;
    const struct option options[] = { VSP_DRIVE_OPTIONS,
                                      { "transport", required_argument, NULL, 't' },
                                      { "buffer", required_argument, NULL, 'B' },
                                      { "sink", required_argument, NULL, 's' },
                                      { "make", no_argument, NULL, 'm' },
                                      { "help", no_argument, NULL, 'h' },
                                      { NULL, 0, NULL, 0 } };

    while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1) {
        bool good = true;

        if (option == 't') {
            useSocket = strcmp(optarg, "socket") == 0;
            good = useSocket || strcmp(optarg, "pipe") == 0;
        } else if (option == 'B') {
            good = vspDriveNumber(optarg, &buffer) && buffer <= INT32_MAX;
        } else if (option == 's') {
            return sink(optarg);
        } else if (option == 'm') {
            onlyMake = true;
        } else if (option == 'h') {
            fputs(usage, stdout);
            return 0;
        } else {
            good = vspDriveOption(&drive, option, optarg);
        }
        if (!good) {
            fputs(usage, stderr);
            return 2;
        }
    }
    if (!drive.path || (optind < argc) == onlyMake) {
        fputs(usage, stderr);
        return 2;
    }
    if (onlyMake)
        return make(&drive);
    if (drive.restore)
        number[0] = '0';
    for (int i = optind; i < argc; i++) {
        if (strcmp(argv[i], "@F") == 0)
            argv[i] = number;
        else if (strcmp(argv[i], "@N") == 0)
            argv[i] = (char *)drive.path;
    }
    if (vspDrivePrepare(&drive) < 0)
        vspDriveFail(&drive, "cannot prepare the file", errno);
    else
        run(&drive, argv + optind, useSocket, buffer);
    vspLoadClear(&drive.load);
    return vspDrivePrint(&drive, "");
}
