/*
 * stage.h: slots that all stages have alike
 *
 * A stage is an endpoint around the stream: bytes in order, and no offsets.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef STAGE_H
#define STAGE_H

#include "endpoint.h"

/* Never asked of a stage. */
ssize_t vspStagePread(vspEndpoint *ep, void *buf, gsize len, off_t offset);
ssize_t vspStagePwrite(vspEndpoint *ep, const void *buf, gsize len, off_t offset);
ssize_t vspStageComplete(vspEndpoint *ep, vspOperation op, off_t offset, gsize len, ssize_t result);
int vspStageZero(vspEndpoint *ep, off_t offset, gsize len);

/* Left to the end inside. */
gboolean vspStageIsHole(vspEndpoint *ep, off_t offset, gsize len);
int vspStageFinish(vspEndpoint *ep);
int vspStageTruncate(vspEndpoint *ep, off_t end);
int vspStageSync(vspEndpoint *ep);
int vspStageClose(vspEndpoint *ep);

/* Fills in the base of a stage around @inner, which it takes. */
void vspStageInit(vspEndpoint *ep, const vspEndpointOps *ops, vspEndpoint *inner);

#endif /* STAGE_H */
