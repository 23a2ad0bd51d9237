/*
 * vspvmrestore.c: restore a VM from an image
 *
 *   check the image ─▶ start QEMU, or connect ─▶ feed it ─▶ completed ─▶ cont, if it ran
 *
 * The image is only ever read. A QEMU that was started here is ended again if anything fails; one
 * that was there before is left to itself: it ends by itself when its stream breaks.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gi18n-lib.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vmspool/vsp-copy.h>

#include "vspcompression.h"
#include "vsperrorpriv.h"
#include "vspfd.h"
#include "vspflow.h"
#include "vspguest.h"
#include "vspio.h"
#include "vspmigration.h"
#include "vspqemucommand.h"
#include "vspsaveimagepriv.h"
#include "vspspawn.h"
#include "vspstatus.h"
#include "vsptransfer.h"
#include "vspvmoptionspriv.h"

/* From starting QEMU to its monitor's greeting. It may have to allocate all of the VM's memory
 * first. A QEMU that ends is noticed at once. */
#define START_MS 120000

/* For each of: quit, SIGTERM, SIGKILL. */
#define END_MS 3000

typedef struct {
    vspFlow flow;
    const char *name;
    int fd;       /* the image; -1 once the helper has it */
    int imageFd;  /* a duplicate of it, to look again if something fails; -1 */
    vspSaveImage *image;
    vspQmp *qmp;
    vspChild *child; /* NULL for a QEMU that was there before */
    char *program;   /* what was started, for messages */
    vspTransfer *transfer;
    vspMigrationSettings settings;
    gint64 transferAt;
} vspRestoreJob;

static void
restoreJobClear(vspRestoreJob *job)
{
    vspTransferFree(job->transfer);
    vspQmpFree(job->qmp);
    vspChildFree(job->child);
    vspSaveImageFree(job->image);
    vspFdClose(&job->fd);
    vspFdClose(&job->imageFd);
    vspMigrationSettingsClear(&job->settings);
    vspFlowClear(&job->flow);
    g_free(job->program);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(vspRestoreJob, restoreJobClear)

/* --- the image --- */

static int
restoreCheckFormat(vspRestoreJob *job, GError **error)
{
    guint32 format = vspSaveImageGetFormat(job->image);
    const char *word = vspSaveImageFormatToString(format);

    if (format == VSP_SAVE_IMAGE_FORMAT_RAW || vspCompressionFromNumber(format))
        return 0;
    if (word)
        vspSetError(error, VSP_ERROR_IMAGE_UNSUPPORTED,
                    _("'%s' has the format %s, which cannot be restored by this version"),
                    job->name, word);
    else
        vspSetError(error, VSP_ERROR_IMAGE_UNSUPPORTED,
                    _("'%s' has the unknown format %u, which cannot be restored by this version"),
                    job->name, format);
    return -1;
}

static int
restoreOpen(vspRestoreJob *job, const char *path, GError **error)
{
    job->image = vspSaveImageOpenKeep(path, &job->fd, error);
    if (!job->image)
        return -1;
    if (!vspSaveImageIsComplete(job->image)) {
        vspSetError(error, VSP_ERROR_IMAGE_PARTIAL,
                    _("'%s' is a partial image: the save that wrote it did not finish"), job->name);
        return -1;
    }
    if (restoreCheckFormat(job, error) < 0)
        return -1;
    if (vspSaveImageGetPayloadLength(job->image) == 0) {
        vspSetError(error, VSP_ERROR_IMAGE_CUT, _("'%s' ends before the VM's state"), job->name);
        return -1;
    }
    for (const char *const *notice = vspSaveImageGetNotices(job->image); *notice; notice++)
        vspFlowNotice(&job->flow, "%s", *notice);
    if (lseek(job->fd, vspSaveImageGetPayloadOffset(job->image), SEEK_SET) < 0) {
        vspSetErrno(error, errno, _("cannot seek in '%s'"), job->name);
        return -1;
    }
    vspFlowReportString(&job->flow, "guest", vspSaveImageGetDomainName(job->image));
    vspFlowReportString(&job->flow, "uuid", vspSaveImageGetDomainUuid(job->image));
    vspFlowReportNumber(&job->flow, "payload-bytes", vspSaveImageGetPayloadLength(job->image));
    vspFlowReportNumber(&job->flow, "payload-offset", vspSaveImageGetPayloadOffset(job->image));
    return 0;
}

/* Whether the payload is to be compared with the seal. */
static gboolean
restoreWantsDigest(const vspRestoreJob *job)
{
    return job->flow.options->digest && vspSaveImageGetDigest(job->image);
}

/* -1 with @error if @digest is not the sealed one. */
static int
restoreCompareDigest(const vspRestoreJob *job, const char *digest, GError **error)
{
    g_autofree char *sealed = vspDigestToText(vspSaveImageGetDigest(job->image));

    if (g_strcmp0(digest, sealed) == 0)
        return 0;
    vspSetError(error, VSP_ERROR_IMAGE_CORRUPT,
                _("'%s' is corrupt: the digest of its payload is %s, and was %s when it was saved; "
                  "the VM was not let run: use another copy of the image"),
                job->name, digest, sealed);
    return -1;
}

/* --- QEMU --- */

/* What a QEMU started here has to say about its end, or NULL while there is nothing to say. It is
 * asked when its monitor is lost: then it is ending. */
static GError *
restoreChildError(vspRestoreJob *job)
{
    g_autofree char *text = NULL;
    int status = 0;
    vspChildState state;

    if (!job->child)
        return NULL;
    state = vspChildWait(job->child, vspDeadline(END_MS), &status);
    text = vspChildGetStderr(job->child);
    if (state == VSP_CHILD_RUNNING)
        return NULL;
    if (*text)
        return g_error_new(VSP_ERROR, VSP_ERROR_QEMU_LOST, _("'%s' ended: %s"), job->program, text);
    if (state == VSP_CHILD_EXITED) {
        g_autofree char *how = vspChildStatusText(status);

        return g_error_new(VSP_ERROR, VSP_ERROR_QEMU_LOST, _("'%s' %s and said nothing"),
                           job->program, how);
    }
    return g_error_new(VSP_ERROR, VSP_ERROR_QEMU_LOST, _("'%s' ended and said nothing"),
                       job->program);
}

static int
restoreStart(vspRestoreJob *job, const char *const *command, GError **error)
{
    g_auto(GStrv) argv = NULL;
    g_auto(vspFd) ours = -1;
    g_auto(vspFd) theirs = -1;
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
        vspSetErrno(error, errno, _("cannot create a monitor for QEMU"));
        return -1;
    }
    ours = pair[0];
    theirs = pair[1];
    job->program = vspNameEscape(command[0]);
    /* It keeps its number in the child: that can't be one that the caller means the child to have.
     */
    argv = vspQemuCommandForRestore(command, theirs);
    job->child = vspChildSpawn((const char *const *)argv, NULL, VSP_SPAWN_DETACHED, &theirs,
                               &theirs, 1, error);
    vspFdClose(&theirs);
    if (!job->child)
        return -1;
    if (!vspQemuCommandHasMonitor(command))
        vspFlowNotice(&job->flow,
                      _("QEMU's command line has no monitor: once it is restored, nobody can "
                        "control this VM"));
    job->qmp = vspQmpOpenFd(&ours, job->program, START_MS, job->flow.cancellable, error);
    return job->qmp ? 0 : -1;
}

/* Only a QEMU that waits for a state can take one. */
static int
restoreCheckWaiting(vspRestoreJob *job, GError **error)
{
    g_autofree char *state = vspGuestGetState(job->qmp, error);

    if (!state)
        return -1;
    if (!g_str_equal(state, "inmigrate")) {
        vspSetError(
            error, VSP_ERROR_BUSY,
            _("this QEMU does not wait for a state to come in (its state is '%s'): start it "
              "with '-incoming defer'"),
            state);
        return -1;
    }
    vspFlowReportString(&job->flow, "qemu-version", vspQmpGetVersion(job->qmp));
    return 0;
}

/* QEMU says little about a state that does not fit it; the commonest reason can be seen from here.
 */
static char *
restoreMismatch(vspRestoreJob *job)
{
    guint64 saved = vspSaveImageGetDomainMemory(job->image);
    guint64 have = vspGuestGetMemory(job->qmp);
    g_autofree char *savedText = NULL;
    g_autofree char *haveText = NULL;

    if (saved == 0 || have == 0 || saved == have)
        return NULL;
    savedText = g_format_size_full(saved, G_FORMAT_SIZE_IEC_UNITS);
    haveText = g_format_size_full(have, G_FORMAT_SIZE_IEC_UNITS);
    return g_strdup_printf(_("the image is of a VM with %s of memory, this QEMU has %s"), savedText,
                           haveText);
}

/* --- the restore --- */

static int
restoreTransfer(vspRestoreJob *job, GError **error)
{
    guint64 length = vspSaveImageGetPayloadLength(job->image);
    const vspCompression *compression =
        vspCompressionFromNumber(vspSaveImageGetFormat(job->image));
    const vspTransferShape shape = {
        .length = length,
        .digest = restoreWantsDigest(job),
        .decompression = compression ? compression->name : NULL,
    };
    g_autofree char *mismatch = restoreMismatch(job);
    g_autofree char *uri = NULL;
    int rc;

    if (mismatch)
        vspFlowNotice(&job->flow, "%s", mismatch);
    job->imageFd = vspFdDup(job->fd);
    job->transfer = vspTransferNew(&job->fd, job->name, &job->flow, &shape, error);
    if (!job->transfer || vspMigrationPrepare(job->qmp, TRUE, &job->settings, error) < 0 ||
        vspTransferHandOver(job->transfer, job->qmp, error) < 0)
        return -1;

    uri = g_strconcat("fd:", vspTransferGetFdName(job->transfer), NULL);
    vspQmpSetWatch(job->qmp, vspTransferGetFd(job->transfer), vspTransferWatch, job->transfer);
    job->transferAt = g_get_monotonic_time();
    rc = vspQmpRun(job->qmp, "migrate-incoming", g_variant_new_parsed("{'uri': <%s>}", uri), error);
    if (rc == 0)
        rc = vspMigrationWait(job->qmp, &job->flow, job->transfer, length, error);
    vspQmpSetWatch(job->qmp, -1, NULL, NULL);
    return rc;
}

/* QEMU has its state. Whether it is the whole of what the image holds is the helper's to say. */
static int
restoreVerdict(vspRestoreJob *job, GError **error)
{
    g_autoptr(GError) local = NULL;

    if (vspTransferFinish(job->transfer, job->qmp, vspSaveImageGetPayloadLength(job->image),
                          &local) == 0) {
        g_autofree char *digest = NULL;

        if (!restoreWantsDigest(job))
            return 0;
        digest = vspDigestToText(vspTransferGetDigest(job->transfer));
        return restoreCompareDigest(job, digest, error);
    }
    /* Behind a state without a seal there may be anything: the rest of a block device, padding. */
    if (g_error_matches(local, VSP_ERROR, VSP_ERROR_READER_GONE) &&
        vspSaveImageGetSeal(job->image) != VSP_SAVE_IMAGE_SEAL_VALID) {
        vspFlowNotice(&job->flow, _("'%s' goes on after the end of the VM's state"), job->name);
        return 0;
    }
    g_propagate_error(error, g_steal_pointer(&local));
    return -1;
}

static int
restoreRun(vspRestoreJob *job, GError **error)
{
    vspRunState wanted = job->flow.options->runState;
    gboolean running = wanted == VSP_RUN_STATE_SAME ? vspSaveImageWasRunning(job->image)
                                                    : wanted == VSP_RUN_STATE_RUNNING;

    if (vspFlowCheckCancelled(&job->flow, error) < 0)
        return -1;
    /* From here on the VM may run, and write to its disks: it is too late to call it off. */
    vspQmpSetCancellable(job->qmp, NULL);
    vspMigrationRestore(job->qmp, &job->settings);
    if ((running ? vspGuestContinue(job->qmp, error) : vspGuestStop(job->qmp, error)) < 0) {
        g_prefix_error(error, "%s", _("the state is loaded, but the VM can't go on: "));
        return -1;
    }
    vspFlowReportString(&job->flow, "run-state", running ? "running" : "paused");
    return 0;
}

/* --- the way back --- */

/* What went wrong first: the helper's failure to read the image, or what QEMU said when it ended.
 */
static void
restoreRootCause(vspRestoreJob *job, GError **cause)
{
    GError *better;

    if (job->transfer)
        vspTransferRootCause(job->transfer, cause);
    if (!g_error_matches(*cause, VSP_ERROR, VSP_ERROR_QEMU_LOST))
        return;
    if (!job->child) {
        if (job->transfer)
            g_prefix_error(cause, "%s",
                           _("QEMU did not take the state; its own messages say why: "));
        return;
    }
    better = restoreChildError(job);
    if (better) {
        g_clear_error(cause);
        *cause = better;
    }
}

/* Ends the QEMU that was started here. */
static void
restoreEndChild(vspRestoreJob *job)
{
    static const int signals[] = { SIGTERM, SIGKILL };

    if (!job->child)
        return;
    if (job->qmp && !vspQmpIsLost(job->qmp)) {
        g_autoptr(GVariant) done = NULL;

        vspQmpSetCancellable(job->qmp, NULL);
        vspQmpSetWatch(job->qmp, -1, NULL, NULL);
        g_clear_pointer(&job->transfer, vspTransferFree);
        done = vspQmpExecuteFull(job->qmp, "quit", NULL, -1, END_MS, NULL);
        if (done)
            vspChildWait(job->child, vspDeadline(END_MS), NULL);
    }
    for (gsize i = 0; i < G_N_ELEMENTS(signals); i++) {
        if (vspChildWait(job->child, 0, NULL) != VSP_CHILD_RUNNING)
            return;
        vspChildKill(job->child, signals[i]);
        vspChildWait(job->child, vspDeadline(END_MS), NULL);
    }
}

/* A QEMU that could not load the state says what it stumbled over. If the payload is not what was saved
 * that is the cause: the image is read once more to see. */
static void
restoreSuspectImage(vspRestoreJob *job, GError **cause)
{
    g_autoptr(vspFileWrapperOptions) options = NULL;
    g_autoptr(GVariant) report = NULL;
    g_autoptr(GError) corrupt = NULL;
    g_auto(vspFd) sink = -1;
    const char *digest = NULL;

    if (job->imageFd < 0 || !restoreWantsDigest(job) ||
        !(g_error_matches(*cause, VSP_ERROR, VSP_ERROR_QEMU) ||
          g_error_matches(*cause, VSP_ERROR, VSP_ERROR_QEMU_LOST) ||
          g_error_matches(*cause, VSP_ERROR, VSP_ERROR_READER_GONE)))
        return;
    sink = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (sink < 0 || lseek(job->imageFd, vspSaveImageGetPayloadOffset(job->image), SEEK_SET) < 0)
        return;
    options = vspFileWrapperOptionsCopy(job->flow.options->wrapper);
    vspFileWrapperOptionsSetLength(options, vspSaveImageGetPayloadLength(job->image));
    vspFileWrapperOptionsSetDigest(options, TRUE);
    vspFileWrapperOptionsSetCompression(options, NULL);
    if (vspCopy(job->imageFd, job->name, sink, "/dev/null", options, NULL, NULL,
                job->flow.cancellable, &report, NULL) < 0 ||
        !g_variant_lookup(report, "digest", "&s", &digest))
        return;
    if (restoreCompareDigest(job, digest, &corrupt) < 0) {
        g_debug("in consequence: %s", (*cause)->message);
        g_clear_error(cause);
        *cause = g_steal_pointer(&corrupt);
    }
}

static void
restoreFail(vspRestoreJob *job, GError *cause, GError **error)
{
    gboolean aborted = g_error_matches(cause, VSP_ERROR, VSP_ERROR_ABORTED);

    if (job->qmp) {
        vspQmpSetCancellable(job->qmp, NULL);
        vspQmpSetWatch(job->qmp, -1, NULL, NULL);
    }
    /* The helper has nothing to add to a cancel. Without it QEMU soon runs out of bytes, and answers. */
    if (job->transfer && aborted)
        vspTransferSettle(job->transfer, 0);
    if (job->transfer && !(aborted && job->child))
        vspTransferTakeBack(job->transfer, job->qmp);
    restoreRootCause(job, &cause);
    if (job->transfer)
        vspTransferSettle(job->transfer, 0);
    restoreEndChild(job);
    restoreSuspectImage(job, &cause);
    g_propagate_error(error, cause);
}

int
vspVmRestore(const char *path,
             const char *qmp,
             const char *const *command,
             const vspVmOptions *options,
             GCancellable *cancellable,
             GVariant **report,
             GError **error)
{
    g_auto(vspRestoreJob) job = { .fd = -1, .imageFd = -1 };
    g_autofree char *name = NULL;
    GError *cause = NULL;
    gint64 doneAt;
    int rc;

    g_return_val_if_fail(path != NULL, -1);
    g_return_val_if_fail(error == NULL || *error == NULL, -1);

    if (!qmp == !(command && command[0])) {
        vspSetError(error, VSP_ERROR_INVALID_ARGUMENT,
                    _("a restore needs either a monitor or a QEMU command"));
        return -1;
    }
    name = vspNameEscape(path);
    job.name = name;
    vspFlowInit(&job.flow, "restore", path, options, cancellable);
    if (vspFlowCheckCancelled(&job.flow, error) < 0 || restoreOpen(&job, path, error) < 0)
        return -1;

    if (qmp) {
        job.qmp = vspQmpOpen(qmp, cancellable, &cause);
        rc = job.qmp ? 0 : -1;
    } else {
        rc = restoreStart(&job, command, &cause);
    }
    if (rc < 0 || restoreCheckWaiting(&job, &cause) < 0 || restoreTransfer(&job, &cause) < 0 ||
        restoreVerdict(&job, &cause) < 0 || restoreRun(&job, &cause) < 0) {
        restoreFail(&job, cause, error);
        return -1;
    }

    doneAt = g_get_monotonic_time();
    vspTransferReport(job.transfer);
    if (job.child)
        vspFlowReportNumber(&job.flow, "pid", vspChildGetPid(job.child));
    vspFlowReportTime(&job.flow, "transfer-ns", job.transferAt, doneAt);
    vspFlowProgress(&job.flow, VSP_STAGE_DONE, job.flow.progress.bytesTotal,
                    job.flow.progress.bytesTotal, job.flow.progress.bytesTotal);
    vspFlowFinish(&job.flow, report);
    return 0;
}
