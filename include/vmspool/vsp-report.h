/*
 * vsp-report.h: progress, and reports as dictionaries
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_REPORT_H
#define VSP_REPORT_H

#include <vmspool/vsp-macros.h>

VSP_BEGIN_DECLS

/**
 * vspStage:
 * @VSP_STAGE_SETUP: nothing has moved yet
 * @VSP_STAGE_TRANSFER: bytes are moving
 * @VSP_STAGE_SYNC: every byte was handed over; the file is being made durable
 * @VSP_STAGE_DONE: finished
 *
 * Since: 0.1
 */
typedef enum {
    VSP_STAGE_SETUP = 0,
    VSP_STAGE_TRANSFER = 1,
    VSP_STAGE_SYNC = 2,
    VSP_STAGE_DONE = 3,
} vspStage;

/**
 * vspProgress:
 * @stage: what is going on
 * @bytesIn: bytes taken from the source so far
 * @bytesOut: bytes handed to the destination so far
 * @bytesTotal: an estimate of the whole, 0 when nothing is known
 *
 * Since: 0.1
 */
typedef struct _vspProgress vspProgress;
struct _vspProgress {
    vspStage stage;
    guint64 bytesIn;
    guint64 bytesOut;
    guint64 bytesTotal;
    gpointer reserved[4];
};

/**
 * vspProgressFunc:
 * @progress: valid during the call only
 * @opaque: as given with the function
 *
 * Called from the thread that runs the job, at most about ten times a second.
 *
 * Since: 0.1
 */
typedef void (*vspProgressFunc)(const vspProgress *progress, gpointer opaque);

/**
 * vspReportToJson:
 * @report: a dictionary (`a{sv}`), as the functions of this library return it
 *
 * Returns: (transfer full): the same as one line of JSON, without a newline
 *
 * Since: 0.1
 */
char *vspReportToJson(GVariant *report);

VSP_END_DECLS

#endif /* VSP_REPORT_H */
