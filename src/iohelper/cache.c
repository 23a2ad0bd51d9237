/*
 * cache.c: how a file treats the page cache
 *
 *   direct ──▶ dontcache ──▶ paced ──▶ cached
 *
 * direct     O_DIRECT: no page of the file is in memory. Everything is aligned; the last unaligned
 *            bytes go out with the flag taken off.
 * dontcache  RWF_DONTCACHE (Linux 6.14): buffered I/O whose pages are written back at once and dropped
 *            as soon as they are clean.
 * paced      the same by hand for older kernels: write-back is started early, the window of dirty
 *            pages is bounded, and pages behind it are dropped.
 * cached     the plain page cache.
 *
 * The way is down only, and a step down in mid-stream repeats the I/O that was refused: EINVAL from a
 * file system that took the flag and not the I/O, EOPNOTSUPP from one without RWF_DONTCACHE.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gi18n-lib.h>
#include <linux/fs.h>
#include <linux/stat.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "cache.h"

#ifndef RWF_DONTCACHE
#define RWF_DONTCACHE 0x00000080 /* Linux 6.14 */
#endif

/* A page: what every file system that we know of can take, and large enough for 4 KiB sectors. */
#define ALIGNMENT_MIN 4096

/* Dirty bytes that pacing allows. More lets the disk see larger requests; every other program's
 * fsync waits behind that much. */
#define PACED_WINDOW (32 * 1024 * 1024)
/* How often write-back is started. Less means more system calls, more means a later start. */
#define PACED_STEP (8 * 1024 * 1024)

/* Known only when the first I/O comes back. */
static const char directRefused[] = N_("the file system took O_DIRECT and refused direct I/O");
static const char dontcacheRefused[] = N_("kernel or file system lack RWF_DONTCACHE");

struct _vspCache {
    int fd; /* borrowed */
    gboolean writing;
    gboolean strict;
    vspCacheMode asked;
    vspCacheMode mode;
    gsize alignment;   /* of direct mode */
    gboolean suspended; /* direct mode with O_DIRECT taken off for now */
    int flags;         /* of the descriptor, as it came */
    off_t started;     /* paced: write-back was started up to here */
    off_t dropped;     /* paced: clean and dropped up to here */
    const char *notice;
};

vspCache *
vspCacheNew(int fd, gboolean writing)
{
    vspCache *cache = g_new0(vspCache, 1);

    cache->fd = fd;
    cache->writing = writing;
    cache->mode = cache->asked = VSP_CACHE_CACHED;
    cache->alignment = ALIGNMENT_MIN;
    cache->flags = fcntl(fd, F_GETFL);
    return cache;
}

void
vspCacheFree(vspCache *cache)
{
    g_free(cache);
}

static int
setDirect(vspCache *cache, gboolean on)
{
    int flags = fcntl(cache->fd, F_GETFL);

    if (flags < 0)
        return -errno;
    if (!!(flags & O_DIRECT) == on)
        return 0;
    return fcntl(cache->fd, F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT) < 0 ? -errno : 0;
}

/* What O_DIRECT needs here. 0, or -errno if the file system says that it can't. */
static int
queryAlignment(vspCache *cache)
{
    struct stat st;
    int sector = 0;
    gsize need = 0;
#ifdef STATX_DIOALIGN
    struct statx stx;

    /* Linux 6.1; the mask tells whether the file system answered. */
    if (statx(cache->fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &stx) == 0 &&
        stx.stx_mask & STATX_DIOALIGN) {
        if (stx.stx_dio_offset_align == 0)
            return -EINVAL;
        need = MAX(stx.stx_dio_offset_align, stx.stx_dio_mem_align);
    }
#endif
    if (need == 0 && fstat(cache->fd, &st) == 0 && S_ISBLK(st.st_mode) &&
        ioctl(cache->fd, BLKSSZGET, &sector) == 0 && sector > 0)
        need = sector;
    if (need > VSP_CACHE_MAX_ALIGNMENT || (need & (need - 1)))
        return -EINVAL;
    cache->alignment = MAX(need, ALIGNMENT_MIN);
    return 0;
}

/* Tries one rung. 0 or -errno. */
static int
enter(vspCache *cache, vspCacheMode mode)
{
    int rc;

    if (mode == VSP_CACHE_DIRECT) {
        rc = queryAlignment(cache);
        if (rc == 0)
            rc = setDirect(cache, TRUE);
    } else {
        rc = setDirect(cache, FALSE);
    }
    if (rc == 0)
        cache->mode = mode;
    return rc;
}

int
vspCacheSetUp(vspCache *cache,
              vspCacheMode asked,
              gboolean hot,
              gboolean strict,
              int *errnum,
              const char **why)
{
    int rc;

    /* A caller that opened with O_DIRECT has chosen, unless it says otherwise. */
    if (asked == VSP_CACHE_AUTO && cache->flags & O_DIRECT)
        asked = VSP_CACHE_DIRECT;
    cache->asked = asked;
    cache->strict = strict;
    /* Direct I/O is the fastest with the sync counted in, on the processor too (docs/benchmarks.md), but
     * for what is in memory already. */
    if (asked == VSP_CACHE_AUTO)
        asked = hot && !cache->writing ? VSP_CACHE_CACHED : VSP_CACHE_DIRECT;

    rc = enter(cache, asked);
    if (rc < 0 && asked == VSP_CACHE_DIRECT) {
        if (strict) {
            *errnum = -rc;
            *why = N_("the file system refuses direct I/O");
            return -1;
        }
        if (cache->asked != VSP_CACHE_AUTO)
            cache->notice = N_("the file system refuses direct I/O");
        rc = enter(cache, VSP_CACHE_DONTCACHE);
    }
    if (rc < 0) {
        *errnum = -rc;
        *why = N_("the descriptor's flags cannot be set");
        return -1;
    }
    if (!cache->writing)
        posix_fadvise(cache->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return 0;
}

vspCacheMode
vspCacheGetMode(const vspCache *cache)
{
    return cache->mode;
}

vspCacheMode
vspCacheGetAsked(const vspCache *cache)
{
    return cache->asked;
}

const char *
vspCacheGetNotice(const vspCache *cache)
{
    return cache->notice;
}

gsize
vspCacheGetAlignment(const vspCache *cache)
{
    return cache->mode == VSP_CACHE_DIRECT && !cache->suspended ? cache->alignment : 1;
}

gsize
vspCacheGetBlock(const vspCache *cache)
{
    return cache->mode == VSP_CACHE_DIRECT ? cache->alignment : 1;
}

int
vspCacheGetRwFlags(const vspCache *cache)
{
    return cache->mode == VSP_CACHE_DONTCACHE ? RWF_DONTCACHE : 0;
}

gboolean
vspCacheStepDown(vspCache *cache, vspCacheMode rung, int errnum)
{
    if (rung == VSP_CACHE_DIRECT && (errnum == EINVAL || errnum == EOPNOTSUPP)) {
        if (cache->mode == VSP_CACHE_DIRECT) {
            if (cache->strict || enter(cache, VSP_CACHE_DONTCACHE) < 0)
                return FALSE;
            if (cache->asked != VSP_CACHE_AUTO)
                cache->notice = directRefused;
        }
        return TRUE;
    }
    if (rung == VSP_CACHE_DONTCACHE && (errnum == EOPNOTSUPP || errnum == EINVAL)) {
        if (cache->mode == VSP_CACHE_DONTCACHE) {
            if ((cache->strict && cache->asked == VSP_CACHE_DONTCACHE) ||
                enter(cache, VSP_CACHE_PACED) < 0)
                return FALSE;
            if (!cache->notice && cache->asked != VSP_CACHE_AUTO)
                cache->notice = dontcacheRefused;
        }
        return TRUE;
    }
    return FALSE;
}

const char *
vspCacheGetRefusal(const vspCache *cache, vspCacheMode rung, int errnum)
{
    if (!cache->strict || rung != cache->asked || (errnum != EINVAL && errnum != EOPNOTSUPP))
        return NULL;
    return rung == VSP_CACHE_DIRECT      ? directRefused
           : rung == VSP_CACHE_DONTCACHE ? dontcacheRefused
                                         : NULL;
}

int
vspCacheSuspendDirect(vspCache *cache)
{
    int rc;

    if (cache->mode != VSP_CACHE_DIRECT)
        return 0;
    rc = setDirect(cache, FALSE);
    cache->suspended = rc == 0;
    return rc;
}

int
vspCacheResumeDirect(vspCache *cache)
{
    int rc;

    if (!cache->suspended)
        return 0;
    rc = setDirect(cache, TRUE);
    if (rc == 0)
        cache->suspended = FALSE;
    return rc;
}

int
vspCacheAdvance(vspCache *cache, off_t upTo)
{
    off_t behind = upTo - PACED_WINDOW;

    if (cache->mode != VSP_CACHE_PACED || upTo < cache->started + PACED_STEP)
        return 0;

    if (cache->writing) {
        /* Not every file system has it (ESPIPE, ENOSYS, EINVAL): the pages are then dropped only
         * at the end. Errors of the disk come again from fdatasync, which counts. */
        sync_file_range(cache->fd, cache->started, upTo - cache->started, SYNC_FILE_RANGE_WRITE);
        if (behind > cache->dropped)
            sync_file_range(cache->fd, cache->dropped, behind - cache->dropped,
                            SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                                SYNC_FILE_RANGE_WAIT_AFTER);
    }
    cache->started = upTo;
    if (behind > cache->dropped) {
        posix_fadvise(cache->fd, cache->dropped, behind - cache->dropped, POSIX_FADV_DONTNEED);
        cache->dropped = behind;
    }
    return 0;
}

void
vspCacheFinish(vspCache *cache, off_t start, off_t end)
{
    /* Best effort: the pages are clean now. In direct mode these are the tail's; reading with
     * RWF_DONTCACHE has dropped its own already, and pages that others had there stay theirs. */
    if (end > start && (cache->mode == VSP_CACHE_PACED || (cache->writing && cache->mode != VSP_CACHE_CACHED)))
        posix_fadvise(cache->fd, start, end - start, POSIX_FADV_DONTNEED);
    if (cache->flags >= 0)
        fcntl(cache->fd, F_SETFL, cache->flags);
}
