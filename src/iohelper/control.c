/*
 * control.c: what the library may change while a job runs
 *
 * Written by the thread that watches the status channel, read by the one that moves bytes. It lives as
 * long as the process.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "control.h"

struct _vspControl {
    GMutex lock;
    GCond changed;
    guint64 rate;
};

vspControl *
vspControlNew(guint64 rate)
{
    vspControl *control = g_new0(vspControl, 1);

    g_mutex_init(&control->lock);
    g_cond_init(&control->changed);
    control->rate = rate;
    return control;
}

guint64
vspControlGetRate(vspControl *control)
{
    guint64 rate;

    g_mutex_lock(&control->lock);
    rate = control->rate;
    g_mutex_unlock(&control->lock);
    return rate;
}

void
vspControlSetRate(vspControl *control, guint64 rate)
{
    g_mutex_lock(&control->lock);
    control->rate = rate;
    g_cond_signal(&control->changed);
    g_mutex_unlock(&control->lock);
}

void
vspControlWait(vspControl *control, guint64 nanoseconds)
{
    gint64 deadline = g_get_monotonic_time() + MAX(nanoseconds / 1000, 1);
    guint64 before;

    g_mutex_lock(&control->lock);
    before = control->rate;
    while (control->rate == before && g_cond_wait_until(&control->changed, &control->lock, deadline))
        continue;
    g_mutex_unlock(&control->lock);
}
