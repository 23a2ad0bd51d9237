/*
 * report.h: the helper's side of the status channel, or stderr where there is none
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef REPORT_H
#define REPORT_H

#include <glib.h>
#include <vmspool/vsp-report.h>

#include "control.h"
#include "vspstatus.h"

typedef struct _vspReporter vspReporter;

/* @statusFd: owned; -1 for a helper that was started without a channel. */
vspReporter *vspReporterNew(int statusFd, const char *name);
void vspReporterFree(vspReporter *reporter);

/* The job can start. From here on the helper ends when the other side of the channel does, and
 * @control (borrowed) is what that side changes. 0 or -errno. */
int vspReporterHello(vspReporter *reporter, vspControl *control);

/* Sent at most ten times a second, and never waited for. */
void vspReporterProgress(vspReporter *reporter,
                         vspStage stage,
                         const vspStatusStatistics *statistics);

/* The last word. */
void vspReporterVerdict(vspReporter *reporter, vspStatusVerdict *verdict);

/* Monotonic nanoseconds. */
guint64 vspNow(void);

#endif /* REPORT_H */
