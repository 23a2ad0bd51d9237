/*
 * vspvmdump.c: a core dump of a VM's memory
 *
 * QEMU pauses the VM itself, writes in a thread of its own (so that its monitor answers meanwhile),
 * and lets the VM go on. It has no command to stop a dump: what stops it is that nobody takes its
 * bytes any more. Its writes do not expect EAGAIN, so the stream stays in blocking mode.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <glib/gi18n-lib.h>
#include <string.h>
#include <unistd.h>

#include "vsperrorpriv.h"
#include "vspfd.h"
#include "vspflow.h"
#include "vspguest.h"
#include "vspio.h"
#include "vspqmp.h"
#include "vsptarget.h"
#include "vsptransfer.h"
#include "vspvmoptionspriv.h"

/* Between two looks at a dump whose event does not come. */
#define POLL_MS 100

/* How long QEMU may take to see that its bytes are not taken any more, and to clean up. */
#define OVER_MS 30000

/* How long it may then take to let the VM go on, which it does in the same breath. Longer: a QEMU
 * that forgets it keeps the VM paused for longer. */
#define RESUME_MS 3000

/* With less there is no use in trying: headers and notes of a small VM. */
#define ROOM_MIN (1024 * 1024)

typedef struct {
    vspFlow flow;
    const char *monitor;
    vspQmp *qmp;
    vspTarget *target;
    vspTransfer *transfer;
    char *stateBefore;
    guint64 memory;   /* bytes */
    gboolean started; /* `dump-guest-memory` may have been taken up */
    gboolean over;    /* QEMU said that it ended, in whatever way */
    gint64 transferAt;
    gint64 syncAt;
} vspDumpJob;

static void
dumpJobClear(vspDumpJob *job)
{
    vspTransferFree(job->transfer);
    vspTargetFree(job->target);
    vspQmpFree(job->qmp);
    vspFlowClear(&job->flow);
    g_free(job->stateBefore);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(vspDumpJob, dumpJobClear)

/* --- before anything is touched --- */

static int
dumpCheckFormat(vspDumpJob *job, GError **error)
{
    const char *format = job->flow.options->dumpFormat;
    g_autoptr(GVariant) capability =
        vspQmpExecute(job->qmp, "query-dump-guest-memory-capability", NULL, error);
    g_auto(GStrv) formats = NULL;
    g_autofree char *list = NULL;

    if (!capability)
        return -1;
    formats = vspQmpGetStrings(capability, "formats");
    list = g_strjoinv(", ", formats);
    if (strstr(format, "-raw-")) {
        vspSetError(
            error, VSP_ERROR_INVALID_ARGUMENT,
            _("the dump format '%s' needs a file that QEMU can seek in; what goes through a "
              "stream is the flattened form, without '-raw'"),
            format);
        return -1;
    }
    if (!g_strv_contains((const char *const *)formats, format)) {
        vspSetError(error, VSP_ERROR_INVALID_ARGUMENT,
                    _("this QEMU can't dump in the format '%s'; it can: %s"), format, list);
        return -1;
    }
    if (g_str_has_prefix(format, "kdump-"))
        vspFlowNotice(&job->flow,
                      _("a %s dump through a stream is flattened; reassemble it with "
                        "'makedumpfile -R'"),
                      format);
    return 0;
}

static int
dumpCheckRoom(vspDumpJob *job, GError **error)
{
    g_autofree char *haveText = NULL;
    guint64 room;

    if (vspTargetGetRoom(job->target, &room, error) < 0)
        return -1;
    haveText = g_format_size_full(room, G_FORMAT_SIZE_IEC_UNITS);
    if (room < ROOM_MIN) {
        vspSetError(error, VSP_ERROR_NO_SPACE, _("no space for '%s': only %s are free"),
                    vspTargetGetName(job->target), haveText);
        return -1;
    }
    if (job->memory && room < job->memory) {
        g_autofree char *needText = g_format_size_full(job->memory, G_FORMAT_SIZE_IEC_UNITS);

        vspFlowNotice(&job->flow,
                      _("the space may not suffice: the VM has %s of memory, '%s' has room for %s"),
                      needText, vspTargetGetName(job->target), haveText);
    }
    return 0;
}

static int
dumpPrepare(vspDumpJob *job, const char *path, GError **error)
{
    g_autofree char *name = NULL;
    g_autofree char *uuid = NULL;

    if (vspFlowCheckCancelled(&job->flow, error) < 0)
        return -1;
    job->target = vspTargetNew(path, job->flow.options->overwrite, error);
    if (!job->target)
        return -1;
    job->qmp = vspQmpOpen(job->monitor, job->flow.cancellable, error);
    if (!job->qmp || !(job->stateBefore = vspGuestGetState(job->qmp, error)))
        return -1;
    if (g_str_equal(job->stateBefore, "inmigrate") || g_str_equal(job->stateBefore, "preconfig")) {
        vspSetError(error, VSP_ERROR_BUSY,
                    _("the VM can't be dumped in the state '%s': it has no memory yet"),
                    job->stateBefore);
        return -1;
    }
    job->memory = vspGuestGetMemory(job->qmp);
    if (vspGuestCheckIdle(job->qmp, FALSE, error) < 0 || dumpCheckFormat(job, error) < 0 ||
        dumpCheckRoom(job, error) < 0)
        return -1;

    name = vspGuestGetName(job->qmp);
    uuid = vspGuestGetUuid(job->qmp);
    /* As a save calls one that has none. */
    vspFlowReportString(&job->flow, "guest", name ? name : "vm");
    vspFlowReportString(&job->flow, "uuid", uuid);
    vspFlowReportString(&job->flow, "format", job->flow.options->dumpFormat);
    vspFlowReportString(&job->flow, "qemu-version", vspQmpGetVersion(job->qmp));
    vspFlowReportString(&job->flow, "run-state", job->stateBefore);
    return 0;
}

/* --- the dump --- */

static int
dumpFailByQemu(vspDumpJob *job, const char *reason, GError **error)
{
    job->over = TRUE;
    vspSetError(error, VSP_ERROR_QEMU, _("QEMU could not complete the dump: %s"),
                reason ? reason : _("it gives no reason"));
    if (g_str_equal(job->flow.options->dumpFormat, "win-dmp") && error)
        g_prefix_error(
            error, "%s",
            _("a win-dmp needs a guest driver that fills in QEMU's vmcoreinfo device, where "
              "an ELF dump needs nothing: "));
    return -1;
}

/* Looks for the event that ends a dump. 1: completed; 0: not yet; -1 with @error: failed. */
static int
dumpTakeEvents(vspDumpJob *job, GError **error)
{
    GVariant *next;

    while ((next = vspQmpTakeEvent(job->qmp))) {
        g_autoptr(GVariant) event = next;
        g_autoptr(GVariant) data = vspQmpGetDict(event, "data");
        g_autoptr(GVariant) result = data ? vspQmpGetDict(data, "result") : NULL;
        const char *failure = data ? vspQmpGetString(data, "error") : NULL;

        if (g_strcmp0(vspQmpGetString(event, "event"), "DUMP_COMPLETED") != 0)
            continue;
        if (failure)
            return dumpFailByQemu(job, failure, error);
        if (result && g_strcmp0(vspQmpGetString(result, "status"), "failed") == 0)
            return dumpFailByQemu(job, NULL, error);
        job->over = TRUE;
        return 1;
    }
    return 0;
}

/* One look at QEMU's own account. As above. */
static int
dumpQuery(vspDumpJob *job, gboolean *told, GError **error)
{
    g_autoptr(GVariant) status = vspQmpExecute(job->qmp, "query-dump", NULL, error);
    vspProgress progress;
    const char *word;
    guint64 total;

    if (!status)
        return -1;
    vspTransferGetProgress(job->transfer, &progress);
    total = vspQmpGetNumber(status, "total");
    vspFlowProgress(&job->flow, VSP_STAGE_TRANSFER, progress.bytesIn, progress.bytesOut,
                    total ? total : job->memory);

    word = vspQmpGetString(status, "status");
    if (g_strcmp0(word, "completed") == 0) {
        job->over = TRUE;
        return 1;
    }
    if (g_strcmp0(word, "failed") == 0) {
        /* The event, which has the reason, may be right behind. */
        if (vspQmpWait(job->qmp, vspDeadline(POLL_MS), NULL) > 0 && dumpTakeEvents(job, error) < 0)
            return -1;
        return dumpFailByQemu(job, NULL, error);
    }
    if (g_strcmp0(word, "active") != 0 && g_strcmp0(word, "none") != 0 && !*told) {
        vspFlowNotice(&job->flow, _("QEMU reports a dump state that is not known here: '%s'"),
                      word ? word : "");
        *told = TRUE;
    }
    return 0;
}

static int
dumpWait(vspDumpJob *job, GError **error)
{
    gboolean told = FALSE;

    for (;;) {
        int rc = dumpTakeEvents(job, error);

        if (rc == 0)
            rc = dumpQuery(job, &told, error);
        if (rc != 0)
            return rc > 0 ? 0 : -1;
        if (vspTransferProcess(job->transfer)) {
            const GError *failure = vspTransferGetFailure(job->transfer);

            if (failure) {
                g_propagate_error(error, g_error_copy(failure));
                return -1;
            }
            vspQmpSetWatch(job->qmp, -1, NULL, NULL);
        }
        if (vspQmpWait(job->qmp, vspDeadline(POLL_MS), error) < 0)
            return -1;
    }
}

static int
dumpOpen(vspDumpJob *job, GError **error)
{
    g_auto(vspFd) fd = vspTargetOpen(job->target, error);

    if (fd < 0)
        return -1;
    job->transfer =
        vspTransferNew(&fd, vspTargetGetName(job->target), &job->flow, &(vspTransferShape){ 0 }, error);
    return job->transfer ? 0 : -1;
}

static int
dumpRun(vspDumpJob *job, GError **error)
{
    g_autofree char *protocol = NULL;
    int rc;

    if (vspTransferHandOver(job->transfer, job->qmp, error) < 0)
        return -1;
    protocol = g_strconcat("fd:", vspTransferGetFdName(job->transfer), NULL);
    vspQmpSetWatch(job->qmp, vspTransferGetFd(job->transfer), vspTransferWatch, job->transfer);
    job->transferAt = g_get_monotonic_time();
    job->started = TRUE;
    rc = vspQmpRun(job->qmp, "dump-guest-memory",
                   g_variant_new_parsed("{'paging': <false>, 'protocol': <%s>, 'detach': <true>, "
                                        "'format': <%s>}",
                                        protocol, job->flow.options->dumpFormat),
                   error);
    if (rc == 0)
        rc = dumpWait(job, error);
    vspQmpSetWatch(job->qmp, -1, NULL, NULL);
    if (rc < 0)
        return -1;
    job->syncAt = g_get_monotonic_time();
    if (vspTransferFinish(job->transfer, job->qmp, job->flow.progress.bytesIn, error) < 0)
        return -1;
    return vspTargetCommit(job->target, error);
}

/* --- the VM again --- */

/* Waits until no dump is active any more: QEMU has then closed the stream's end and begun to clean
 * up. */
static int
dumpWaitOver(vspDumpJob *job, GError **error)
{
    gint64 deadline = vspDeadline(OVER_MS);

    while (!job->over) {
        g_autoptr(GVariant) status = vspQmpExecute(job->qmp, "query-dump", NULL, error);

        if (!status)
            return -1;
        if (g_strcmp0(vspQmpGetString(status, "status"), "active") != 0)
            break;
        if (g_get_monotonic_time() >= deadline) {
            vspSetError(error, VSP_ERROR_TIMED_OUT,
                        _("QEMU goes on with the dump, and has no command to stop it"));
            return -1;
        }
        if (dumpTakeEvents(job, NULL) == 0 && vspQmpWait(job->qmp, vspDeadline(POLL_MS), error) < 0)
            return -1;
    }
    return 0;
}

/* QEMU lets the VM go on by itself, shortly after it has said that the dump is over. */
static int
dumpPutBack(vspDumpJob *job, GError **error)
{
    vspQmpSetCancellable(job->qmp, NULL);
    vspQmpSetWatch(job->qmp, -1, NULL, NULL);
    vspTransferTakeBack(job->transfer, job->qmp);
    if (!job->started)
        return 0;
    if (dumpWaitOver(job, error) < 0)
        return -1;
    if (!g_str_equal(job->stateBefore, "running"))
        return 0;
    if (vspGuestWaitState(job->qmp, TRUE, RESUME_MS, NULL) == 0)
        return 0;
    return vspGuestContinue(job->qmp, error);
}

static void
dumpFail(vspDumpJob *job, GError *cause, GError **error)
{
    g_autoptr(GError) why = NULL;

    if (job->transfer) {
        vspQmpSetCancellable(job->qmp, NULL);
        vspQmpSetWatch(job->qmp, -1, NULL, NULL);
        vspTransferTakeBack(job->transfer, job->qmp);
        vspTransferRootCause(job->transfer, &cause);
        /* What stops QEMU: its bytes are not taken any more. */
        vspTransferSettle(job->transfer, 0);
        if (dumpPutBack(job, &why) < 0 && job->started)
            cause = vspGuestNotPutBack(job->qmp, job->monitor, cause, why);
    }
    vspTargetDiscard(job->target);
    g_propagate_error(error, cause);
}

int
vspVmDump(const char *qmp,
          const char *path,
          const vspVmOptions *options,
          GCancellable *cancellable,
          GVariant **report,
          GError **error)
{
    g_auto(vspDumpJob) job = { .monitor = qmp };
    GError *cause = NULL;
    gint64 durableAt;

    g_return_val_if_fail(qmp != NULL && path != NULL, -1);
    g_return_val_if_fail(error == NULL || *error == NULL, -1);

    vspFlowInit(&job.flow, "dump", path, options, cancellable);
    if (dumpPrepare(&job, path, error) < 0)
        return -1;
    if (dumpOpen(&job, &cause) < 0 || dumpRun(&job, &cause) < 0) {
        dumpFail(&job, cause, error);
        return -1;
    }

    durableAt = g_get_monotonic_time();
    if (dumpPutBack(&job, &cause) < 0) {
        /* The dump itself is good, and is kept. */
        g_autofree char *done =
            g_strdup_printf(_("'%s' is complete"), vspTargetGetName(job.target));
        GError *good = g_error_new_literal(VSP_ERROR, VSP_ERROR_NOT_RESTORED, done);

        g_propagate_error(error, vspGuestNotPutBack(job.qmp, qmp, good, cause));
        g_error_free(cause);
        return -1;
    }
    vspTransferReport(job.transfer);
    vspFlowReportNumber(&job.flow, "payload-bytes", vspTransferGetBytes(job.transfer));
    vspFlowReportTime(&job.flow, "pause-ns", job.transferAt,
                      g_str_equal(job.stateBefore, "running") ? job.syncAt : job.transferAt);
    vspFlowReportTime(&job.flow, "transfer-ns", job.transferAt, job.syncAt);
    vspFlowReportTime(&job.flow, "sync-ns", job.syncAt, durableAt);
    vspFlowProgress(&job.flow, VSP_STAGE_DONE, 0, 0, job.flow.progress.bytesTotal);
    vspFlowFinish(&job.flow, report);
    return 0;
}
