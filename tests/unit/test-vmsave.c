/*
 * test-vmsave.c: the save flow, its faults, and what is left behind by them
 *
 * QEMU is a double; the helper and the file are real. After each save there is either a complete
 * image and no VM that could go on, or no file and a VM in the state it had.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vmspool/vmspool.h>

#include "fakeqemu.h"
#include "testutil.h"
#include "vmfixture.h"
#include "vspfd.h"
#include "vspio.h"

#define LENGTH (3 * 1024 * 1024 + 17)

static void
assertImage(const char *path, gboolean running)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(vspSaveImage) image = vspSaveImageOpen(path, &error);
    g_autofree char *content = NULL;
    guint64 offset;
    struct stat st;
    gsize len;

    g_assert_no_error(error);
    g_assert_true(vspSaveImageIsComplete(image));
    g_assert_cmpint(vspSaveImageGetSeal(image), ==, VSP_SAVE_IMAGE_SEAL_VALID);
    g_assert_cmpuint(vspSaveImageGetPayloadLength(image), ==, LENGTH);
    g_assert_cmpint(vspSaveImageWasRunning(image), ==, running);
    g_assert_cmpstr(vspSaveImageGetDomainName(image), ==, "double");

    g_assert_true(g_file_get_contents(path, &content, &len, NULL));
    offset = vspSaveImageGetPayloadOffset(image);
    g_assert_cmpuint(len, ==, offset + LENGTH);
    vmFixtureAssertStream(content + offset, LENGTH);
    g_assert_cmpint(stat(path, &st), ==, 0);
    g_assert_cmpint(st.st_mode & 07777, ==, 0600);
}

/* --- saves that succeed --- */

static void
testGood(void)
{
    g_auto(vmFixture) f;
    g_autoptr(vspVmOptions) options = NULL;
    g_autoptr(fakeQemu) qemu = NULL;
    g_autoptr(GVariant) report = NULL;
    g_autoptr(GVariant) transfer = NULL;
    g_autoptr(GError) error = NULL;
    guint64 bytes = 0;
    mode_t mask;
    int rc;

    vmFixtureInit(&f);
    options = vmFixtureOptions(&f);
    qemu = fakeQemuNew(f.monitor, &(fakeQemuPlan){ .streamLength = LENGTH });
    mask = umask(0);
    rc = vspVmSave(f.monitor, f.file, options, NULL, &report, &error);
    umask(mask);
    g_assert_no_error(error);
    g_assert_cmpint(rc, ==, 0);
    assertImage(f.file, TRUE);
    g_assert_true(fakeQemuHasQuit(qemu));
    g_assert_true(fakeQemuHadSettings(qemu));
    g_assert_cmpuint(fakeQemuCountFds(qemu), ==, 0);
    g_assert_cmpint(f.last.stage, ==, VSP_STAGE_DONE);

    g_assert_true(g_variant_lookup(report, "payload-bytes", "t", &bytes));
    g_assert_cmpuint(bytes, ==, LENGTH);
    g_assert_true(g_variant_lookup(report, "pause-ns", "t", &bytes));
    transfer = g_variant_lookup_value(report, "transfer", G_VARIANT_TYPE_VARDICT);
    g_assert_nonnull(transfer);
    g_assert_true(g_variant_lookup(transfer, "bytes-out", "t", &bytes));
    g_assert_cmpuint(bytes, >, LENGTH);
}

static void
testKeepPaused(void)
{
    g_auto(vmFixture) f;
    g_autoptr(vspVmOptions) options = NULL;
    g_autoptr(fakeQemu) qemu = NULL;
    g_autoptr(GError) error = NULL;

    vmFixtureInit(&f);
    options = vmFixtureOptions(&f);
    vspVmOptionsSetKeepPaused(options, TRUE);
    qemu = fakeQemuNew(f.monitor, &(fakeQemuPlan){ .streamLength = LENGTH });
    g_assert_cmpint(vspVmSave(f.monitor, f.file, options, NULL, NULL, &error), ==, 0);
    g_assert_no_error(error);
    assertImage(f.file, TRUE);
    g_assert_true(fakeQemuIsAlive(qemu));
    g_assert_cmpstr(fakeQemuGetState(qemu), ==, "postmigrate");
    g_assert_true(fakeQemuHasSettings(qemu));
}

/* A paused VM is not run, not even for a moment; and its image says so, unless told otherwise. */
static void
testPaused(void)
{
    static const vspRunState states[] = { VSP_RUN_STATE_SAME, VSP_RUN_STATE_RUNNING };

    for (gsize i = 0; i < G_N_ELEMENTS(states); i++) {
        g_auto(vmFixture) f;
        g_autoptr(vspVmOptions) options = NULL;
        g_autoptr(fakeQemu) qemu = NULL;
        g_autoptr(GError) error = NULL;

        vmFixtureInit(&f);
        options = vmFixtureOptions(&f);
        vspVmOptionsSetRunState(options, states[i]);
        qemu = fakeQemuNew(f.monitor, &(fakeQemuPlan){ .streamLength = LENGTH, .state = "paused" });
        g_assert_cmpint(vspVmSave(f.monitor, f.file, options, NULL, NULL, &error), ==, 0);
        g_assert_no_error(error);
        assertImage(f.file, states[i] == VSP_RUN_STATE_RUNNING);
        g_assert_cmpuint(fakeQemuCount(qemu, "stop"), ==, 0);
        g_assert_cmpuint(fakeQemuCount(qemu, "cont"), ==, 0);
    }
}

static void
testSmallRoom(void)
{
    g_auto(vmFixture) f;
    g_autoptr(vspVmOptions) options = NULL;
    g_autoptr(fakeQemu) qemu = NULL;
    g_autoptr(GError) error = NULL;

    vmFixtureInit(&f);
    options = vmFixtureOptions(&f);
    qemu = fakeQemuNew(f.monitor, &(fakeQemuPlan){ .streamLength = LENGTH,
                                                   .memory = G_GUINT64_CONSTANT(1) << 60 });
    g_assert_cmpint(vspVmSave(f.monitor, f.file, options, NULL, NULL, &error), ==, 0);
    g_assert_no_error(error);
    g_assert_true(vmFixtureWasTold(&f, "may not suffice"));
}

/* Words on the way that are known, and one that is not; and no events at all. */
static void
testDetours(void)
{
    static const char *const detours[] = { "setup",          "active",
                                           "device",         "wait-unplug",
                                           "pre-switchover", "flux-compensating",
                                           "cancelling",     NULL };
    g_auto(vmFixture) f;
    g_autoptr(vspVmOptions) options = NULL;
    g_autoptr(fakeQemu) qemu = NULL;
    g_autoptr(GError) error = NULL;

    vmFixtureInit(&f);
    options = vmFixtureOptions(&f);
    qemu = fakeQemuNew(
        f.monitor, &(fakeQemuPlan){ .streamLength = LENGTH, .detours = detours, .noEvents = TRUE });
    g_assert_cmpint(vspVmSave(f.monitor, f.file, options, NULL, NULL, &error), ==, 0);
    g_assert_no_error(error);
    assertImage(f.file, TRUE);
    g_assert_true(vmFixtureWasTold(&f, "flux-compensating"));
}

/* QEMU ends by itself when all is said: the image counts. */
static void
testLostAfterwards(void)
{
    g_auto(vmFixture) f;
    g_autoptr(vspVmOptions) options = NULL;
    g_autoptr(fakeQemu) qemu = NULL;
    g_autoptr(GError) error = NULL;

    vmFixtureInit(&f);
    options = vmFixtureOptions(&f);
    qemu = fakeQemuNew(f.monitor, &(fakeQemuPlan){ .streamLength = LENGTH, .dieAt = "quit" });
    g_assert_cmpint(vspVmSave(f.monitor, f.file, options, NULL, NULL, &error), ==, 0);
    g_assert_no_error(error);
    assertImage(f.file, TRUE);
}

/* --- saves that fail --- */

typedef struct {
    const char *name;
    fakeQemuPlan plan; /* streamLength is filled in */
    vspError code;
    const char *text;   /* in the message */
    gboolean untouched; /* refused before the VM was paused */
    gboolean lost;      /* there is no VM any more */
    const char *state;  /* afterwards; "running" if not said */
} failure;

static const failure failures[] = {
    /* Refused early. */
    { .name = "blocked",
      .plan = { .blockedReason = "VirtFS is mounted" },
      .code = VSP_ERROR_BLOCKED,
      .text = "VirtFS is mounted",
      .untouched = TRUE },
    { .name = "migrating",
      .plan = { .migrateStatus = "active" },
      .code = VSP_ERROR_BUSY,
      .text = "migration",
      .untouched = TRUE },
    { .name = "dumping",
      .plan = { .dumpStatus = "active" },
      .code = VSP_ERROR_BUSY,
      .text = "dump",
      .untouched = TRUE },
    { .name = "incoming",
      .plan = { .state = "inmigrate" },
      .code = VSP_ERROR_BUSY,
      .text = "inmigrate",
      .untouched = TRUE,
      .state = "inmigrate" },
    { .name = "saved-before",
      .plan = { .state = "postmigrate" },
      .code = VSP_ERROR_BUSY,
      .text = "resume it",
      .untouched = TRUE,
      .state = "postmigrate" },
    { .name = "crashed",
      .plan = { .state = "guest-panicked" },
      .code = VSP_ERROR_BUSY,
      .text = "dump",
      .untouched = TRUE,
      .state = "guest-panicked" },
    { .name = "no-status",
      .plan = { .refuse = "query-status" },
      .code = VSP_ERROR_QEMU,
      .text = "query-status",
      .untouched = TRUE },

    /* QEMU refuses. */
    { .name = "stop-refused",
      .plan = { .refuse = "stop" },
      .code = VSP_ERROR_QEMU,
      .text = "'stop'" },
    { .name = "getfd-refused",
      .plan = { .refuse = "getfd" },
      .code = VSP_ERROR_QEMU,
      .text = "'getfd'" },
    { .name = "migrate-refused",
      .plan = { .refuse = "migrate" },
      .code = VSP_ERROR_QEMU,
      .text = "'migrate'" },
    { .name = "query-refused-later",
      .plan = { .refuse = "migrate", .refuseToo = "closefd" },
      .code = VSP_ERROR_QEMU,
      .text = "'migrate'" },

    /* The migration fails. */
    { .name = "failed",
      .plan = { .endStatus = "failed", .endReason = "device on fire" },
      .code = VSP_ERROR_QEMU,
      .text = "device on fire" },
    { .name = "failed-silently",
      .plan = { .endStatus = "failed" },
      .code = VSP_ERROR_QEMU,
      .text = "no reason" },
    { .name = "cancelled-by-other",
      .plan = { .endStatus = "cancelled" },
      .code = VSP_ERROR_QEMU,
      .text = "somebody else" },
    { .name = "failed-after-detours",
      .plan = { .endStatus = "failed",
                .detours = (const char *const[]){ "setup", "active", "device", NULL } },
      .code = VSP_ERROR_QEMU,
      .text = "could not complete" },

    /* QEMU dies. */
    { .name = "dies-at-greeting",
      .plan = { .dieAt = "qmp_capabilities" },
      .code = VSP_ERROR_QEMU_LOST,
      .text = "QEMU ended",
      .untouched = TRUE,
      .lost = TRUE },
    { .name = "dies-early",
      .plan = { .dieAt = "query-migrate" },
      .code = VSP_ERROR_QEMU_LOST,
      .text = "QEMU ended",
      .untouched = TRUE,
      .lost = TRUE },
    { .name = "dies-at-stop",
      .plan = { .dieAt = "stop" },
      .code = VSP_ERROR_QEMU_LOST,
      .text = "QEMU ended",
      .lost = TRUE },
    { .name = "dies-at-getfd",
      .plan = { .dieAt = "getfd" },
      .code = VSP_ERROR_QEMU_LOST,
      .text = "QEMU ended",
      .lost = TRUE },
    { .name = "dies-after-getfd",
      .plan = { .dieAfter = "getfd" },
      .code = VSP_ERROR_QEMU_LOST,
      .text = "QEMU ended",
      .lost = TRUE },
    { .name = "dies-at-migrate",
      .plan = { .dieAt = "migrate" },
      .code = VSP_ERROR_QEMU_LOST,
      .text = "QEMU ended",
      .lost = TRUE },
    { .name = "dies-in-the-middle",
      .plan = { .dieAtByte = LENGTH / 2 },
      .code = VSP_ERROR_QEMU_LOST,
      .text = "QEMU ended",
      .lost = TRUE },
    /* All bytes are out, but nobody said so. */
    { .name = "dies-at-the-end",
      .plan = { .dieAtByte = LENGTH },
      .code = VSP_ERROR_QEMU_LOST,
      .text = "QEMU ended",
      .lost = TRUE },

    /* The helper dies. */
    { .name = "helper-killed",
      .plan = { .killHelperAtByte = LENGTH / 2 },
      .code = VSP_ERROR_HELPER_DIED,
      .text = "killed by signal 9" },
    { .name = "helper-killed-while-qemu-waits",
      .plan = { .killHelperAtByte = LENGTH / 2, .stallAtByte = LENGTH / 2 },
      .code = VSP_ERROR_HELPER_DIED,
      .text = "killed by signal 9" },

    /* The way back fails too. */
    { .name = "cont-refused",
      .plan = { .endStatus = "failed", .endReason = "device on fire", .refuse = "cont" },
      .code = VSP_ERROR_NOT_RESTORED,
      .text = "device on fire",
      .state = "paused" },
    { .name = "dies-on-the-way-back",
      .plan = { .endStatus = "failed", .endReason = "device on fire", .dieAt = "cont" },
      .code = VSP_ERROR_QEMU_LOST,
      .text = "device on fire",
      .lost = TRUE },
};

static void
testFailure(gconstpointer opaque)
{
    const failure *expected = opaque;
    fakeQemuPlan plan = expected->plan;
    g_auto(vmFixture) f;
    g_autoptr(vspVmOptions) options = NULL;
    g_autoptr(fakeQemu) qemu = NULL;
    g_autoptr(GVariant) report = NULL;
    g_autoptr(GError) error = NULL;

    vmFixtureInit(&f);
    options = vmFixtureOptions(&f);
    plan.streamLength = LENGTH;
    qemu = fakeQemuNew(f.monitor, &plan);
    g_assert_cmpint(vspVmSave(f.monitor, f.file, options, NULL, &report, &error), ==, -1);
    g_assert_error(error, VSP_ERROR, (int)expected->code);
    g_assert_nonnull(strstr(error->message, expected->text));
    g_assert_null(report);
    vmFixtureAssertNoFile(&f);
    if (expected->code == VSP_ERROR_NOT_RESTORED) {
        g_assert_nonnull(strstr(error->message, "\"cont\""));
        g_assert_nonnull(strstr(error->message, f.monitor));
    }

    g_assert_cmpint(fakeQemuIsAlive(qemu), ==, !expected->lost);
    if (!expected->lost) {
        g_assert_cmpstr(fakeQemuGetState(qemu), ==, expected->state ? expected->state : "running");
        g_assert_true(fakeQemuHasSettings(qemu));
        if (!expected->plan.refuseToo)
            g_assert_cmpuint(fakeQemuCountFds(qemu), ==, 0);
    }
    if (expected->untouched) {
        g_assert_cmpuint(fakeQemuCount(qemu, "stop"), ==, 0);
        g_assert_cmpuint(fakeQemuCount(qemu, "getfd"), ==, 0);
    }
}

/* --- cancelling --- */

typedef struct {
    const char *name;
    fakeQemuPlan plan;
} cancel;

static const cancel cancels[] = {
    { "at-greeting", { .cancelAt = "qmp_capabilities" } },
    { "at-question", { .cancelAt = "query-migrate" } },
    { "at-stop", { .cancelAt = "stop" } },
    { "at-capabilities", { .cancelAt = "migrate-set-capabilities" } },
    { "at-parameters", { .cancelAt = "migrate-set-parameters" } },
    { "at-getfd", { .cancelAt = "getfd" } },
    { "at-migrate", { .cancelAt = "migrate" } },
    { "in-the-middle", { .cancelAtByte = LENGTH / 2 } },
    { "while-stalled", { .cancelAtByte = LENGTH / 2, .stallAtByte = LENGTH / 2 } },
    { "at-last-byte", { .cancelAtByte = LENGTH } },
    { "at-completed", { .cancelAtEnd = TRUE } },
    { "unanswered-stop", { .cancelAt = "stop", .ignore = "stop" } },
    { "unanswered-migrate", { .cancelAt = "migrate", .ignore = "migrate" } },
    { "at-quit", { .cancelAt = "quit" } },
};

static void
testCancel(gconstpointer opaque)
{
    const cancel *when = opaque;
    g_autoptr(GCancellable) cancellable = g_cancellable_new();
    fakeQemuPlan plan = when->plan;
    g_auto(vmFixture) f;
    g_autoptr(vspVmOptions) options = NULL;
    g_autoptr(fakeQemu) qemu = NULL;
    g_autoptr(GError) error = NULL;

    vmFixtureInit(&f);
    options = vmFixtureOptions(&f);
    plan.streamLength = LENGTH;
    plan.cancellable = cancellable;
    qemu = fakeQemuNew(f.monitor, &plan);
    if (vspVmSave(f.monitor, f.file, options, cancellable, NULL, &error) == 0) {
        g_assert_no_error(error);
        assertImage(f.file, TRUE);
        g_assert_true(fakeQemuHasQuit(qemu));
        return;
    }
    g_assert_cmpstr(when->name, !=, "at-quit");
    g_assert_error(error, VSP_ERROR, VSP_ERROR_ABORTED);
    vmFixtureAssertNoFile(&f);
    g_assert_true(fakeQemuIsAlive(qemu));
    g_assert_cmpstr(fakeQemuGetState(qemu), ==, "running");
    g_assert_true(fakeQemuHasSettings(qemu));
    g_assert_cmpuint(fakeQemuCountFds(qemu), ==, 0);
}

static gpointer
cancelLater(gpointer opaque)
{
    g_usleep(g_random_int_range(0, 30000));
    g_cancellable_cancel(opaque);
    return NULL;
}

/* At moments that nobody chose. */
static void
testCancelAnywhere(void)
{
    for (int i = 0; i < 60; i++) {
        g_autoptr(GCancellable) cancellable = g_cancellable_new();
        GThread *thread;
        g_auto(vmFixture) f;
        g_autoptr(vspVmOptions) options = NULL;
        g_autoptr(fakeQemu) qemu = NULL;
        g_autoptr(GError) error = NULL;
        int rc;

        vmFixtureInit(&f);
        options = vmFixtureOptions(&f);
        qemu = fakeQemuNew(f.monitor, &(fakeQemuPlan){ .streamLength = LENGTH });
        thread = g_thread_new("cancel", cancelLater, cancellable);
        rc = vspVmSave(f.monitor, f.file, options, cancellable, NULL, &error);
        g_thread_join(thread);
        if (rc == 0) {
            assertImage(f.file, TRUE);
            g_assert_true(fakeQemuHasQuit(qemu));
        } else {
            g_assert_error(error, VSP_ERROR, VSP_ERROR_ABORTED);
            vmFixtureAssertNoFile(&f);
            g_assert_true(fakeQemuIsAlive(qemu));
            g_assert_cmpstr(fakeQemuGetState(qemu), ==, "running");
        }
    }
}

/* A paused VM whose save fails is not run by the way back. */
static void
testFailPaused(void)
{
    g_auto(vmFixture) f;
    g_autoptr(vspVmOptions) options = NULL;
    g_autoptr(fakeQemu) qemu = NULL;
    g_autoptr(GError) error = NULL;

    vmFixtureInit(&f);
    options = vmFixtureOptions(&f);
    qemu = fakeQemuNew(
        f.monitor,
        &(fakeQemuPlan){ .streamLength = LENGTH, .state = "paused", .endStatus = "failed" });
    g_assert_cmpint(vspVmSave(f.monitor, f.file, options, NULL, NULL, &error), ==, -1);
    g_assert_error(error, VSP_ERROR, VSP_ERROR_QEMU);
    g_assert_cmpstr(fakeQemuGetState(qemu), ==, "paused");
    g_assert_cmpuint(fakeQemuCount(qemu, "cont"), ==, 0);
    vmFixtureAssertNoFile(&f);
}

/* The disk is full: that is what is said, and not the broken pipe that QEMU saw. */
static void
failFull(gpointer opaque)
{
    vmFixture *f = opaque;
    g_autoptr(vspVmOptions) options = vmFixtureOptions(f);
    g_autoptr(fakeQemu) qemu = NULL;
    g_autoptr(GError) error = NULL;
    struct rlimit limit = { .rlim_cur = 1024 * 1024, .rlim_max = 1024 * 1024 };

    qemu = fakeQemuNew(f->monitor, &(fakeQemuPlan){ .streamLength = LENGTH });
    signal(SIGXFSZ, SIG_IGN);
    g_assert_cmpint(setrlimit(RLIMIT_FSIZE, &limit), ==, 0);
    g_assert_cmpint(vspVmSave(f->monitor, f->file, options, NULL, NULL, &error), ==, -1);
    g_assert_error(error, VSP_ERROR, VSP_ERROR_NO_SPACE);
    g_assert_nonnull(strstr(error->message, f->file));
    g_assert_nonnull(strstr(error->message, "at offset 1048576"));
    g_assert_cmpstr(fakeQemuGetState(qemu), ==, "running");
}

static void
testFull(void)
{
    g_auto(vmFixture) f;

    vmFixtureInit(&f);
    vspTestInChild(failFull, &f);
    unlink(f.monitor);
    vmFixtureAssertNoFile(&f);
}

static void
testNoHelper(void)
{
    g_auto(vmFixture) f;
    g_autoptr(vspVmOptions) options = NULL;
    g_autoptr(vspFileWrapperOptions) wrapper = vspFileWrapperOptionsNew();
    g_autoptr(fakeQemu) qemu = NULL;
    g_autoptr(GError) error = NULL;

    vmFixtureInit(&f);
    options = vmFixtureOptions(&f);
    vspFileWrapperOptionsSetHelperPath(wrapper, "/nonexistent/helper");
    vspVmOptionsSetWrapper(options, wrapper);
    qemu = fakeQemuNew(f.monitor, &(fakeQemuPlan){ .streamLength = LENGTH });
    g_assert_cmpint(vspVmSave(f.monitor, f.file, options, NULL, NULL, &error), ==, -1);
    g_assert_error(error, VSP_ERROR, VSP_ERROR_HELPER_MISSING);
    g_assert_cmpuint(fakeQemuCount(qemu, "stop"), ==, 0);
    vmFixtureAssertNoFile(&f);
}

static void
testBadXml(void)
{
    g_auto(vmFixture) f;
    g_autoptr(vspVmOptions) options = NULL;
    g_autoptr(fakeQemu) qemu = NULL;
    g_autoptr(GError) error = NULL;

    vmFixtureInit(&f);
    options = vmFixtureOptions(&f);
    vspVmOptionsSetDomainXml(options, "<domain><name>x</nam");
    qemu = fakeQemuNew(f.monitor, &(fakeQemuPlan){ .streamLength = LENGTH });
    g_assert_cmpint(vspVmSave(f.monitor, f.file, options, NULL, NULL, &error), ==, -1);
    g_assert_error(error, VSP_ERROR, VSP_ERROR_INVALID_ARGUMENT);
    g_assert_cmpuint(fakeQemuCount(qemu, "stop"), ==, 0);
    vmFixtureAssertNoFile(&f);
}

/* A file that is replaced stays as it is until the new one is durable, and for good if it fails. */
static void
testReplace(void)
{
    g_auto(vmFixture) f;
    g_autoptr(vspVmOptions) options = NULL;
    g_autoptr(fakeQemu) qemu = NULL;
    g_autoptr(GError) error = NULL;
    g_autofree char *content = NULL;

    vmFixtureInit(&f);
    options = vmFixtureOptions(&f);
    g_assert_true(g_file_set_contents(f.file, "precious", -1, NULL));

    qemu = fakeQemuNew(f.monitor, &(fakeQemuPlan){ .streamLength = LENGTH });
    g_assert_cmpint(vspVmSave(f.monitor, f.file, options, NULL, NULL, &error), ==, -1);
    g_assert_error(error, VSP_ERROR, VSP_ERROR_EXISTS);
    g_clear_error(&error);
    g_clear_pointer(&qemu, fakeQemuFree);

    vspVmOptionsSetOverwrite(options, TRUE);
    qemu = fakeQemuNew(f.monitor, &(fakeQemuPlan){ .streamLength = LENGTH, .endStatus = "failed" });
    g_assert_cmpint(vspVmSave(f.monitor, f.file, options, NULL, NULL, &error), ==, -1);
    g_assert_error(error, VSP_ERROR, VSP_ERROR_QEMU);
    g_clear_error(&error);
    g_assert_true(g_file_get_contents(f.file, &content, NULL, NULL));
    g_assert_cmpstr(content, ==, "precious");
    g_assert_cmpint(unlink(f.file), ==, 0);
    vmFixtureAssertNoFile(&f);
    g_clear_pointer(&qemu, fakeQemuFree);

    g_assert_true(g_file_set_contents(f.file, "precious", -1, NULL));
    qemu = fakeQemuNew(f.monitor, &(fakeQemuPlan){ .streamLength = LENGTH });
    g_assert_cmpint(vspVmSave(f.monitor, f.file, options, NULL, NULL, &error), ==, 0);
    g_assert_no_error(error);
    assertImage(f.file, TRUE);
    g_assert_cmpint(unlink(f.file), ==, 0);
    g_clear_pointer(&qemu, fakeQemuFree);
    vmFixtureAssertNoFile(&f);
}

int
main(int argc, char **argv)
{
    vspTestInit(&argc, &argv);
    vspTestAdd("/vmsave/good", testGood);
    vspTestAdd("/vmsave/keep-paused", testKeepPaused);
    vspTestAdd("/vmsave/paused", testPaused);
    vspTestAdd("/vmsave/small-room", testSmallRoom);
    vspTestAdd("/vmsave/detours", testDetours);
    vspTestAdd("/vmsave/lost-afterwards", testLostAfterwards);
    for (gsize i = 0; i < G_N_ELEMENTS(failures); i++) {
        g_autofree char *path = g_strconcat("/vmsave/failure/", failures[i].name, NULL);

        vspTestAddData(path, &failures[i], testFailure);
    }
    for (gsize i = 0; i < G_N_ELEMENTS(cancels); i++) {
        g_autofree char *path = g_strconcat("/vmsave/cancel/", cancels[i].name, NULL);

        vspTestAddData(path, &cancels[i], testCancel);
    }
    vspTestAdd("/vmsave/cancel/anywhere", testCancelAnywhere);
    vspTestAdd("/vmsave/fail-paused", testFailPaused);
    vspTestAdd("/vmsave/full", testFull);
    vspTestAdd("/vmsave/no-helper", testNoHelper);
    vspTestAdd("/vmsave/bad-xml", testBadXml);
    vspTestAdd("/vmsave/replace", testReplace);
    return vspTestRun();
}
