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
vspEngineChoose(const vspJob *job)
{
    /* io_uring gains where the disk works while we copy. Buffered writes it hands to a kernel
     * thread, which costs more than it brings; a null device has nothing to overlap with. */
    if (job->file->seekable && vspCacheGetMode(job->file->cache) == VSP_CACHE_DIRECT)
        return engines[0];
    return &vspEngineSync;
}
