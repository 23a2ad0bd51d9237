/*
 * vspflow.h: what save, restore and dump have in common: notices, progress, times, the report
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_FLOW_H
#define VSP_FLOW_H

#include <vmspool/vsp-vm.h>

typedef struct {
    const vspVmOptions *options; /* borrowed; never NULL */
    vspVmOptions *defaults;      /* owned: what @options is when the caller gave none */
    GCancellable *cancellable;   /* borrowed, nullable */
    GPtrArray *notices;          /* of char * */
    GVariantBuilder report;
    gboolean hasReport;
    gint64 started;      /* monotonic, us */
    gint64 lastProgress; /* when it was last told, us */
    vspProgress progress;
} vspFlow;

void vspFlowInit(vspFlow *flow,
                 const char *operation,
                 const char *file,
                 const vspVmOptions *options,
                 GCancellable *cancellable);
void vspFlowClear(vspFlow *flow);

/* A whole sentence for the user; also kept for the report. */
void vspFlowNotice(vspFlow *flow, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* Tells the progress function, at most ten times a second but for a new stage. Never more bytes
 * than the total; bytes never go back. */
void vspFlowProgress(
    vspFlow *flow, vspStage stage, guint64 bytesIn, guint64 bytesOut, guint64 bytesTotal);

/* -1 with VSP_ERROR_ABORTED if the caller cancelled. */
int vspFlowCheckCancelled(vspFlow *flow, GError **error);

/* Members of the report. NULL strings are left out. */
void vspFlowReportString(vspFlow *flow, const char *key, const char *value);
void vspFlowReportNumber(vspFlow *flow, const char *key, guint64 value);
void vspFlowReportBoolean(vspFlow *flow, const char *key, gboolean value);
void vspFlowReportValue(vspFlow *flow, const char *key, GVariant *value);

/* The nanoseconds since @since (monotonic, us; 0 for the flow's start). */
void vspFlowReportTime(vspFlow *flow, const char *key, gint64 since, gint64 until);

/* Completes the report with notices and total time, and hands it over if it is wanted. */
void vspFlowFinish(vspFlow *flow, GVariant **report);

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(vspFlow, vspFlowClear)

#endif /* VSP_FLOW_H */
