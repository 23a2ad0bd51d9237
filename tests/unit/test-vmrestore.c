/*
 * test-vmrestore.c: the restore flow, its faults, and what is left behind by them
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <vmspool/vmspool.h>

#include "fakeqemu.h"
#include "testutil.h"
#include "vmfixture.h"
#include "vspfd.h"
#include "vspio.h"
#include "vspsaveimagepriv.h"

#define LENGTH (3 * 1024 * 1024 + 17)
#define XML "<domain type='kvm'><name>double</name><memory unit='MiB'>64</memory></domain>"
#define MEMORY (64 * 1024 * 1024)

typedef struct {
    gboolean running;
    guint32 format;
    gboolean partial;
    gboolean seal;
    gsize extra; /* bytes behind the payload, in the seal if there is one */
} imageKind;

static void
makeImage(vmFixture *f, const imageKind *kind)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GBytes) block = vspSaveImageBlockNew(XML, NULL, kind->running, kind->format, &error);
    g_autoptr(GByteArray) content = g_byte_array_new();
    guint8 header[VSP_SAVE_IMAGE_HEADER_SIZE];
    gsize len;
    const guint8 *data;

    g_assert_no_error(error);
    data = g_bytes_get_data(block, &len);
    g_byte_array_append(content, data, len);
    for (gsize i = 0; i < LENGTH + kind->extra; i++) {
        guint8 byte = fakeQemuByte(i);

        g_byte_array_append(content, &byte, 1);
    }
    vspSaveImageBlockComplete(block, LENGTH + kind->extra, NULL, header);
    if (!kind->seal)
        memset(header + 52, 0, 40);
    if (!kind->partial)
        memcpy(content->data, header, sizeof(header));
    g_assert_true(g_file_set_contents(f->file, (const char *)content->data, content->len, NULL));
}

static void
assertReceived(fakeQemu *qemu, gsize length)
{
    g_autoptr(GBytes) bytes = fakeQemuGetReceived(qemu);
    gsize len;
    const guint8 *data = g_bytes_get_data(bytes, &len);

    g_assert_cmpuint(len, ==, length);
    vmFixtureAssertStream(data, len);
}

/* --- into a QEMU that waits --- */

static void
testGood(void)
{
    static const struct {
        gboolean ran;
        vspRunState wanted;
        const char *state;
    } cases[] = {
        { TRUE, VSP_RUN_STATE_SAME, "running" },
        { FALSE, VSP_RUN_STATE_SAME, "paused" },
        { TRUE, VSP_RUN_STATE_PAUSED, "paused" },
        { FALSE, VSP_RUN_STATE_RUNNING, "running" },
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_auto(vmFixture) f = { 0 };
        g_autoptr(vspVmOptions) options = NULL;
        g_autoptr(fakeQemu) qemu = NULL;
        g_autoptr(GVariant) report = NULL;
        g_autoptr(GError) error = NULL;
        g_autofree char *before = NULL;
        g_autofree char *after = NULL;
        const char *word = NULL;
        gsize len, lenAfter;

        vmFixtureInit(&f);
        makeImage(&f, &(imageKind){ .running = cases[i].ran, .seal = TRUE });
        g_assert_true(g_file_get_contents(f.file, &before, &len, NULL));
        options = vmFixtureOptions(&f);
        vspVmOptionsSetRunState(options, cases[i].wanted);
        qemu = fakeQemuNew(f.monitor, &(fakeQemuPlan){ .state = "inmigrate", .memory = MEMORY });
        g_assert_cmpint(vspVmRestore(f.file, f.monitor, NULL, options, NULL, &report, &error), ==,
                        0);
        g_assert_no_error(error);
        assertReceived(qemu, LENGTH);
        g_assert_cmpstr(fakeQemuGetState(qemu), ==, cases[i].state);
        g_assert_cmpuint(fakeQemuCountFds(qemu), ==, 0);
        g_assert_true(fakeQemuHasSettings(qemu));
        g_assert_true(g_variant_lookup(report, "run-state", "&s", &word));
        g_assert_cmpstr(word, ==, cases[i].state);
        g_assert_cmpuint(f.notices->len, ==, 0);

        g_assert_true(g_file_get_contents(f.file, &after, &lenAfter, NULL));
        g_assert_cmpmem(before, len, after, lenAfter);
    }
}

typedef struct {
    const char *name;
    imageKind image;
    fakeQemuPlan plan; /* state is "inmigrate" if not said */
    vspError code;
    const char *text;
    const char *notice;
} failure;

static const failure failures[] = {
    { .name = "partial",
      .image = { .partial = TRUE },
      .code = VSP_ERROR_IMAGE_PARTIAL,
      .text = "did not finish" },
    { .name = "sparse",
      .image = { .format = VSP_SAVE_IMAGE_FORMAT_SPARSE },
      .code = VSP_ERROR_IMAGE_UNSUPPORTED,
      .text = "sparse" },
    { .name = "not-compressed",
      .image = { .format = VSP_SAVE_IMAGE_FORMAT_ZSTD, .seal = TRUE },
      .code = VSP_ERROR_IMAGE_CORRUPT,
      .text = "does not begin" },
    { .name = "not-waiting",
      .image = { .seal = TRUE },
      .plan = { .state = "running" },
      .code = VSP_ERROR_BUSY,
      .text = "-incoming defer" },
    { .name = "refused",
      .image = { .seal = TRUE },
      .plan = { .refuse = "migrate-incoming" },
      .code = VSP_ERROR_QEMU,
      .text = "'migrate-incoming'" },
    { .name = "failed",
      .image = { .seal = TRUE },
      .plan = { .endStatus = "failed", .endReason = "no such device" },
      .code = VSP_ERROR_QEMU,
      .text = "no such device" },
    { .name = "dies",
      .image = { .seal = TRUE },
      .plan = { .dieAtByte = LENGTH / 2, .memory = 2 * MEMORY },
      .code = VSP_ERROR_QEMU_LOST,
      .text = "did not take the state",
      .notice = "this QEMU has 128.0" },
    { .name = "dies-at-getfd",
      .image = { .seal = TRUE },
      .plan = { .dieAt = "getfd" },
      .code = VSP_ERROR_QEMU_LOST,
      .text = "QEMU ended" },
    { .name = "helper-killed",
      /* More is to come than fits between the helper and QEMU. */
      .image = { .seal = TRUE, .extra = 16 * 1024 * 1024 },
      .plan = { .killHelperAtByte = 65536 },
      .code = VSP_ERROR_HELPER_DIED,
      .text = "killed by signal 9" },
    { .name = "cont-refused",
      .image = { .seal = TRUE, .running = TRUE },
      .plan = { .refuse = "cont" },
      .code = VSP_ERROR_QEMU,
      .text = "can't go on" },
    /* The seal says that all of it is the VM's state, and QEMU took less. */
    { .name = "short-reader-sealed",
      .image = { .seal = TRUE, .extra = 8 * 1024 * 1024 },
      .plan = { .streamLength = LENGTH },
      .code = VSP_ERROR_READER_GONE,
      .text = "" },
};

static void
testFailure(gconstpointer opaque)
{
    const failure *expected = opaque;
    fakeQemuPlan plan = expected->plan;
    g_auto(vmFixture) f = { 0 };
    g_autoptr(vspVmOptions) options = NULL;
    g_autoptr(fakeQemu) qemu = NULL;
    g_autoptr(GError) error = NULL;

    vmFixtureInit(&f);
    makeImage(&f, &expected->image);
    options = vmFixtureOptions(&f);
    if (!plan.state)
        plan.state = "inmigrate";
    qemu = fakeQemuNew(f.monitor, &plan);
    g_assert_cmpint(vspVmRestore(f.file, f.monitor, NULL, options, NULL, NULL, &error), ==, -1);
    g_assert_error(error, VSP_ERROR, (int)expected->code);
    g_assert_nonnull(strstr(error->message, expected->text));
    g_assert_cmpuint(fakeQemuCountFds(qemu), ==, 0);
    if (expected->notice)
        g_assert_true(vmFixtureWasTold(&f, expected->notice));
    /* Whatever becomes of it, the image stays. */
    g_assert_true(g_file_test(f.file, G_FILE_TEST_EXISTS));
}

/* An image of somebody else's can have anything behind the state: a block device has. */
static void
testTrailing(void)
{
    g_auto(vmFixture) f = { 0 };
    g_autoptr(vspVmOptions) options = NULL;
    g_autoptr(fakeQemu) qemu = NULL;
    g_autoptr(GError) error = NULL;

    vmFixtureInit(&f);
    makeImage(&f, &(imageKind){ .extra = 8 * 1024 * 1024 });
    options = vmFixtureOptions(&f);
    qemu = fakeQemuNew(f.monitor, &(fakeQemuPlan){ .state = "inmigrate", .streamLength = LENGTH });
    vspVmRestore(f.file, f.monitor, NULL, options, NULL, NULL, &error);
    g_assert_no_error(error);
    assertReceived(qemu, LENGTH);
    g_assert_true(vmFixtureWasTold(&f, "goes on after the end"));
}

static void
testCancel(gconstpointer opaque)
{
    g_autoptr(GCancellable) cancellable = g_cancellable_new();
    fakeQemuPlan plan = *(const fakeQemuPlan *)opaque;
    g_auto(vmFixture) f = { 0 };
    g_autoptr(vspVmOptions) options = NULL;
    g_autoptr(fakeQemu) qemu = NULL;
    g_autoptr(GError) error = NULL;

    vmFixtureInit(&f);
    makeImage(&f, &(imageKind){ .seal = TRUE, .running = TRUE });
    options = vmFixtureOptions(&f);
    plan.state = "inmigrate";
    plan.cancellable = cancellable;
    qemu = fakeQemuNew(f.monitor, &plan);
    g_assert_cmpint(vspVmRestore(f.file, f.monitor, NULL, options, cancellable, NULL, &error), ==,
                    -1);
    g_assert_error(error, VSP_ERROR, VSP_ERROR_ABORTED);
    g_assert_cmpstr(fakeQemuGetState(qemu), !=, "running");
}

static const fakeQemuPlan cancelAtGetfd = { .cancelAt = "getfd" };
static const fakeQemuPlan cancelAtIncoming = { .cancelAt = "migrate-incoming" };
static const fakeQemuPlan cancelInTheMiddle = { .cancelAtByte = LENGTH / 2,
                                                .stallAtByte = LENGTH / 2 };

/* --- into a command --- */

static void
assertCommandFails(vmFixture *f, const char *const *command, vspError code, const char *text)
{
    g_autoptr(vspVmOptions) options = vmFixtureOptions(f);
    g_autoptr(GError) error = NULL;

    g_assert_cmpint(vspVmRestore(f->file, NULL, command, options, NULL, NULL, &error), ==, -1);
    g_assert_error(error, VSP_ERROR, (int)code);
    g_assert_nonnull(strstr(error->message, text));
}

/* A command that is no QEMU: what it says and does is what is told, and at once. */
static void
testCommands(void)
{
    g_auto(vmFixture) f = { 0 };

    vmFixtureInit(&f);
    makeImage(&f, &(imageKind){ .seal = TRUE });
    assertCommandFails(&f, (const char *const[]){ "/bin/false", NULL }, VSP_ERROR_QEMU_LOST,
                       "'/bin/false' ended");
    assertCommandFails(&f, (const char *const[]){ "/bin/true", NULL }, VSP_ERROR_QEMU_LOST,
                       "'/bin/true' ended");
    assertCommandFails(&f, (const char *const[]){ "/nonexistent/qemu", NULL }, VSP_ERROR_NOT_FOUND,
                       "'/nonexistent/qemu'");
    assertCommandFails(
        &f, (const char *const[]){ "/bin/sh", "-c", "echo no such machine >&2; exit 3", NULL },
        VSP_ERROR_QEMU_LOST, "no such machine");
}

static void
testArguments(void)
{
    static const char *const command[] = { "/bin/true", NULL };
    g_auto(vmFixture) f = { 0 };
    g_autoptr(GError) error = NULL;

    vmFixtureInit(&f);
    makeImage(&f, &(imageKind){ .seal = TRUE });
    g_assert_cmpint(vspVmRestore(f.file, NULL, NULL, NULL, NULL, NULL, &error), ==, -1);
    g_assert_error(error, VSP_ERROR, VSP_ERROR_INVALID_ARGUMENT);
    g_clear_error(&error);
    g_assert_cmpint(vspVmRestore(f.file, f.monitor, command, NULL, NULL, NULL, &error), ==, -1);
    g_assert_error(error, VSP_ERROR, VSP_ERROR_INVALID_ARGUMENT);
}

static gboolean
readPid(gpointer opaque)
{
    vmFixture *f = opaque;
    g_autofree char *path = g_build_filename(f->dir, "pid", NULL);
    g_autofree char *text = NULL;

    return g_file_get_contents(path, &text, NULL, NULL) && strchr(text, '\n');
}

static gpointer
cancelWhenStarted(gpointer opaque)
{
    gpointer *both = opaque;

    vspTestWaitFor(readPid, both[0], "the command's pid");
    g_cancellable_cancel(both[1]);
    return NULL;
}

/* A command that hangs, deaf to SIGTERM: it is cancelled, and gone afterwards. */
static void
testCancelCommand(void)
{
    g_auto(vmFixture) f = { 0 };
    g_autoptr(vspVmOptions) options = NULL;
    g_autoptr(GCancellable) cancellable = g_cancellable_new();
    g_autoptr(GError) error = NULL;
    g_autofree char *script = NULL;
    g_autofree char *pidFile = NULL;
    g_autofree char *pid = NULL;
    gpointer both[2] = { &f, cancellable };
    GThread *thread;

    vmFixtureInit(&f);
    makeImage(&f, &(imageKind){ .seal = TRUE });
    options = vmFixtureOptions(&f);
    pidFile = g_build_filename(f.dir, "pid", NULL);
    script = g_strdup_printf("trap '' TERM; echo $$ > %s; while :; do sleep 0.1; done", pidFile);
    thread = g_thread_new("cancel", cancelWhenStarted, both);
    g_assert_cmpint(vspVmRestore(f.file, NULL,
                                 (const char *const[]){ "/bin/sh", "-c", script, NULL }, options,
                                 cancellable, NULL, &error),
                    ==, -1);
    g_assert_error(error, VSP_ERROR, VSP_ERROR_ABORTED);
    g_thread_join(thread);
    g_assert_true(g_file_get_contents(pidFile, &pid, NULL, NULL));
    vspTestWaitGone(atoi(pid));
}

int
main(int argc, char **argv)
{
    vspTestInit(&argc, &argv);
    vspTestAdd("/vmrestore/good", testGood);
    for (gsize i = 0; i < G_N_ELEMENTS(failures); i++) {
        g_autofree char *path = g_strconcat("/vmrestore/failure/", failures[i].name, NULL);

        vspTestAddData(path, &failures[i], testFailure);
    }
    vspTestAdd("/vmrestore/trailing", testTrailing);
    vspTestAddData("/vmrestore/cancel/at-getfd", &cancelAtGetfd, testCancel);
    vspTestAddData("/vmrestore/cancel/at-incoming", &cancelAtIncoming, testCancel);
    vspTestAddData("/vmrestore/cancel/in-the-middle", &cancelInTheMiddle, testCancel);
    vspTestAdd("/vmrestore/commands", testCommands);
    vspTestAdd("/vmrestore/arguments", testArguments);
    vspTestAdd("/vmrestore/cancel-command", testCancelCommand);
    return vspTestRun();
}
