/*
 * test-engines.c: every endpoint, engine, cache mode, odd length and start offset, in both
 * directions
 *
 * Small buffers, so that a ring goes round several times for few bytes.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "testdata.h"
#include "testfs.h"
#include "testhelper.h"
#include "testutil.h"
#include "vspfd.h"
#include "vspio.h"

#define KIB 1024
#define MIB (1024 * KIB)
#define BUFFER (64 * KIB)
#define DEVICE (4 * MIB)
/* What a device and a longer file hold before. */
#define OLD '\xaa'

typedef enum {
    ON_DISK,
    ON_TMPFS,
    ON_BLOCK_512,
    ON_BLOCK_4096,
} Place;

typedef struct {
    Place place;
    const char *engine;
    vspCacheMode cache;
} Case;

static const char *const places[] = { "file", "tmpfs", "block-512", "block-4096" };
static const char *const engines[] = { "sync", "threads", "uring", "zerocopy" };
static const guint64 lengths[] = {
    0,    1,          511,    512,        513,        4095,    4096,
    4097, BUFFER - 1, BUFFER, BUFFER + 1, 3 * BUFFER, MIB - 1, MIB + 1,
};
static const off_t starts[] = { 0, 92, 512, 4096 };

/* Opens the place once, as a path to open again; *@keep holds it. FALSE: can't be had. */
static gboolean
openPlace(Place place, const char *dir, int *keep, char **path)
{
    switch (place) {
    case ON_DISK:
        *path = vspTestPath(dir, "file");
        return TRUE;
    case ON_TMPFS:
        *keep = vspTestTmpfs(16 * MIB);
        *path = vspTestFsPath(*keep, "file");
        return *keep >= 0;
    case ON_BLOCK_512:
    case ON_BLOCK_4096:
    default:
        *keep = vspTestLoop(dir, DEVICE, place == ON_BLOCK_512 ? 512 : 4096, path);
        return *keep >= 0;
    }
}

static gboolean
isBlock(const Case *test)
{
    return test->place >= ON_BLOCK_512;
}

/* What lies before the data, and behind it on a device or in a file that was longer. */
static void
prepare(const Case *test, const char *path, off_t start, guint64 length)
{
    g_auto(vspFd) fd = vspTestOpen(path, O_WRONLY | O_CREAT | (isBlock(test) ? 0 : O_TRUNC));
    gsize len = start + (isBlock(test) ? length + BUFFER : length % 2 ? length + 5000 : 0);
    g_autofree char *old = g_malloc(len + 1);

    memset(old, OLD, len + 1);
    g_assert_cmpint(vspPwriteFull(fd, old, len, 0), ==, 0);
}

static void
assertSaved(const Case *test, const char *path, off_t start, guint64 length)
{
    g_auto(vspFd) fd = vspTestOpen(path, O_RDONLY);
    gsize len = start + length + BUFFER;
    g_autofree char *buf = g_malloc(len);
    gsize end = start + length + (isBlock(test) ? BUFFER : 0);

    g_assert_cmpint(vspPreadFull(fd, buf, len, 0), ==, end);
    for (off_t i = 0; i < start; i++)
        g_assert_cmpint(buf[i], ==, OLD);
    vspTestAssertData(buf + start, length, 0);
    for (gsize i = start + length; i < end; i++)
        g_assert_cmpint(buf[i], ==, OLD);
}

static void
runHelper(const Case *test, vspTestHelper *helper, const char *path, off_t start, guint64 length)
{
    g_autofree char *engine = g_strdup_printf("--engine=%s", test->engine);
    g_autofree char *cache = g_strdup_printf("--cache=%s", vspCacheModeToString(test->cache));
    g_autofree char *bytes = g_strdup_printf("--length=%" G_GUINT64_FORMAT, length);
    const char *options[] = { "--buffers=3", "--buffer-size=65536", engine, cache, bytes, NULL };
    g_auto(vspFd) fd = vspTestOpen(path, helper->saving ? O_WRONLY : O_RDONLY);
    g_auto(vspTestOutcome) outcome = { 0 };

    /* A device does not end where the data does. A file does: half of the time it is not told. */
    if (!isBlock(test) && length % 4 < 2)
        options[G_N_ELEMENTS(options) - 2] = NULL;
    g_assert_cmpint(lseek(fd, start, SEEK_SET), ==, start);
    helper->options = options;
    helper->file = fd;
    helper->length = length;
    vspTestHelperRun(helper, &outcome);
    if (outcome.status != 0)
        g_error("%s of %" G_GUINT64_FORMAT " bytes at %d: %s", helper->saving ? "save" : "restore",
                length, (int)start, outcome.errors);
    g_assert_cmpuint(outcome.moved, ==, length);
    g_assert_true(outcome.same);
    /* The descriptor stands where a plain write or read would have left it. */
    g_assert_cmpint(lseek(fd, 0, SEEK_CUR), ==, start + length);
    g_assert_false(fcntl(fd, F_GETFL) & O_DIRECT);
}

static void
run(gconstpointer opaque)
{
    const Case *test = opaque;
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_auto(vspFd) keep = -1;
    g_autofree char *path = NULL;

    if (!openPlace(test->place, dir, &keep, &path)) {
        vspTestSkip("needs root");
        return;
    }
    for (guint i = 0; i < G_N_ELEMENTS(lengths); i++) {
        for (guint k = 0; k < G_N_ELEMENTS(starts); k++) {
            vspTestHelper helper = { .socket = (i + k) % 2, .nonBlocking = (i + k) % 3 == 0 };

            /* Half of them here, the other half in the next cache mode or engine. */
            if ((i + k + test->cache + test->engine[0]) % 2 || vspTestLeaveOut())
                continue;
            prepare(test, path, starts[k], lengths[i]);
            helper.saving = TRUE;
            runHelper(test, &helper, path, starts[k], lengths[i]);
            assertSaved(test, path, starts[k], lengths[i]);
            helper.saving = FALSE;
            runHelper(test, &helper, path, starts[k], lengths[i]);
        }
    }
}

/* To the null device and out of it, through a stream in a file's place, and between two streams. */
static void
runElsewhere(gconstpointer opaque)
{
    const char *engine = opaque;
    g_autofree char *option = g_strdup_printf("--engine=%s", engine);
    const char *options[] = { option, "--buffers=3", "--buffer-size=65536", NULL };

    for (guint i = 0; i < G_N_ELEMENTS(lengths); i++) {
        g_auto(vspFd) out = vspTestOpen("/dev/null", O_WRONLY);
        g_auto(vspFd) in = vspTestOpen("/dev/null", O_RDONLY);
        g_auto(vspTestOutcome) saved = { 0 };
        g_auto(vspTestOutcome) restored = { 0 };
        vspTestHelper helper = { .options = options, .socket = i % 2 };

        helper.saving = TRUE;
        helper.file = out;
        helper.length = lengths[i];
        vspTestHelperRun(&helper, &saved);
        g_assert_cmpstr(saved.errors, ==, "");
        g_assert_cmpint(saved.status, ==, 0);
        g_assert_cmpuint(saved.moved, ==, lengths[i]);

        helper.saving = FALSE;
        helper.file = in;
        vspTestHelperRun(&helper, &restored);
        g_assert_cmpstr(restored.errors, ==, "");
        g_assert_cmpint(restored.status, ==, 0);
        g_assert_cmpuint(restored.moved, ==, 0);
    }
    for (guint i = 0; i < G_N_ELEMENTS(lengths); i++) {
        /* What fits into a pipe can be put there before, and taken out behind. */
        guint64 length = MIN(lengths[i], 60000);
        vspTestHelper helper = { .options = options, .socket = i % 2 };
        g_auto(vspTestOutcome) saved = { 0 };
        g_auto(vspTestOutcome) restored = { 0 };
        int fds[2];

        g_assert_cmpint(pipe2(fds, O_CLOEXEC), ==, 0);
        helper.saving = TRUE;
        helper.file = fds[1];
        helper.length = length;
        vspTestHelperRun(&helper, &saved);
        g_assert_cmpstr(saved.errors, ==, "");
        vspFdClose(&fds[1]);
        helper.saving = FALSE;
        helper.file = fds[0];
        vspTestHelperRun(&helper, &restored);
        g_assert_cmpstr(restored.errors, ==, "");
        g_assert_cmpuint(restored.moved, ==, length);
        g_assert_true(restored.same);
        vspFdClose(&fds[0]);
    }
}

static gboolean
hasEngine(const char *name)
{
    g_autofree char *word = g_strdup_printf("engine-%s", name);

    return vspTestHelperHas(word);
}

int
main(int argc, char **argv)
{
    vspTestInit(&argc, &argv);
    for (guint e = 0; e < G_N_ELEMENTS(engines); e++) {
        g_autofree char *elsewhere = g_strdup_printf("/engines/%s/elsewhere", engines[e]);

        if (!hasEngine(engines[e]))
            continue;
        for (guint p = 0; p < G_N_ELEMENTS(places); p++) {
            for (vspCacheMode mode = VSP_CACHE_DIRECT; mode <= VSP_CACHE_CACHED; mode++) {
                g_autofree char *path = g_strdup_printf("/engines/%s/%s/%s", engines[e], places[p],
                                                        vspCacheModeToString(mode));
                Case *test = g_new0(Case, 1);

                test->place = p;
                test->engine = engines[e];
                test->cache = mode;
                vspTestAddOwned(path, test, run);
            }
        }
        vspTestAddData(elsewhere, engines[e], runElsewhere);
    }
    return vspTestRun();
}
