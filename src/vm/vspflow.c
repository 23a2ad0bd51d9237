/*
 * vspflow.c: what save, restore and dump have in common: notices, progress, times, the report
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <glib/gi18n-lib.h>

#include "vsperrorpriv.h"
#include "vspflow.h"
#include "vspvmoptionspriv.h"

/* Between two calls of the progress function, us. Shorter: smoother, and more work for the caller.
 */
#define PROGRESS_INTERVAL 100000

void
vspFlowInit(vspFlow *flow,
            const char *operation,
            const char *file,
            const vspVmOptions *options,
            GCancellable *cancellable)
{
    *flow = (vspFlow){ 0 };
    if (!options)
        options = flow->defaults = vspVmOptionsNew();
    flow->options = options;
    flow->cancellable = cancellable;
    flow->notices = g_ptr_array_new_with_free_func(g_free);
    flow->started = g_get_monotonic_time();
    g_variant_builder_init(&flow->report, G_VARIANT_TYPE_VARDICT);
    flow->hasReport = TRUE;
    vspFlowReportString(flow, "operation", operation);
    vspFlowReportString(flow, "file", file);
    vspFlowProgress(flow, VSP_STAGE_SETUP, 0, 0, 0);
}

void
vspFlowClear(vspFlow *flow)
{
    if (flow->hasReport)
        g_variant_builder_clear(&flow->report);
    flow->hasReport = FALSE;
    g_clear_pointer(&flow->notices, g_ptr_array_unref);
    g_clear_pointer(&flow->defaults, vspVmOptionsFree);
}

void
vspFlowNotice(vspFlow *flow, const char *format, ...)
{
    char *notice;
    va_list args;

    va_start(args, format);
    notice = g_strdup_vprintf(format, args);
    va_end(args);
    g_ptr_array_add(flow->notices, notice);
    if (flow->options->notice)
        flow->options->notice(notice, flow->options->noticeOpaque);
}

void
vspFlowProgress(
    vspFlow *flow, vspStage stage, guint64 bytesIn, guint64 bytesOut, guint64 bytesTotal)
{
    vspProgress *progress = &flow->progress;
    gint64 now = g_get_monotonic_time();
    gboolean news = stage != progress->stage || flow->lastProgress == 0;

    progress->stage = stage;
    progress->bytesIn = MAX(progress->bytesIn, bytesIn);
    progress->bytesOut = MAX(progress->bytesOut, bytesOut);
    /* An estimate of which more has come already was wrong. 0 stays: nothing is known. */
    progress->bytesTotal = bytesTotal;
    if (bytesTotal)
        progress->bytesTotal = MAX(bytesTotal, MAX(progress->bytesIn, progress->bytesOut));

    if (!flow->options->progress || (!news && now - flow->lastProgress < PROGRESS_INTERVAL))
        return;
    flow->lastProgress = now;
    flow->options->progress(progress, flow->options->progressOpaque);
}

int
vspFlowCheckCancelled(vspFlow *flow, GError **error)
{
    if (!flow->cancellable || !g_cancellable_is_cancelled(flow->cancellable))
        return 0;
    vspSetError(error, VSP_ERROR_ABORTED, _("cancelled"));
    return -1;
}

void
vspFlowReportValue(vspFlow *flow, const char *key, GVariant *value)
{
    g_variant_builder_add(&flow->report, "{sv}", key, value);
}

void
vspFlowReportString(vspFlow *flow, const char *key, const char *value)
{
    if (value)
        vspFlowReportValue(flow, key, g_variant_new_take_string(g_utf8_make_valid(value, -1)));
}

void
vspFlowReportNumber(vspFlow *flow, const char *key, guint64 value)
{
    vspFlowReportValue(flow, key, g_variant_new_uint64(value));
}

void
vspFlowReportBoolean(vspFlow *flow, const char *key, gboolean value)
{
    vspFlowReportValue(flow, key, g_variant_new_boolean(value));
}

void
vspFlowReportTime(vspFlow *flow, const char *key, gint64 since, gint64 until)
{
    if (since == 0)
        since = flow->started;
    vspFlowReportNumber(flow, key, (guint64)MAX(until - since, 0) * 1000);
}

void
vspFlowFinish(vspFlow *flow, GVariant **report)
{
    GVariant *whole;

    vspFlowReportTime(flow, "total-ns", 0, g_get_monotonic_time());
    vspFlowReportValue(
        flow, "notices",
        g_variant_new_strv((const char *const *)flow->notices->pdata, flow->notices->len));
    whole = g_variant_ref_sink(g_variant_builder_end(&flow->report));
    flow->hasReport = FALSE;
    if (report)
        *report = whole;
    else
        g_variant_unref(whole);
}
