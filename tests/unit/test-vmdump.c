/*
 * test-vmdump.c: the dump flow, its faults, and what is left behind by them
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <string.h>
#include <unistd.h>
#include <vmspool/vmspool.h>

#include "fakeqemu.h"
#include "testutil.h"
#include "vmfixture.h"

#define LENGTH (3 * 1024 * 1024 + 17)

static void
assertCore(vmFixture *f)
{
    g_autofree char *content = NULL;
    gsize len;

    g_assert_true(g_file_get_contents(f->file, &content, &len, NULL));
    g_assert_cmpuint(len, ==, LENGTH);
    vmFixtureAssertStream(content, len);
}

typedef struct {
    const char *name;
    fakeQemuPlan plan; /* streamLength is filled in */
    const char *format;
    int code;         /* -1: it succeeds */
    const char *text; /* in the message, or in a notice */
    gboolean lost;
    const char *state; /* afterwards; "running" if not said */
} dumpCase;

static const dumpCase cases[] = {
    { .name = "good", .code = -1 },
    { .name = "paused", .plan = { .state = "paused" }, .code = -1, .state = "paused" },
    { .name = "crashed",
      .plan = { .state = "guest-panicked" },
      .code = -1,
      .state = "guest-panicked" },
    { .name = "no-event", .plan = { .noEvents = TRUE }, .code = -1 },
    { .name = "event-first", .plan = { .dumpEventFirst = TRUE }, .code = -1 },
    { .name = "flattened", .format = "kdump-zlib", .code = -1, .text = "makedumpfile -R" },
    /* QEMU forgets to let it go on: then it is told to. */
    { .name = "left-paused", .plan = { .stayPaused = TRUE, .state = "running" }, .code = -1 },

    { .name = "unknown-format",
      .format = "kdump-lzma",
      .code = VSP_ERROR_INVALID_ARGUMENT,
      .text = "elf, kdump-zlib, win-dmp" },
    { .name = "needs-seeking",
      .format = "kdump-raw-zlib",
      .code = VSP_ERROR_INVALID_ARGUMENT,
      .text = "seek" },
    { .name = "incoming",
      .plan = { .state = "inmigrate" },
      .code = VSP_ERROR_BUSY,
      .text = "no memory yet",
      .state = "inmigrate" },
    { .name = "dumping",
      .plan = { .dumpStatus = "active" },
      .code = VSP_ERROR_BUSY,
      .text = "dump" },
    { .name = "migrating",
      .plan = { .migrateStatus = "active" },
      .code = VSP_ERROR_BUSY,
      .text = "migration" },
    { .name = "refused",
      .plan = { .refuse = "dump-guest-memory" },
      .code = VSP_ERROR_QEMU,
      .text = "'dump-guest-memory'" },
    { .name = "failed",
      .plan = { .endStatus = "failed", .endReason = "no vmcoreinfo" },
      .code = VSP_ERROR_QEMU,
      .text = "no vmcoreinfo" },
    { .name = "failed-by-text",
      .plan = { .endReason = "no vmcoreinfo" },
      .code = VSP_ERROR_QEMU,
      .text = "no vmcoreinfo" },
    { .name = "failed-silently",
      .plan = { .endStatus = "failed", .noEvents = TRUE },
      .code = VSP_ERROR_QEMU,
      .text = "no reason" },
    { .name = "windows",
      .plan = { .endStatus = "failed", .endReason = "no header" },
      .format = "win-dmp",
      .code = VSP_ERROR_QEMU,
      .text = "guest driver" },
    { .name = "dies",
      .plan = { .dieAtByte = LENGTH / 2 },
      .code = VSP_ERROR_QEMU_LOST,
      .text = "QEMU ended",
      .lost = TRUE },
    { .name = "helper-killed",
      .plan = { .killHelperAtByte = LENGTH / 2 },
      .code = VSP_ERROR_HELPER_DIED,
      .text = "killed by signal 9" },
    { .name = "helper-killed-and-left-paused",
      .plan = { .killHelperAtByte = LENGTH / 2, .stayPaused = TRUE, .refuse = "cont" },
      .code = VSP_ERROR_NOT_RESTORED,
      .text = "killed by signal 9",
      .state = "save-vm" },
};

static void
testCase(gconstpointer opaque)
{
    const dumpCase *expected = opaque;
    fakeQemuPlan plan = expected->plan;
    g_auto(vmFixture) f = { 0 };
    g_autoptr(vspVmOptions) options = NULL;
    g_autoptr(fakeQemu) qemu = NULL;
    g_autoptr(GError) error = NULL;
    int rc;

    vmFixtureInit(&f);
    options = vmFixtureOptions(&f);
    vspVmOptionsSetDumpFormat(options, expected->format);
    plan.streamLength = LENGTH;
    qemu = fakeQemuNew(f.monitor, &plan);
    rc = vspVmDump(f.monitor, f.file, options, NULL, NULL, &error);
    if (expected->code < 0) {
        g_assert_no_error(error);
        g_assert_cmpint(rc, ==, 0);
        assertCore(&f);
        if (expected->text)
            g_assert_nonnull(strstr(g_ptr_array_index(f.notices, 0), expected->text));
    } else {
        g_assert_error(error, VSP_ERROR, expected->code);
        g_assert_nonnull(strstr(error->message, expected->text));
        g_assert_false(g_file_test(f.file, G_FILE_TEST_EXISTS));
    }
    g_assert_cmpint(fakeQemuIsAlive(qemu), ==, !expected->lost);
    if (!expected->lost) {
        g_assert_cmpstr(fakeQemuGetState(qemu), ==, expected->state ? expected->state : "running");
        g_assert_cmpuint(fakeQemuCountFds(qemu), ==, 0);
    }
}

typedef struct {
    const char *name;
    fakeQemuPlan plan;
} cancel;

static const cancel cancels[] = {
    { "at-question", { .cancelAt = "query-dump" } },
    { "at-getfd", { .cancelAt = "getfd" } },
    { "at-start", { .cancelAt = "dump-guest-memory" } },
    { "in-the-middle", { .cancelAtByte = LENGTH / 2 } },
    { "at-last-byte", { .cancelAtByte = LENGTH } },
};

static void
testCancel(gconstpointer opaque)
{
    const cancel *when = opaque;
    g_autoptr(GCancellable) cancellable = g_cancellable_new();
    fakeQemuPlan plan = when->plan;
    g_auto(vmFixture) f = { 0 };
    g_autoptr(vspVmOptions) options = NULL;
    g_autoptr(fakeQemu) qemu = NULL;
    g_autoptr(GError) error = NULL;

    vmFixtureInit(&f);
    options = vmFixtureOptions(&f);
    plan.streamLength = LENGTH;
    plan.cancellable = cancellable;
    qemu = fakeQemuNew(f.monitor, &plan);
    if (vspVmDump(f.monitor, f.file, options, cancellable, NULL, &error) == 0) {
        assertCore(&f);
    } else {
        g_assert_error(error, VSP_ERROR, VSP_ERROR_ABORTED);
        g_assert_false(g_file_test(f.file, G_FILE_TEST_EXISTS));
    }
    g_assert_cmpstr(fakeQemuGetState(qemu), ==, "running");
    g_assert_cmpuint(fakeQemuCountFds(qemu), ==, 0);
}

int
main(int argc, char **argv)
{
    vspTestInit(&argc, &argv);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strconcat("/vmdump/", cases[i].name, NULL);

        vspTestAddData(path, &cases[i], testCase);
    }
    for (gsize i = 0; i < G_N_ELEMENTS(cancels); i++) {
        g_autofree char *path = g_strconcat("/vmdump/cancel/", cancels[i].name, NULL);

        vspTestAddData(path, &cancels[i], testCancel);
    }
    return vspTestRun();
}
