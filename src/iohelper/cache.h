/*
 * cache.h: how a file treats the page cache: the ladder direct, dontcache, paced, cached
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef CACHE_H
#define CACHE_H

#include <vmspool/vsp-filewrapper.h>

#include "endpoint.h"

/* Memory of every buffer is aligned to this, whatever the mode. */
#define VSP_CACHE_MAX_ALIGNMENT 65536

vspCache *vspCacheNew(int fd, gboolean writing);
void vspCacheFree(vspCache *cache);

/* Puts the file on the rung @asked, or on the first one below that it takes. @hot: nearly all that is
 * to be read is in memory. In @strict mode a refusal is an error: -1 with *@errnum and *@why. */
int vspCacheSetUp(vspCache *cache,
                  vspCacheMode asked,
                  gboolean hot,
                  gboolean strict,
                  int *errnum,
                  const char **why);

vspCacheMode vspCacheGetMode(const vspCache *cache);
vspCacheMode vspCacheGetAsked(const vspCache *cache);
/* Why it is on a lower rung than it was asked for, in English, or NULL. */
const char *vspCacheGetNotice(const vspCache *cache);
gsize vspCacheGetAlignment(const vspCache *cache);

/* The same, whether or not O_DIRECT is taken off at the moment: for the statistics. */
gsize vspCacheGetBlock(const vspCache *cache);

/* RWF_* for each read or write. */
int vspCacheGetRwFlags(const vspCache *cache);

/* An I/O done on rung @rung failed with @errnum. TRUE: the rung was the reason, the file is now on a
 * lower one, and the I/O is to be done again. FALSE: a real failure. In strict mode always FALSE. */
gboolean vspCacheStepDown(vspCache *cache, vspCacheMode rung, int errnum);

/* In strict mode, after StepDown said FALSE: what to say of a rung that was the reason (English,
 * for the catalogue), NULL if it was not. */
const char *vspCacheGetRefusal(const vspCache *cache, vspCacheMode rung, int errnum);

/* Takes O_DIRECT off, for bytes that can't be aligned, and puts it back. No change on other rungs.
 * 0 or -errno. */
int vspCacheSuspendDirect(vspCache *cache);
int vspCacheResumeDirect(vspCache *cache);

/* Bytes up to there were read or written: pacing, and dropping pages behind. 0 or -errno. */
int vspCacheAdvance(vspCache *cache, off_t upTo);

/* After the sync: leave no page of [@start, @end) behind, if the mode promises that; the descriptor's
 * flags are put back as they were. */
void vspCacheFinish(vspCache *cache, off_t start, off_t end);

#endif /* CACHE_H */
