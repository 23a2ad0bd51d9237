/*
 * stage.c: slots that all stages have alike
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "stage.h"

ssize_t
vspStagePread(vspEndpoint *ep,
              void *buf G_GNUC_UNUSED,
              gsize len G_GNUC_UNUSED,
              off_t offset G_GNUC_UNUSED)
{
    vspEndpointImpossible(ep, "read at an offset");
}

ssize_t
vspStagePwrite(vspEndpoint *ep,
               const void *buf G_GNUC_UNUSED,
               gsize len G_GNUC_UNUSED,
               off_t offset G_GNUC_UNUSED)
{
    vspEndpointImpossible(ep, "write at an offset");
}

ssize_t
vspStageComplete(vspEndpoint *ep,
                 vspOperation op G_GNUC_UNUSED,
                 off_t offset G_GNUC_UNUSED,
                 gsize len G_GNUC_UNUSED,
                 ssize_t result G_GNUC_UNUSED)
{
    vspEndpointImpossible(ep, "judge an I/O at an offset");
}

int
vspStageZero(vspEndpoint *ep, off_t offset G_GNUC_UNUSED, gsize len G_GNUC_UNUSED)
{
    vspEndpointImpossible(ep, "make a hole");
}

gboolean
vspStageIsHole(vspEndpoint *ep G_GNUC_UNUSED, off_t offset G_GNUC_UNUSED, gsize len G_GNUC_UNUSED)
{
    return FALSE;
}

int
vspStageFinish(vspEndpoint *ep)
{
    return vspEndpointFinish(ep->inner);
}

int
vspStageTruncate(vspEndpoint *ep, off_t end)
{
    return vspEndpointTruncate(ep->inner, end);
}

int
vspStageSync(vspEndpoint *ep)
{
    return vspEndpointSync(ep->inner);
}

int
vspStageClose(vspEndpoint *ep)
{
    return vspEndpointClose(ep->inner);
}

void
vspStageInit(vspEndpoint *ep, const vspEndpointOps *ops, vspEndpoint *inner)
{
    ep->ops = ops;
    ep->inner = inner;
    ep->side = inner->side;
    ep->fd = inner->fd; /* the inner end's */
}
