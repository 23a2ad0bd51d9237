/*
 * drive.c: one run of a benchmark: the request, the file that is moved to or from, the result
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "drive.h"

bool
vspDriveNumber(const char *text, uint64_t *number)
{
    unsigned long long value;
    char *end;
    int shift = 0;

    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    value = strtoull(text, &end, 0);
    if (*end == 'k')
        shift = 10;
    else if (*end == 'M')
        shift = 20;
    else if (*end == 'G')
        shift = 30;
    if (shift)
        end++;
    if (errno || *end || value > UINT64_MAX >> shift)
        return false;
    *number = (uint64_t)value << shift;
    return true;
}

bool
vspDriveOption(vspDrive *self, int option, const char *value)
{
    uint64_t number = 0;

    switch (option) {
    case 'r':
        self->restore = true;
        return true;
    case 'f':
        self->path = value;
        return true;
    case 'D':
        self->direct = true;
        return true;
    case 'P':
        self->pageCache = value;
        return strcmp(value, "cold") == 0 || strcmp(value, "hot") == 0;
    case 'p':
        self->load.qemu = strcmp(value, "qemu") == 0;
        if (!self->load.qemu && (!vspDriveNumber(value, &number) || number == 0))
            return false;
        self->load.chunk = number;
        return true;
    case 'b':
        return vspDriveNumber(value, &self->load.bytes) && self->load.bytes > 0;
    case 'z':
        if (!vspDriveNumber(value, &number) || number > 100)
            return false;
        self->load.zero = number;
        return true;
    case 'v':
        self->verify = true;
        return true;
    case 'l':
        if (!vspDriveNumber(value, &number) || number == 0 || number > 86400)
            return false;
        self->limit = number;
        return true;
    default:
        return false;
    }
}

double
vspDriveNow(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

void
vspDriveFail(vspDrive *self, const char *what, int err)
{
    if (self->failure)
        return;
    self->failure = what;
    self->failureErrno = err;
}

/* Share of a file's pages that are in memory. Nothing of it is brought in by asking. */
static double
resident(int fd, size_t bytes)
{
    size_t page = sysconf(_SC_PAGESIZE);
    size_t pages = (bytes + page - 1) / page;
    size_t found = 0;
    double share = -1;
    unsigned char *vector;
    void *map;

    if (pages == 0)
        return -1;
    vector = malloc(pages);
    map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (vector && map != MAP_FAILED && mincore(map, bytes, vector) == 0) {
        for (size_t i = 0; i < pages; i++)
            found += vector[i] & 1;
        share = (double)found / pages;
    }
    if (map != MAP_FAILED)
        munmap(map, bytes);
    free(vector);
    return share;
}

static double
residentPath(const char *path)
{
    double share = -1;
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return -1;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        share = resident(fd, st.st_size);
    close(fd);
    return share;
}

/* Twice, because a page that was touched once is the first to go. */
static int
warm(const char *path)
{
    static char buffer[1 << 18];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = 0;

    if (fd < 0)
        return -1;
    for (int pass = 0; pass < 2 && got >= 0; pass++) {
        off_t offset = 0;

        while ((got = pread(fd, buffer, sizeof(buffer), offset)) > 0)
            offset += got;
    }
    close(fd);
    return got < 0 ? -1 : 0;
}

static int
evict(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int err;

    if (fd < 0)
        return -1;
    /* Dirty pages would stay. */
    err = fdatasync(fd) < 0 ? errno : posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
    errno = err;
    return err ? -1 : 0;
}

int
vspDrivePrepare(vspDrive *self)
{
    int direct = self->direct ? O_DIRECT : 0;
    struct stat st;

    alarm(self->limit);
    /* What is not there yet will be a file. */
    self->regular = stat(self->path, &st) < 0 || S_ISREG(st.st_mode);
    if (self->restore) {
        if (access(self->path, R_OK) < 0)
            return -1;
        if (self->regular)
            self->load.bytes = st.st_size;
        if (self->pageCache &&
            (strcmp(self->pageCache, "hot") == 0 ? warm(self->path) : evict(self->path)) < 0)
            return -1;
        if (self->regular)
            self->residentBefore = residentPath(self->path);
        self->fd = open(self->path, O_RDONLY | O_CLOEXEC | direct);
    } else {
        /* A new file each time: what the last run left must not be its blocks. */
        if (self->regular && unlink(self->path) < 0 && errno != ENOENT)
            return -1;
        self->fd = open(self->path, O_WRONLY | O_CLOEXEC | O_CREAT | direct, 0600);
    }
    if (self->fd < 0)
        return -1;
    /* Nobody's earlier work is to be done on this run's time. */
    if (self->regular && syncfs(self->fd) < 0)
        return -1;
    if (!self->restore) {
        self->syncFd = fcntl(self->fd, F_DUPFD_CLOEXEC, 3);
        if (self->syncFd < 0)
            return -1;
    }
    return 0;
}

int
vspDriveReady(vspDrive *self)
{
    if (!self->restore && vspLoadMake(&self->load) < 0)
        return -1;
    if (self->restore && self->verify && self->regular) {
        int fd = open(self->path, O_RDONLY | O_CLOEXEC);

        self->mapBytes = self->load.bytes;
        self->map = mmap(NULL, self->mapBytes, PROT_READ, MAP_SHARED, fd, 0);
        if (fd >= 0)
            close(fd);
        if (self->map == MAP_FAILED) {
            self->map = NULL;
            return -1;
        }
    }
    getrusage(RUSAGE_SELF, &self->selfBefore);
    return 0;
}

void
vspDriveFinish(vspDrive *self, double started)
{
    double ended = vspDriveNow();
    struct stat st;

    /* Programs that sync have nothing left to do here; the others are compared with their data as
     * durable. Only special files refuse. */
    if (!self->restore && fdatasync(self->syncFd) < 0 && errno != EINVAL && errno != EROFS)
        vspDriveFail(self, "fdatasync", errno);
    getrusage(RUSAGE_SELF, &self->self);
    self->wall = vspDriveNow() - started;
    self->sync = started + self->wall - ended;

    if (self->failure || !self->regular)
        return;
    self->residentAfter = residentPath(self->path);
    if (!self->restore) {
        if (fstat(self->syncFd, &st) < 0 || (uint64_t)st.st_size != self->load.bytes)
            vspDriveFail(self, "the file is not as long as the stream", 0);
        else if (self->verify && vspLoadCompare(&self->load, self->path) < 0)
            vspDriveFail(self, "the file is not what was sent", errno);
    } else if (self->bytes != self->load.bytes) {
        vspDriveFail(self, "the stream is not as long as the file", 0);
    }
}

static double
seconds(struct timeval time)
{
    return time.tv_sec + time.tv_usec / 1e6;
}

int
vspDrivePrint(const vspDrive *self, const char *extra)
{
    if (self->failure) {
        printf("{\"ok\": false, \"error\": \"%s%s%s\"}\n", self->failure,
               self->failureErrno ? ": " : "",
               self->failureErrno ? strerror(self->failureErrno) : "");
        return 1;
    }
    printf("{\"ok\": true, \"bytes\": %llu, \"seconds\": %.6f, \"sync\": %.6f, \"user\": %.6f, "
           "\"system\": %.6f, \"driver_user\": %.6f, \"driver_system\": %.6f, \"peak_kib\": %ld, "
           "\"granted\": %ld, \"resident_before\": %.4f, \"resident_after\": %.4f%s}\n",
           (unsigned long long)self->bytes, self->wall, self->sync, seconds(self->child.ru_utime),
           seconds(self->child.ru_stime),
           seconds(self->self.ru_utime) - seconds(self->selfBefore.ru_utime),
           seconds(self->self.ru_stime) - seconds(self->selfBefore.ru_stime), self->peakKib,
           self->granted, self->residentBefore, self->residentAfter, extra);
    return 0;
}
