/*
 * engine.c: which engines there are, and which one suits a job
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "cache.h"
#include "engine.h"

static const vspEngine *const engines[] = {
#if HAVE_LIBURING
    &vspEngineUring,
#endif
    &vspEngineThreads,
    &vspEngineZerocopy,
    &vspEngineSync,
};

const char *const *
vspEngineNames(void)
{
    static const char *names[G_N_ELEMENTS(engines) + 1];

    for (gsize i = 0; i < G_N_ELEMENTS(engines); i++)
        names[i] = engines[i]->name;
    return names;
}

const vspEngine *
vspEngineFind(const char *name)
{
    for (gsize i = 0; i < G_N_ELEMENTS(engines); i++) {
        if (g_str_equal(engines[i]->name, name))
            return engines[i];
    }
    return NULL;
}

/* More than this share of a file in memory, and the rest is worth fetching by the way. */
#define HOT(resident, size) ((resident) >= (size) - (size) / 8)

const vspEngine *
vspEngineFallback(const vspJob *job)
{
    return job->file->seekable ? engines[0] : &vspEngineSync;
}

const vspEngine *
vspEngineChoose(const vspJob *job)
{
    off_t left = job->file->size - job->file->start;

    if (!job->file->seekable)
        return &vspEngineSync;
    if (job->writing) {
        /* A null device has nothing to overlap with. */
        return g_str_equal(job->file->ops->kind, "null") ? &vspEngineSync : engines[0];
    }
    if (vspCacheGetMode(job->file->cache) != VSP_CACHE_DIRECT && left > 0 &&
        HOT(job->statistics.cachedBefore, left) && job->stream->transparent &&
        vspControlGetRate(job->control) == 0)
        return &vspEngineZerocopy;
    return engines[0];
}
