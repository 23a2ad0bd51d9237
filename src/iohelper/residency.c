/*
 * residency.c: how much of a file is in the page cache
 *
 * cachestat(2) (Linux 6.5) tells in one call; before it there is mincore(2), which needs the file to be
 * mapped, and so open for reading.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "residency.h"

#ifndef SYS_cachestat
#define SYS_cachestat 451 /* the same number on every architecture */
#endif

/* Mapped at a time: the answer is a byte per page. */
#define WINDOW (256 * 1024 * 1024)

/* As in <linux/mman.h> since 6.5. */
struct cachestatRange {
    guint64 off;
    guint64 len;
};

struct cachestatAnswer {
    guint64 cached;
    guint64 dirty;
    guint64 writeback;
    guint64 evicted;
    guint64 recentlyEvicted;
};

static gint64
askMincore(int fd, off_t start, off_t end)
{
    gsize page = sysconf(_SC_PAGESIZE);
    g_autofree unsigned char *vec = g_malloc(WINDOW / page + 1);
    gint64 resident = 0;

    for (start -= start % page; start < end; start += WINDOW) {
        gsize len = MIN(end - start, WINDOW);
        void *map = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, start);
        int rc;

        if (map == MAP_FAILED)
            return -1;
        rc = mincore(map, len, vec);
        munmap(map, len);
        if (rc < 0)
            return -1;
        for (gsize i = 0; i < (len + page - 1) / page; i++)
            resident += vec[i] & 1 ? page : 0;
    }
    return resident;
}

gint64
vspResidency(int fd, off_t start, off_t end)
{
    struct cachestatRange range = { start, end - start };
    struct cachestatAnswer answer;

    if (end <= start)
        return 0;
    if (syscall(SYS_cachestat, fd, &range, &answer, 0) == 0)
        return answer.cached * sysconf(_SC_PAGESIZE);
    return askMincore(fd, start, end);
}
