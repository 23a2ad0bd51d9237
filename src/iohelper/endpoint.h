/*
 * endpoint.h: the contract of something that can be read and written
 *
 * One file per kind, with a table in which every slot is filled; what can never be asked of a kind
 * points at a function that aborts by name. Only endpoint.c calls the table: it checks state and
 * range before the call and the result after it.
 *
 * Results are the kernel's: bytes moved, or a negative errno; nothing touches errno itself. The
 * engine that asked records the failure in its job (job.h), with operation, side and offset.
 *
 * A stage (compression, digest, rate limit) is an endpoint too: one that wraps another.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef ENDPOINT_H
#define ENDPOINT_H

#include <glib.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "vspcompression.h"
#include "vspstatus.h"

typedef struct _vspEndpoint vspEndpoint;
typedef struct _vspCache vspCache;
typedef struct _vspControl vspControl;

typedef struct {
    const char *kind; /* "file", "block", "stream", "null"; for the statistics */

    /* In order, from where the endpoint stands; may be short; 0 from read is the end. */
    ssize_t (*read)(vspEndpoint *ep, void *buf, gsize len);
    ssize_t (*write)(vspEndpoint *ep, const void *buf, gsize len);

    /* At an offset, seekable kinds only; may be short. In direct mode the caller aligns offset,
     * length and memory to vspEndpointGetAlignment(). */
    ssize_t (*pread)(vspEndpoint *ep, void *buf, gsize len, off_t offset);
    ssize_t (*pwrite)(vspEndpoint *ep, const void *buf, gsize len, off_t offset);

    /* The last word on the result of an I/O at an offset, whoever did it: pread and pwrite above,
     * or an engine that drives the descriptor itself. Here the fault endpoint has its say. */
    ssize_t (*complete)(vspEndpoint *ep, vspOperation op, off_t offset, gsize len, ssize_t result);

    /* [@offset, @offset + @len) becomes zero without being written, seekable kinds only. 0, or -errno:
     * the zeros must then be written. */
    int (*zero)(vspEndpoint *ep, off_t offset, gsize len);

    /* [@offset, @offset + @len) is known to be a hole. A hint: FALSE means nothing. */
    gboolean (*isHole)(vspEndpoint *ep, off_t offset, gsize len);

    /* No more will be written in order: a stage hands on what it still holds, and says whether what it
     * was given was whole. 0 or -errno. Called once, at the end of what went well. */
    int (*finish)(vspEndpoint *ep);

    /* The data ends at @end: nothing may lie behind. */
    int (*truncate)(vspEndpoint *ep, off_t end);

    /* Everything written is durable. Kinds that can't be synced succeed. */
    int (*sync)(vspEndpoint *ep);

    /* Closes the descriptor and tells. Called once. */
    int (*close)(vspEndpoint *ep);

    void (*free)(vspEndpoint *ep);
} vspEndpointOps;

/* Why a call on a stage failed, where the reason is the stage's own and not the wrapped end's. */
typedef struct {
    vspOperation operation; /* VSP_OPERATION_NONE: no reason of its own */
    guint64 offset;
    char detail[128];
} vspEndpointReason;

struct _vspEndpoint {
    const vspEndpointOps *ops;
    vspEndpoint *inner; /* a stage's, owned; else NULL */
    vspEndpointReason reason;
    vspSide side;
    int fd;            /* owned */
    gboolean seekable; /* pread and pwrite may be called */
    gboolean transparent; /* fd may be driven directly, past read and write above */
    gboolean closed;
    off_t start;       /* seekable: where the descriptor stood */
    off_t size;        /* seekable: length when opened */
    vspCache *cache;   /* owned; how a seekable end treats the page cache; NULL for others */
};

/* Constructors: NULL if @st is not of their kind. They take @fd. */
vspEndpoint *vspEndpointFileNew(int fd, const struct stat *st);
vspEndpoint *vspEndpointBlockNew(int fd, const struct stat *st);
vspEndpoint *vspEndpointNullNew(int fd, const struct stat *st);
vspEndpoint *vspEndpointStreamNew(int fd, const struct stat *st);

/* A wrapper that makes I/O on @inner fail as @spec says (endpoint-fault.c). Takes @inner; NULL, and
 * @inner untouched, if @spec is not understood. */
vspEndpoint *vspEndpointFaultNew(vspEndpoint *inner, const char *spec);

/* A stage: @inner at the limited rate that @control says. Takes @inner. */
vspEndpoint *vspEndpointRateNew(vspEndpoint *inner, vspControl *control);

/* A stage: all that passes through @inner behind the first @plain bytes is digested. Takes @inner. */
vspEndpoint *vspEndpointDigestNew(vspEndpoint *inner, guint64 plain);

/* Once all has passed: the digest, and of how many bytes it is. */
guint64 vspEndpointDigestGet(vspEndpoint *ep, guint8 digest[VSP_STATUS_DIGEST_SIZE]);

/* A stage: compresses what is read from @inner, or decompresses what is read or written (@reading says
 * which), behind the first @plain bytes. Takes @inner; NULL, and @inner untouched, with @reason (128 bytes) if it can't be. */
vspEndpoint *vspEndpointCompressNew(vspEndpoint *inner,
                                    const vspCompression *compression,
                                    int level,
                                    gboolean reading,
                                    gboolean decompressing,
                                    guint64 plain,
                                    char *reason);

/* How much has passed so far, without the plain bytes: on the stream's side, and on ours. */
void vspEndpointCompressGet(vspEndpoint *ep, guint64 *inner, guint64 *outer);

/* The kind that fits @fd, which it takes. NULL with *@errnum. */
vspEndpoint *vspEndpointOpen(int fd, vspSide side, int *errnum);

/* The checked calls. */
ssize_t vspEndpointRead(vspEndpoint *ep, void *buf, gsize len);
ssize_t vspEndpointWrite(vspEndpoint *ep, const void *buf, gsize len);
ssize_t vspEndpointPread(vspEndpoint *ep, void *buf, gsize len, off_t offset);
ssize_t vspEndpointPwrite(vspEndpoint *ep, const void *buf, gsize len, off_t offset);
ssize_t vspEndpointComplete(
    vspEndpoint *ep, vspOperation op, off_t offset, gsize len, ssize_t result);
int vspEndpointZero(vspEndpoint *ep, off_t offset, gsize len);
gboolean vspEndpointIsHole(vspEndpoint *ep, off_t offset, gsize len);
int vspEndpointFinish(vspEndpoint *ep);
int vspEndpointTruncate(vspEndpoint *ep, off_t end);
int vspEndpointSync(vspEndpoint *ep);
int vspEndpointClose(vspEndpoint *ep);
void vspEndpointFree(vspEndpoint *ep);

/* Alignment of direct I/O in bytes; 1 where nothing needs to be aligned (any more). */
gsize vspEndpointGetAlignment(const vspEndpoint *ep);

/* The reason of the innermost stage that has one of its own for a failure; else NULL. */
const vspEndpointReason *vspEndpointGetReason(const vspEndpoint *ep);

/* For slots that a kind can't have. */
G_NORETURN void vspEndpointImpossible(const vspEndpoint *ep, const char *what);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(vspEndpoint, vspEndpointFree)

#endif /* ENDPOINT_H */
