/*
 * drive.h: one run of a benchmark: the request, the file that is moved to or from, the result
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_DRIVE_H
#define VSP_DRIVE_H

#include <getopt.h>
#include <sys/resource.h>

#include "load.h"

typedef struct _vspDrive vspDrive;
struct _vspDrive {
    bool restore;
    const char *path;
    bool direct; /* open the file with O_DIRECT, as libvirtd does when it bypasses the cache */
    const char *pageCache; /* "cold", "hot", or NULL: as it is */
    bool verify;           /* compare what arrived; such a run is not to be timed */
    unsigned limit; /* seconds; then SIGALRM ends us, and the end of the stream what we drive */
    vspLoad load;

    int fd;     /* the file, as it goes to the program */
    int syncFd; /* the same, kept for the sync at the end */
    bool regular;
    char *map; /* the file's content, to compare with */
    size_t mapBytes;

    /* The result. Times in seconds. */
    double wall, sync;
    uint64_t bytes;
    struct rusage child, self, selfBefore;
    long peakKib;                         /* of the child's memory */
    long granted;                         /* bytes of buffer in the transport */
    double residentBefore, residentAfter; /* share of the file in the page cache, -1: not known */
    const char *failure;                  /* what failed first, or NULL */
    int failureErrno;
};

/* Options that every driver has. */
/* clang-format off */
#define VSP_DRIVE_OPTIONS                                                                          \
    { "restore", no_argument, NULL, 'r' },                                                         \
    { "file", required_argument, NULL, 'f' },                                                      \
    { "direct", no_argument, NULL, 'D' },                                                          \
    { "page-cache", required_argument, NULL, 'P' },                                                \
    { "pattern", required_argument, NULL, 'p' },                                                   \
    { "bytes", required_argument, NULL, 'b' },                                                     \
    { "zero", required_argument, NULL, 'z' },                                                      \
    { "verify", no_argument, NULL, 'v' },                                                          \
    { "limit", required_argument, NULL, 'l' }

#define VSP_DRIVE_HELP                                                                             \
    "  --file PATH          what is written to, or read from with --restore\n"                     \
    "  --restore            read the file and drain the stream\n"                                  \
    "  --direct             open the file with O_DIRECT\n"                                         \
    "  --page-cache=STATE   before reading: cold (evicted), hot (read twice)\n"                    \
    "  --pattern=WHAT       qemu (the default), or bytes in a write or a read\n"                   \
    "  --bytes=N            length of the stream that is written\n"                                \
    "  --zero=PERCENT       so many of the pages are zero\n"                                       \
    "  --verify             compare what arrived\n"                                                \
    "  --limit=SECONDS      give up after that\n"

#define VSP_DRIVE_INIT                                                                             \
    {                                                                                              \
        .limit = 300, .fd = -1, .syncFd = -1, .residentBefore = -1, .residentAfter = -1,           \
        .load = { .qemu = true, .bytes = 1 << 30 }                                                 \
    }
/* clang-format on */

/* Takes one of the options above; false if it is none or makes no sense. */
bool vspDriveOption(vspDrive *self, int option, const char *value);

/* A number with an optional suffix k, M or G. False if it is none. */
bool vspDriveNumber(const char *text, uint64_t *number);

double vspDriveNow(void);

/* Opens the file, makes what is there durable, and brings the page cache into the state asked for.
 * To be called before the payload exists: what is forked in between should be small. */
int vspDrivePrepare(vspDrive *self);

/* The payload, and what else has to be there when the clock starts. */
int vspDriveReady(vspDrive *self);

/* To be called when the program has ended: syncs (with the time in @wall), and looks at the
 * result. */
void vspDriveFinish(vspDrive *self, double started);

/* Notes what failed, unless something did before. */
void vspDriveFail(vspDrive *self, const char *what, int err);

/* One line of JSON on stdout; @extra: more members, or "". Returns the exit status. */
int vspDrivePrint(const vspDrive *self, const char *extra);

#endif
