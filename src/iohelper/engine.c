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

const vspEngine *
vspEngineFallback(const vspJob *job)
{
    return job->file->seekable ? engines[0] : &vspEngineSync;
}

const vspEngine *
vspEngineChoose(const vspJob *job)
{
    if (!job->file->seekable)
        return &vspEngineSync;
    if (vspCacheGetMode(job->file->cache) == VSP_CACHE_DIRECT)
        return engines[0];
    /* Buffered writing is copying: what overlaps is the kernel's write-back, and a ring only adds
     * processor time. */
    if (job->writing)
        return &vspEngineSync;
    if (job->hot && job->stream->transparent && vspControlGetRate(job->control) == 0)
        return &vspEngineZerocopy;
    /* io_uring hands buffered reads that have to wait to threads of the kernel; ours do it for less. */
    return &vspEngineThreads;
}
