/*
 * control.h: what the library may change while a job runs
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef CONTROL_H
#define CONTROL_H

#include <glib.h>

typedef struct _vspControl vspControl;

vspControl *vspControlNew(guint64 rate);

/* Bytes per second, 0 for no limit. From any thread. */
guint64 vspControlGetRate(vspControl *control);
void vspControlSetRate(vspControl *control, guint64 rate);

/* Sleeps, but not beyond a change. */
void vspControlWait(vspControl *control, guint64 nanoseconds);

#endif /* CONTROL_H */
