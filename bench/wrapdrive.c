/*
 * wrapdrive.c: feeds or drains a wrapper of the library's, and times it
 *
 * The counterpart of helperdrive for the library's own transport. Its clock runs from before
 * vspFileWrapperFdNew() until after vspFileWrapperFdClose(): the start of the helper, its hello and
 * its verdict are in.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vmspool/vmspool.h>

#include "drive.h"

static const char usage[] =
    "wrapdrive OPTIONS\n" VSP_DRIVE_HELP "  --bypass-cache       VSP_FILE_WRAPPER_BYPASS_CACHE\n"
    "  --sparse             VSP_FILE_WRAPPER_SPARSE\n"
    "  --transport=KIND     auto (the default), pipe or socket\n"
    "  --cache=MODE         auto (the default), direct, dontcache, paced or cached\n"
    "  --engine=ENGINE      uring, threads, zerocopy or sync\n"
    "  --buffers=N          of the helper's ring\n"
    "  --buffer-size=BYTES  of each\n"
    "  --helper=PATH        another helper\n";

/* Peak of the memory of our only child, in KiB; 0 if it is gone. ru_maxrss would not do: a child
 * begins with the peak of the process that started it, which has the payload. */
static long
peakOfChild(void)
{
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *task;
    char path[300], line[128];
    int pid = 0;
    long peak = 0;
    FILE *file;

    while (tasks && pid == 0 && (task = readdir(tasks))) {
        snprintf(path, sizeof(path), "/proc/self/task/%s/children", task->d_name);
        file = fopen(path, "re");
        if (!file)
            continue;
        if (fscanf(file, "%d", &pid) != 1)
            pid = 0;
        fclose(file);
    }
    if (tasks)
        closedir(tasks);
    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    file = pid ? fopen(path, "re") : NULL;
    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, "VmHWM: %ld", &peak) == 1)
            break;
    if (file)
        fclose(file);
    return peak;
}

static bool
takeOption(vspFileWrapperOptions *options, int option, const char *value, uint64_t ring[2])
{
    vspTransport transport;
    vspCacheMode mode;

    switch (option) {
    case 't':
        if (!vspTransportFromString(value, &transport))
            return false;
        vspFileWrapperOptionsSetTransport(options, transport);
        return true;
    case 'c':
        if (!vspCacheModeFromString(value, &mode))
            return false;
        vspFileWrapperOptionsSetCacheMode(options, mode);
        return true;
    case 'e':
        vspFileWrapperOptionsSetEngine(options, value);
        return true;
    case 'n':
    case 's':
        if (!vspDriveNumber(value, &ring[option == 's']))
            return false;
        vspFileWrapperOptionsSetBuffers(options, ring[0], ring[1]);
        return true;
    case 'H':
        vspFileWrapperOptionsSetHelperPath(options, value);
        return true;
    default:
        return false;
    }
}

/* Returns the statistics as JSON; NULL after a failure, which is printed. */
static char *
run(vspDrive *drive, const vspFileWrapperOptions *options)
{
    g_autoptr(vspFileWrapperFd) wfd = NULL;
    g_autoptr(GError) error = NULL;
    g_autoptr(GVariant) statistics = NULL;
    double started;
    int err = 0;

    signal(SIGPIPE, SIG_IGN);
    if (vspDriveReady(drive) < 0) {
        vspDriveFail(drive, "cannot make the payload", errno);
        return NULL;
    }
    started = vspDriveNow();
    wfd = vspFileWrapperFdNewWithOptions(&drive->fd, drive->path, options, &error);
    if (!wfd) {
        fprintf(stderr, "wrapdrive: %s\n", error->message);
        vspDriveFail(drive, "the wrapper could not be made", 0);
        return NULL;
    }
    if (drive->restore) {
        if (vspLoadConsume(&drive->load, drive->fd, drive->map, &drive->bytes) < 0)
            err = errno;
    } else {
        if (vspLoadProduce(&drive->load, drive->fd) < 0)
            err = errno;
        else
            drive->bytes = drive->load.bytes;
        /* All buffers were in use by now. Restoring, the helper may have ended: no figure then. */
        drive->peakKib = peakOfChild();
    }
    close(drive->fd);
    if (vspFileWrapperFdClose(wfd, &error) < 0) {
        fprintf(stderr, "wrapdrive: %s\n", error->message);
        vspDriveFail(drive, "the helper failed", 0);
    } else if (err == EILSEQ) {
        vspDriveFail(drive, "what arrived is not what is in the file", 0);
    } else if (err) {
        vspDriveFail(drive, "the stream broke", err);
    }
    vspDriveFinish(drive, started);
    statistics = vspFileWrapperFdGetStatistics(wfd);
    drive->granted = 0;
    g_variant_lookup(statistics, "transport-granted", "t", &drive->granted);
    g_clear_pointer(&wfd, vspFileWrapperFdFree);
    getrusage(RUSAGE_CHILDREN, &drive->child);
    return vspReportToJson(statistics);
}

int
main(int argc, char **argv)
{
    vspDrive drive = VSP_DRIVE_INIT;
    g_autoptr(vspFileWrapperOptions) options = vspFileWrapperOptionsNew();
    g_autofree char *statistics = NULL;
    g_autofree char *extra = NULL;
    unsigned int flags = 0;
    uint64_t ring[2] = { 0, 0 };
    int option;
    const struct option table[] = { VSP_DRIVE_OPTIONS,
                                    { "bypass-cache", no_argument, NULL, 'y' },
                                    { "sparse", no_argument, NULL, 'S' },
                                    { "transport", required_argument, NULL, 't' },
                                    { "cache", required_argument, NULL, 'c' },
                                    { "engine", required_argument, NULL, 'e' },
                                    { "buffers", required_argument, NULL, 'n' },
                                    { "buffer-size", required_argument, NULL, 's' },
                                    { "helper", required_argument, NULL, 'H' },
                                    { "help", no_argument, NULL, 'h' },
                                    { NULL, 0, NULL, 0 } };

    while ((option = getopt_long(argc, argv, "", table, NULL)) != -1) {
        if (option == 'y') {
            flags |= VSP_FILE_WRAPPER_BYPASS_CACHE;
        } else if (option == 'S') {
            flags |= VSP_FILE_WRAPPER_SPARSE;
        } else if (option == 'h') {
            fputs(usage, stdout);
            return 0;
        } else if (!takeOption(options, option, optarg, ring) &&
                   !vspDriveOption(&drive, option, optarg)) {
            fputs(usage, stderr);
            return 2;
        }
    }
    if (!drive.path || optind < argc) {
        fputs(usage, stderr);
        return 2;
    }
    vspFileWrapperOptionsSetFlags(options, flags);
    if (vspDrivePrepare(&drive) < 0)
        vspDriveFail(&drive, "cannot prepare the file", errno);
    else
        statistics = run(&drive, options);
    vspLoadClear(&drive.load);
    extra = statistics ? g_strdup_printf(", \"statistics\": %s", statistics) : g_strdup("");
    return vspDrivePrint(&drive, extra);
}
