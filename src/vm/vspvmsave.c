/*
 * vspvmsave.c: save a VM into an image
 *
 *   checks ─▶ file, helper, header ─▶ stop ─▶ migrate ─▶ verdict ─▶ header again, sync ─▶ quit
 *
 * Everything that can be refused is refused before `stop`. Each step notes what it has begun before
 * it begins it, so that the way back knows what to undo even if the step was interrupted. The image
 * is marked complete only after QEMU has said "completed" and the helper "durable"; from then on a
 * cancel comes too late and the save goes through to its end.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vspcompression.h"
#include "vsperrorpriv.h"
#include "vspfd.h"
#include "vspfilewrapperpriv.h"
#include "vspflow.h"
#include "vspguest.h"
#include "vspio.h"
#include "vspmigration.h"
#include "vspsaveimagepriv.h"
#include "vsptarget.h"
#include "vsptransfer.h"
#include "vspvmdescribe.h"
#include "vspvmoptionspriv.h"

/* A VM's device state alone takes about this much: with less there is no use in trying. */
#define ROOM_MIN (1024 * 1024)

/* How long QEMU may take to end after `quit`: it closes its disks. Longer: a QEMU that hangs is
 * noticed later. */
#define QUIT_MS 30000

typedef struct {
    vspFlow flow;
    const char *monitor; /* the socket's path */
    vspQmp *qmp;
    vspTarget *target;
    vspTransfer *transfer;
    GBytes *block; /* what stands before the payload */
    int fd;        /* a duplicate of the file's descriptor, for the header at the end; -1 */
    char *stateBefore;
    gboolean ran;   /* the VM ran before */
    guint64 memory; /* bytes */

    gboolean stopped;   /* `stop` may have happened */
    gboolean migrated;  /* `migrate` may have happened */
    gboolean completed; /* QEMU said so */
    vspMigrationSettings settings;
    gint64 pausedAt;
    gint64 transferAt;
    gint64 syncAt;
} vspSaveJob;

static void
saveJobClear(vspSaveJob *job)
{
    vspTransferFree(job->transfer);
    vspTargetFree(job->target);
    vspQmpFree(job->qmp);
    g_clear_pointer(&job->block, g_bytes_unref);
    vspFdClose(&job->fd);
    vspMigrationSettingsClear(&job->settings);
    vspFlowClear(&job->flow);
    g_free(job->stateBefore);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(vspSaveJob, saveJobClear)

/* --- before anything is touched --- */

/* States in which a save gives something that can be restored. */
static int
saveCheckState(vspSaveJob *job, GError **error)
{
    static const struct {
        const char *state;
        const char *why;
    } refused[] = {
        { "inmigrate", N_("it waits for its own state to come in") },
        { "preconfig", N_("it is not yet configured") },
        { "postmigrate", N_("its state was saved or migrated already; resume it first") },
        { "finish-migrate", N_("a migration is under way") },
        { "restore-vm", N_("a snapshot is being loaded") },
        { "save-vm", N_("a snapshot or a dump is being written") },
        { "suspended", N_("the guest sleeps (suspended to RAM); wake it up first") },
        { "shutdown", N_("the guest has shut down") },
        { "guest-panicked", N_("the guest has crashed; a dump is what can be had of it") },
        { "internal-error", N_("QEMU stopped it at an internal error") },
        { "colo", N_("it is one half of a fault-tolerant pair") },
    };

    job->stateBefore = vspGuestGetState(job->qmp, error);
    if (!job->stateBefore)
        return -1;
    for (gsize i = 0; i < G_N_ELEMENTS(refused); i++) {
        if (g_str_equal(job->stateBefore, refused[i].state)) {
            vspSetError(error, VSP_ERROR_BUSY, _("the VM can't be saved in the state '%s': %s"),
                        job->stateBefore, _(refused[i].why));
            return -1;
        }
    }
    job->ran = g_str_equal(job->stateBefore, "running");
    return 0;
}

static int
saveCheckRoom(vspSaveJob *job, GError **error)
{
    gsize need = g_bytes_get_size(job->block) + ROOM_MIN;
    g_autofree char *needText = NULL;
    g_autofree char *haveText = NULL;
    guint64 room;

    if (vspTargetGetRoom(job->target, &room, error) < 0)
        return -1;
    haveText = g_format_size_full(room, G_FORMAT_SIZE_IEC_UNITS);
    if (room < need) {
        needText = g_format_size_full(need, G_FORMAT_SIZE_IEC_UNITS);
        vspSetError(error, VSP_ERROR_NO_SPACE,
                    _("no space for '%s': at least %s are needed, %s are free"),
                    vspTargetGetName(job->target), needText, haveText);
        return -1;
    }
    if (job->memory && room < job->memory) {
        needText = g_format_size_full(job->memory, G_FORMAT_SIZE_IEC_UNITS);
        vspFlowNotice(&job->flow,
                      _("the space may not suffice: the VM has %s of memory, '%s' has room for %s"),
                      needText, vspTargetGetName(job->target), haveText);
    }
    return 0;
}

/* The caller's XML, if it is one and of this VM. */
static int
saveCheckXml(vspSaveJob *job, GError **error)
{
    const char *xml = job->flow.options->domainXml;
    g_autofree char *uuid = vspGuestGetUuid(job->qmp);
    g_autoptr(vspDomainXml) domain = vspDomainXmlParse(xml, strlen(xml), error);

    if (!domain) {
        g_prefix_error(error, "%s", _("the domain XML can't be used: "));
        return -1;
    }
    if (uuid && domain->uuid && g_ascii_strcasecmp(uuid, domain->uuid) != 0)
        vspFlowNotice(&job->flow,
                      _("the domain XML is of another VM: its UUID is %s, that of the VM %s"),
                      domain->uuid, uuid);
    vspFlowReportString(&job->flow, "guest", domain->name);
    vspFlowReportString(&job->flow, "uuid", domain->uuid);
    return 0;
}

static int
saveMakeBlock(vspSaveJob *job, GError **error)
{
    vspRunState wanted = job->flow.options->runState;
    gboolean running = wanted == VSP_RUN_STATE_SAME ? job->ran : wanted == VSP_RUN_STATE_RUNNING;
    vspSaveImageFormat format = VSP_SAVE_IMAGE_FORMAT_RAW;
    g_autofree char *xml = NULL;
    const vspCompression *compression;
    int level;

    if (job->flow.options->wrapper->compression) {
        if (vspCompressionParse(job->flow.options->wrapper->compression, &compression, &level, error) < 0)
            return -1;
        format = (vspSaveImageFormat) compression->number;
        vspFlowReportString(&job->flow, "format", compression->name);
    }

    if (job->flow.options->domainXml) {
        if (saveCheckXml(job, error) < 0)
            return -1;
        xml = g_strdup(job->flow.options->domainXml);
    } else {
        g_autoptr(vspDomainXml) domain = vspVmDescribe(job->qmp, &job->flow, error);

        if (!domain)
            return -1;
        xml = vspDomainXmlFormat(domain);
        vspFlowReportString(&job->flow, "guest", domain->name);
        vspFlowReportString(&job->flow, "uuid", domain->uuid);
    }
    vspFlowReportString(&job->flow, "run-state", running ? "running" : "paused");
    job->block = vspSaveImageBlockNew(xml, NULL, running, format, error);
    return job->block ? 0 : -1;
}

static int
savePrepare(vspSaveJob *job, const char *path, GError **error)
{
    if (vspFlowCheckCancelled(&job->flow, error) < 0)
        return -1;
    job->target = vspTargetNew(path, job->flow.options->overwrite, error);
    if (!job->target)
        return -1;
    job->qmp = vspQmpOpen(job->monitor, job->flow.cancellable, error);
    if (!job->qmp || saveCheckState(job, error) < 0 || vspGuestCheckIdle(job->qmp, TRUE, error) < 0)
        return -1;
    job->memory = vspGuestGetMemory(job->qmp);
    if (saveMakeBlock(job, error) < 0 || saveCheckRoom(job, error) < 0)
        return -1;
    vspFlowReportString(&job->flow, "qemu-version", vspQmpGetVersion(job->qmp));
    return 0;
}

/* File, helper, and the header that says "partial". */
static int
saveOpen(vspSaveJob *job, GError **error)
{
    g_auto(vspFd) fd = vspTargetOpen(job->target, error);
    gsize len;
    gconstpointer data = g_bytes_get_data(job->block, &len);
    const vspTransferShape shape = {
        .flags = VSP_FILE_WRAPPER_NON_BLOCKING,
        .plainLength = len,
        .digest = job->flow.options->digest,
    };

    if (fd < 0)
        return -1;
    job->fd = vspFdDup(fd);
    if (job->fd < 0) {
        vspSetErrno(error, errno, _("cannot keep '%s' open"), vspTargetGetName(job->target));
        return -1;
    }
    job->transfer = vspTransferNew(&fd, vspTargetGetName(job->target), &job->flow, &shape,
                                   error);
    if (!job->transfer)
        return -1;
    return vspTransferWrite(job->transfer, data, len, error);
}

/* --- the save --- */

static int
saveStop(vspSaveJob *job, GError **error)
{
    /* While it still runs, so that it is paused for less. */
    if (vspMigrationPrepare(job->qmp, FALSE, &job->settings, error) < 0)
        return -1;
    job->pausedAt = g_get_monotonic_time();
    if (!job->ran)
        return 0;
    job->stopped = TRUE;
    return vspGuestStop(job->qmp, error);
}

static int
saveMigrate(vspSaveJob *job, GError **error)
{
    g_autofree char *uri = g_strconcat("fd:", vspTransferGetFdName(job->transfer), NULL);
    int rc;

    if (vspTransferHandOver(job->transfer, job->qmp, error) < 0)
        return -1;
    vspQmpSetWatch(job->qmp, vspTransferGetFd(job->transfer), vspTransferWatch, job->transfer);
    job->transferAt = g_get_monotonic_time();
    job->migrated = TRUE;
    rc = vspQmpRun(job->qmp, "migrate", g_variant_new_parsed("{'uri': <%s>}", uri), error);
    if (rc == 0)
        rc = vspMigrationWait(job->qmp, &job->flow, job->transfer, 0, error);
    vspQmpSetWatch(job->qmp, -1, NULL, NULL);
    if (rc < 0)
        return -1;
    job->completed = TRUE;
    job->syncAt = g_get_monotonic_time();
    return vspTransferFinish(job->transfer, job->qmp, job->flow.progress.bytesIn, error);
}

/* The image's payload is durable: mark it complete. The helper may have left O_DIRECT on the open
 * file, which the header's 92 bytes are not fit for. */
static int
saveComplete(vspSaveJob *job, GError **error)
{
    guint64 bytes = vspTransferGetBytes(job->transfer);
    gsize blockLen = g_bytes_get_size(job->block);
    guint8 header[VSP_SAVE_IMAGE_HEADER_SIZE];
    const char *name = vspTargetGetName(job->target);
    struct stat st;
    int flags;

    if (bytes < blockLen || fstat(job->fd, &st) < 0 ||
        (S_ISREG(st.st_mode) && (guint64)st.st_size != bytes)) {
        vspSetError(error, VSP_ERROR_IO,
                    _("'%s' does not have the %" PRIu64 " bytes that were written"), name, bytes);
        return -1;
    }
    vspSaveImageBlockComplete(job->block, bytes - blockLen, vspTransferGetDigest(job->transfer),
                              header);

    flags = fcntl(job->fd, F_GETFL);
    if (flags < 0 || fcntl(job->fd, F_SETFL, flags & ~O_DIRECT) < 0 ||
        vspPwriteFull(job->fd, header, sizeof(header), 0) < 0) {
        vspSetErrno(error, errno, _("cannot write the header of '%s'"), name);
        return -1;
    }
    if (fdatasync(job->fd) < 0) {
        vspSetErrno(error, errno, _("cannot sync '%s'"), name);
        return -1;
    }
    if (vspFdCloseChecked(&job->fd) < 0) {
        vspSetErrno(error, errno, _("cannot close '%s'"), name);
        return -1;
    }
    if (vspTargetCommit(job->target, error) < 0)
        return -1;
    vspFlowReportNumber(&job->flow, "payload-bytes", bytes - blockLen);
    vspFlowReportNumber(&job->flow, "payload-offset", blockLen);
    return 0;
}

/* The image is complete and durable. What goes wrong from here on can only be told. */
static void
saveEnd(vspSaveJob *job)
{
    vspQmpSetCancellable(job->qmp, NULL);
    if (job->flow.options->keepPaused) {
        vspMigrationRestore(job->qmp, &job->settings);
        if (vspQmpIsLost(job->qmp))
            vspFlowNotice(&job->flow, _("QEMU ended by itself after the save"));
        return;
    }
    vspQmpRun(job->qmp, "quit", NULL, NULL);
    if (!vspQmpWaitEnd(job->qmp, vspDeadline(QUIT_MS)))
        vspFlowNotice(&job->flow,
                      _("the image is complete, but QEMU has not ended within %d seconds after "
                        "`quit`: end it before the image is restored"),
                      QUIT_MS / 1000);
}

/* --- the way back --- */

/* -1 with @error: why the VM is not back in the state it had. */
static int
savePutBack(vspSaveJob *job, GError **error)
{
    g_auto(vspMigrationInfo) info = { 0 };
    g_autofree char *state = NULL;

    if (job->migrated && !job->completed &&
        vspMigrationCancel(job->qmp, job->transfer, &info, error) < 0)
        return -1;
    vspTransferSettle(job->transfer, 0);
    vspMigrationRestore(job->qmp, &job->settings);
    if (job->stopped)
        return vspGuestContinue(job->qmp, error);
    if (!job->migrated)
        return 0;

    state = vspGuestGetState(job->qmp, error);
    if (!state)
        return -1;
    if (!g_str_equal(state, job->stateBefore))
        vspFlowNotice(
            &job->flow,
            _("the VM is paused as before, but QEMU calls it '%s' now instead of '%s': it "
              "has to be resumed once before it can be saved"),
            state, job->stateBefore);
    return 0;
}

static void
saveFail(vspSaveJob *job, GError *cause, GError **error)
{
    g_autoptr(GError) why = NULL;

    if (job->transfer) {
        vspQmpSetCancellable(job->qmp, NULL);
        vspQmpSetWatch(job->qmp, -1, NULL, NULL);
        /* If QEMU never took it up, the helper then sees its end and need not be waited for. */
        vspTransferTakeBack(job->transfer, job->qmp);
        vspTransferRootCause(job->transfer, &cause);
        if (savePutBack(job, &why) < 0 && (job->stopped || job->migrated))
            cause = vspGuestNotPutBack(job->qmp, job->monitor, cause, why);
    }
    g_clear_pointer(&job->transfer, vspTransferFree);
    vspFdClose(&job->fd);
    if (job->target)
        vspTargetDiscard(job->target);
    g_propagate_error(error, cause);
}

int
vspVmSave(const char *qmp,
          const char *path,
          const vspVmOptions *options,
          GCancellable *cancellable,
          GVariant **report,
          GError **error)
{
    g_auto(vspSaveJob) job = { .monitor = qmp, .fd = -1 };
    GError *cause = NULL;
    gint64 durableAt;

    g_return_val_if_fail(qmp != NULL && path != NULL, -1);
    g_return_val_if_fail(error == NULL || *error == NULL, -1);

    vspFlowInit(&job.flow, "save", path, options, cancellable);
    if (savePrepare(&job, path, &cause) < 0 || saveOpen(&job, &cause) < 0 ||
        saveStop(&job, &cause) < 0 || saveMigrate(&job, &cause) < 0 ||
        saveComplete(&job, &cause) < 0) {
        saveFail(&job, cause, error);
        return -1;
    }

    durableAt = g_get_monotonic_time();
    vspTransferReport(job.transfer);
    saveEnd(&job);
    vspFlowReportTime(&job.flow, "pause-ns", job.pausedAt, durableAt);
    vspFlowReportTime(&job.flow, "transfer-ns", job.transferAt, job.syncAt);
    vspFlowReportTime(&job.flow, "sync-ns", job.syncAt, durableAt);
    vspFlowReportBoolean(&job.flow, "kept-paused", job.flow.options->keepPaused);
    vspFlowProgress(&job.flow, VSP_STAGE_DONE, 0, 0, job.flow.progress.bytesTotal);
    vspFlowFinish(&job.flow, report);
    return 0;
}
