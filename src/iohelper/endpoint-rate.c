/*
 * endpoint-rate.c: a stage that lets a stream pass at a limited rate
 *
 * A bucket of bytes, filled by the clock: it holds what a tenth of a second brings, so that a pause is
 * not made up for by a burst. Calls are cut to what the bucket can hold. The limit may be changed at
 * any moment from another thread (control.c), also away from a sleep that is under way.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "control.h"
#include "report.h"
#include "stage.h"

/* The longest sleep before the limit is looked at again. */
#define TICK_NS (100 * 1000 * 1000)
/* The least that is passed on at once: at very low rates a call would else be a byte or two. */
#define CHUNK_MIN 4096

typedef struct {
    vspEndpoint base;
    vspControl *control; /* borrowed */
    guint64 filledAt;    /* monotonic ns */
    double bytes;        /* in the bucket */
} RateEndpoint;

static RateEndpoint *
rateOf(vspEndpoint *ep)
{
    return (RateEndpoint *) ep;
}

/* Waits until some of @len may pass, and says how much. */
static gsize
allowance(RateEndpoint *rate, gsize len)
{
    for (;;) {
        guint64 limit = vspControlGetRate(rate->control);
        guint64 now = vspNow();
        double room = limit / 10.0;
        gsize chunk = MIN(len, MAX((gsize) room, CHUNK_MIN));

        if (limit == 0) {
            rate->filledAt = now;
            return len;
        }
        rate->bytes = MIN(rate->bytes + (now - rate->filledAt) * 1e-9 * limit, MAX(room, CHUNK_MIN));
        rate->filledAt = now;
        if (rate->bytes >= chunk) {
            rate->bytes -= chunk;
            return chunk;
        }
        vspControlWait(rate->control, MIN((chunk - rate->bytes) * 1e9 / limit, TICK_NS));
    }
}

/* What was allowed and not used goes back. */
static ssize_t
settle(RateEndpoint *rate, gsize allowed, ssize_t moved)
{
    rate->bytes += allowed - MAX(moved, 0);
    return moved;
}

static ssize_t
rateRead(vspEndpoint *ep, void *buf, gsize len)
{
    RateEndpoint *rate = rateOf(ep);
    gsize allowed = allowance(rate, len);

    return settle(rate, allowed, vspEndpointRead(rate->base.inner, buf, allowed));
}

static ssize_t
rateWrite(vspEndpoint *ep, const void *buf, gsize len)
{
    RateEndpoint *rate = rateOf(ep);
    gsize allowed = allowance(rate, len);

    return settle(rate, allowed, vspEndpointWrite(rate->base.inner, buf, allowed));
}

static void
rateFree(vspEndpoint *ep)
{
    vspEndpointFree(ep->inner);
    g_free(ep);
}

static const vspEndpointOps rateOps = {
    .kind = "rate",
    .read = rateRead,
    .write = rateWrite,
    .pread = vspStagePread,
    .pwrite = vspStagePwrite,
    .complete = vspStageComplete,
    .zero = vspStageZero,
    .isHole = vspStageIsHole,
    .finish = vspStageFinish,
    .truncate = vspStageTruncate,
    .sync = vspStageSync,
    .close = vspStageClose,
    .free = rateFree,
};

vspEndpoint *
vspEndpointRateNew(vspEndpoint *inner, vspControl *control)
{
    RateEndpoint *rate = g_new0(RateEndpoint, 1);

    vspStageInit(&rate->base, &rateOps, inner);
    /* A limit that is set later has to be asked for: see engine-zerocopy.c. */
    rate->base.transparent = inner->transparent;
    rate->control = control;
    rate->filledAt = vspNow();
    return &rate->base;
}
