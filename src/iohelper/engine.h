/*
 * engine.h: the contract of a way to move bytes between the two ends of a job
 *
 * One file per engine. Both calls start at job->position with every buffer free, and return with no
 * I/O under way. They move everything up to the end of the source and leave position behind the
 * last byte; they do not sync.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef ENGINE_H
#define ENGINE_H

#include "job.h"

struct _vspEngine {
    const char *name;
    int (*save)(vspJob *job);    /* stream to file. 0 or -1, the failure recorded */
    int (*restore)(vspJob *job); /* file to stream. 0 or -1, the failure recorded */
};

extern const vspEngine vspEngineSync;
extern const vspEngine vspEngineThreads;
extern const vspEngine vspEngineUring;
extern const vspEngine vspEngineZerocopy;

/* By name; NULL if this build has none of the name. */
const vspEngine *vspEngineFind(const char *name);

/* The one that suits the job best. */
const vspEngine *vspEngineChoose(const vspJob *job);

/* The one that copies, for an engine that finds that it can't do @job. */
const vspEngine *vspEngineFallback(const vspJob *job);

/* Names, NULL-terminated, best first. */
const char *const *vspEngineNames(void);

#endif /* ENGINE_H */
