/*
 * endpoint.c: the one place that calls an endpoint's table
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>

#include "cache.h"
#include "endpoint.h"
#include "vspfd.h"

static vspEndpoint *(*const constructors[])(int fd, const struct stat *st) = {
    vspEndpointFileNew,
    vspEndpointBlockNew,
    vspEndpointNullNew,
    vspEndpointStreamNew,
};

vspEndpoint *
vspEndpointOpen(int fd, vspSide side, int *errnum)
{
    struct stat st;

    if (fstat(fd, &st) < 0) {
        *errnum = errno;
        return NULL;
    }
    for (gsize i = 0; i < G_N_ELEMENTS(constructors); i++) {
        vspEndpoint *ep = constructors[i](fd, &st);

        if (ep) {
            ep->side = side;
            return ep;
        }
    }
    *errnum = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
    return NULL;
}

void
vspEndpointImpossible(const vspEndpoint *ep, const char *what)
{
    g_error("an endpoint of kind '%s' was asked to %s", ep->ops->kind, what);
}

/* An errno that no kernel uses would make a failure look like data. */
static ssize_t
checkResult(ssize_t result, gsize len)
{
    g_assert(result >= -4095);
    g_assert(result <= (ssize_t) len);
    return result;
}

ssize_t
vspEndpointRead(vspEndpoint *ep, void *buf, gsize len)
{
    g_assert(!ep->closed && len > 0);
    return checkResult(ep->ops->read(ep, buf, len), len);
}

ssize_t
vspEndpointWrite(vspEndpoint *ep, const void *buf, gsize len)
{
    g_assert(!ep->closed && len > 0);
    return checkResult(ep->ops->write(ep, buf, len), len);
}

static void
checkRange(const vspEndpoint *ep, gsize len, off_t offset)
{
    gsize alignment = vspEndpointGetAlignment(ep);

    g_assert(!ep->closed && ep->seekable && len > 0 && offset >= 0);
    g_assert(offset % alignment == 0 && len % alignment == 0);
}

ssize_t
vspEndpointPread(vspEndpoint *ep, void *buf, gsize len, off_t offset)
{
    checkRange(ep, len, offset);
    return vspEndpointComplete(ep, VSP_OPERATION_READ, offset, len,
                               ep->ops->pread(ep, buf, len, offset));
}

ssize_t
vspEndpointPwrite(vspEndpoint *ep, const void *buf, gsize len, off_t offset)
{
    checkRange(ep, len, offset);
    return vspEndpointComplete(ep, VSP_OPERATION_WRITE, offset, len,
                               ep->ops->pwrite(ep, buf, len, offset));
}

ssize_t
vspEndpointComplete(vspEndpoint *ep, vspOperation op, off_t offset, gsize len, ssize_t result)
{
    g_assert(!ep->closed && ep->seekable);
    return checkResult(ep->ops->complete(ep, op, offset, len, result), len);
}

int
vspEndpointZero(vspEndpoint *ep, off_t offset, gsize len)
{
    checkRange(ep, len, offset);
    return checkResult(ep->ops->zero(ep, offset, len), 0);
}

gboolean
vspEndpointIsHole(vspEndpoint *ep, off_t offset, gsize len)
{
    g_assert(!ep->closed && len > 0 && offset >= 0);
    return ep->ops->isHole(ep, offset, len);
}

int
vspEndpointFinish(vspEndpoint *ep)
{
    g_assert(!ep->closed);
    return checkResult(ep->ops->finish(ep), 0);
}

const vspEndpointReason *
vspEndpointGetReason(const vspEndpoint *ep)
{
    const vspEndpointReason *reason = NULL;

    for (; ep; ep = ep->inner) {
        if (ep->reason.operation != VSP_OPERATION_NONE)
            reason = &ep->reason;
    }
    return reason;
}

int
vspEndpointTruncate(vspEndpoint *ep, off_t end)
{
    g_assert(!ep->closed && end >= 0);
    return checkResult(ep->ops->truncate(ep, end), 0);
}

int
vspEndpointSync(vspEndpoint *ep)
{
    g_assert(!ep->closed);
    return checkResult(ep->ops->sync(ep), 0);
}

int
vspEndpointClose(vspEndpoint *ep)
{
    int rc;

    g_assert(!ep->closed);
    rc = checkResult(ep->ops->close(ep), 0);
    ep->closed = TRUE;
    return rc;
}

void
vspEndpointFree(vspEndpoint *ep)
{
    if (ep)
        ep->ops->free(ep);
}

gsize
vspEndpointGetAlignment(const vspEndpoint *ep)
{
    return ep->cache ? vspCacheGetAlignment(ep->cache) : 1;
}
