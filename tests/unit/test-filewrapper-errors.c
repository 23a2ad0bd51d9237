/*
 * test-filewrapper-errors.c: a disk or a reader that fails: the first failure is what Close tells
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "testfs.h"
#include "testutil.h"
#include "vspfd.h"
#include "wrapperutil.h"

#define MIB (1024 * 1024)

/* Feeds more than fits. The writer may see EPIPE, or nothing at all; Close says what happened. */
static void
assertNoSpace(int fd, const vspFileWrapperOptions *options, guint64 most, const char *reason)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(vspFileWrapperFd) wfd =
        vspFileWrapperFdNewWithOptions(&fd, "a file", options, &error);
    g_autofree char *text = NULL;
    unsigned long long offset;
    const char *rest;
    char *end;

    g_assert_no_error(error);
    if (wrapperFeed(fd, 64 * MIB) < 64 * MIB)
        g_assert_cmpint(errno, ==, EPIPE);
    vspFdClose(&fd);
    g_assert_cmpint(vspFileWrapperFdClose(wfd, &error), ==, -1);
    g_assert_error(error, VSP_ERROR, VSP_ERROR_NO_SPACE);

    rest = "cannot write 'a file' at offset ";
    g_assert_true(g_str_has_prefix(error->message, rest));
    offset = strtoull(error->message + strlen(rest), &end, 10);
    g_assert_cmpuint(offset, <=, most);
    text = g_strdup_printf(": %s", reason);
    g_assert_cmpstr(end, ==, text);
}

static void
testDiskFull(void)
{
    static const char *const types[] = { "tmpfs", "ext4" };
    g_auto(vspTestDir) dir = vspTestDirectory();

    for (guint i = 0; i < G_N_ELEMENTS(types); i++) {
        g_auto(vspFd) root = -1;
        g_autofree char *path = NULL;

        if (geteuid() == 0)
            root = i == 0 ? vspTestTmpfs(16 * MIB) : vspTestDiskFs(dir, types[i], 16 * MIB, 512);
        if (root < 0) {
            vspTestSkip("needs root, for small file systems");
            return;
        }
        path = vspTestFsPath(root, "file");
        for (vspCacheMode mode = VSP_CACHE_AUTO; mode <= VSP_CACHE_CACHED; mode++) {
            g_autoptr(vspFileWrapperOptions) options = vspFileWrapperOptionsNew();

            vspFileWrapperOptionsSetCacheMode(options, mode);
            assertNoSpace(vspTestOpen(path, O_WRONLY | O_CREAT | O_TRUNC), options, 16 * MIB,
                          "No space left on device");
        }
    }
}

static void
testDevFull(void)
{
    g_autoptr(vspFileWrapperOptions) options = vspFileWrapperOptionsNew();

    for (vspTransport t = VSP_TRANSPORT_PIPE; t <= VSP_TRANSPORT_SOCKET; t++) {
        vspFileWrapperOptionsSetTransport(options, t);
        assertNoSpace(vspTestOpen("/dev/full", O_WRONLY), options, 0, "No space left on device");
    }
}

/* Not by SIGXFSZ, which would say nothing. Writes beyond the limit are under way as well, and fail
 * before the one that reaches it. */
static void
withFileSizeLimit(gpointer opaque)
{
    struct rlimit limit = { 5 * MIB, 5 * MIB };

    g_assert_cmpint(setrlimit(RLIMIT_FSIZE, &limit), ==, 0);
    for (vspCacheMode mode = VSP_CACHE_AUTO; mode <= VSP_CACHE_CACHED; mode++) {
        g_autoptr(vspFileWrapperOptions) options = vspFileWrapperOptionsNew();

        vspFileWrapperOptionsSetCacheMode(options, mode);
        assertNoSpace(vspTestOpen(opaque, O_WRONLY | O_CREAT | O_TRUNC), options, 5 * MIB,
                      "File too large");
    }
}

static void
testFileSizeLimit(void)
{
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autofree char *path = vspTestPath(dir, "file");

    vspTestInChild(withFileSizeLimit, path);
}

static void
testReaderGone(void)
{
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autofree char *path = vspTestPath(dir, "file");

    wrapperMakeFile(path, 64 * MIB);
    for (guint flags = 0; flags < 8; flags++) {
        g_auto(vspFd) fd = vspTestOpen(path, O_RDONLY);
        g_autoptr(vspFileWrapperFd) wfd = wrapperNew(&fd, "NAME", flags);
        char byte;

        if (!(flags & VSP_FILE_WRAPPER_NON_BLOCKING))
            g_assert_cmpint(read(fd, &byte, 1), ==, 1);
        vspFdClose(&fd);
        wrapperAssertFailed(wfd, VSP_ERROR_READER_GONE,
                            "the reader of 'NAME' closed its end after ", " bytes", NULL);
    }
}

/* In strict mode the refusal comes before anything moves. */
static void
testStrict(void)
{
    g_autoptr(vspFileWrapperOptions) options = vspFileWrapperOptionsNew();
    g_autoptr(GError) error = NULL;
    g_auto(vspFd) fd = vspTestOpen("/dev/null", O_WRONLY);
    g_autoptr(vspFileWrapperFd) wfd = NULL;
    g_autoptr(GVariant) statistics = NULL;
    const char *text;
    int number = fd;

    /* The null device has no direct I/O. */
    vspFileWrapperOptionsSetCacheMode(options, VSP_CACHE_DIRECT);
    vspFileWrapperOptionsSetStrict(options, TRUE);
    g_assert_null(vspFileWrapperFdNewWithOptions(&fd, "NAME", options, &error));
    g_assert_error(error, VSP_ERROR, VSP_ERROR_NO_DIRECT_IO);
    g_assert_nonnull(strstr(error->message, "cache mode refused for 'NAME'"));
    g_assert_cmpint(fd, ==, number);
    g_clear_error(&error);

    /* Else it steps down, and says so. */
    vspFileWrapperOptionsSetStrict(options, FALSE);
    wfd = vspFileWrapperFdNewWithOptions(&fd, "NAME", options, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(wrapperFeed(fd, MIB), ==, MIB);
    vspFdClose(&fd);
    wrapperAssertClosed(wfd);
    statistics = vspFileWrapperFdGetStatistics(wfd);
    g_assert_true(g_variant_lookup(statistics, "cache-asked", "&s", &text));
    g_assert_cmpstr(text, ==, "direct");
    g_assert_true(g_variant_lookup(statistics, "cache", "&s", &text));
    g_assert_cmpstr(text, !=, "direct");
    g_assert_true(g_variant_lookup(statistics, "notice", "&s", &text));
    g_assert_cmpstr(text, ==, "the file system refuses direct I/O");
}

static void
testBadRead(void)
{
    /* Memory that is not there: reading at the position 0 is an I/O error. */
    g_auto(vspFd) fd = vspTestOpen("/proc/self/mem", O_RDONLY);
    g_autoptr(vspFileWrapperFd) wfd = wrapperNew(&fd, "NAME", 0);

    g_assert_cmpuint(wrapperDrain(fd, 0), ==, 0);
    vspFdClose(&fd);
    wrapperAssertFailed(wfd, VSP_ERROR_IO, "cannot read 'NAME' at offset 0: Input/output error",
                        NULL);
}

int
main(int argc, char **argv)
{
    vspTestInit(&argc, &argv);
    vspTestAdd("/wrapper-errors/disk-full", testDiskFull);
    vspTestAdd("/wrapper-errors/dev-full", testDevFull);
    vspTestAdd("/wrapper-errors/file-size-limit", testFileSizeLimit);
    vspTestAdd("/wrapper-errors/reader-gone", testReaderGone);
    vspTestAdd("/wrapper-errors/strict", testStrict);
    vspTestAdd("/wrapper-errors/bad-read", testBadRead);
    return vspTestRun();
}
