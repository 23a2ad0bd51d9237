/*
 * test-filewrapper-rate.c: the rate limit: it holds, both ways, and can be changed on the way
 *
 * No time is asserted on. A limit so low that the job would take hours shows by the stream's being stuck;
 * that it was lifted shows by the job's coming to its end within the test's own limit.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "testdata.h"
#include "testutil.h"
#include "vspfd.h"
#include "vspio.h"
#include "wrapperutil.h"

#define MIB (1024 * 1024)
/* More than transport and helper take in together. */
#define LENGTH (48 * MIB)
/* Three hours for all of it. */
#define SLOW 4096
/* The helper is given that long to prove us wrong: an unlimited one drains the stream at once. */
#define PATIENCE_MS 500

static vspFileWrapperFd *
wrapSlowly(int *fd)
{
    g_autoptr(vspFileWrapperOptions) options = vspFileWrapperOptionsNew();
    g_autoptr(GError) error = NULL;
    vspFileWrapperFd *wfd;

    vspFileWrapperOptionsSetFlags(options, VSP_FILE_WRAPPER_NON_BLOCKING);
    vspFileWrapperOptionsSetRateLimit(options, SLOW);
    wfd = vspFileWrapperFdNewWithOptions(fd, "NAME", options, &error);
    g_assert_no_error(error);
    return wfd;
}

/* Writes until the stream is full and stays so. Returns the bytes that went in. */
static guint64
fillUp(int fd)
{
    g_autofree char *buf = g_malloc(MIB);
    guint64 done = 0;

    for (;;) {
        ssize_t n;

        vspTestFill(buf, MIB, done);
        n = write(fd, buf, MIB);
        if (n > 0) {
            done += n;
            g_assert_cmpuint(done, <, LENGTH);
        } else {
            g_assert_cmpint(errno, ==, EAGAIN);
            if (vspPollOne(fd, POLLOUT, vspDeadline(PATIENCE_MS)) == 0)
                return done;
        }
    }
}

static void
testSave(void)
{
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autofree char *path = vspTestPath(dir, "file");
    g_auto(vspFd) fd = vspTestOpen(path, O_WRONLY | O_CREAT);
    g_autoptr(vspFileWrapperFd) wfd = wrapSlowly(&fd);
    g_autoptr(GError) error = NULL;
    guint64 done = fillUp(fd);
    g_autofree char *rest = g_malloc(LENGTH);

    vspFileWrapperFdSetRateLimit(wfd, 0, &error);
    g_assert_no_error(error);
    vspTestFill(rest, LENGTH - done, done);
    g_assert_cmpint(vspWriteFull(fd, rest, LENGTH - done), ==, 0);
    vspFdClose(&fd);
    wrapperAssertClosed(wfd);
    wrapperAssertFile(path, LENGTH);
}

/* Also a file that is in memory, which without a limit would be passed on uncopied. */
static void
testRestore(void)
{
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autofree char *path = vspTestPath(dir, "file");
    g_auto(vspFd) fd = -1;
    g_autoptr(vspFileWrapperFd) wfd = NULL;
    g_autoptr(GError) error = NULL;
    g_autofree char *buf = g_malloc(MIB);
    guint64 done = 0;

    wrapperMakeFile(path, LENGTH);
    fd = vspTestOpen(path, O_RDONLY);
    wfd = wrapSlowly(&fd);
    while (vspPollOne(fd, POLLIN, vspDeadline(PATIENCE_MS)) > 0 && done < MIB) {
        ssize_t n = read(fd, buf, MIB);

        g_assert_cmpint(n, >, 0);
        done += n;
    }
    /* Nothing more comes, though far more is there than was read. */
    g_assert_cmpuint(done, <, MIB);

    vspFileWrapperFdSetRateLimit(wfd, 0, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(wrapperDrain(fd, done), ==, LENGTH - done);
    vspFdClose(&fd);
    wrapperAssertClosed(wfd);
}

/* The other way round: a job in full swing is slowed down. */
static void
testSetLater(void)
{
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autofree char *path = vspTestPath(dir, "file");
    g_auto(vspFd) fd = vspTestOpen(path, O_WRONLY | O_CREAT);
    g_autoptr(vspFileWrapperFd) wfd = wrapperNew(&fd, "NAME", VSP_FILE_WRAPPER_NON_BLOCKING);
    g_autoptr(GError) error = NULL;

    g_assert_cmpuint(wrapperFeed(fd, 9 * MIB), ==, 9 * MIB);
    vspFileWrapperFdSetRateLimit(wfd, SLOW, &error);
    g_assert_no_error(error);
    fillUp(fd);
    vspFileWrapperFdAbort(wfd);
}

static void
testTooLate(void)
{
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autofree char *path = vspTestPath(dir, "file");
    g_auto(vspFd) fd = vspTestOpen(path, O_WRONLY | O_CREAT);
    g_autoptr(vspFileWrapperFd) wfd = wrapperNew(&fd, "NAME", 0);
    g_autoptr(GError) error = NULL;

    vspFdClose(&fd);
    wrapperAssertClosed(wfd);
    g_assert_cmpint(vspFileWrapperFdSetRateLimit(wfd, 1, &error), ==, -1);
    g_assert_error(error, VSP_ERROR, VSP_ERROR_FAILED);
}

int
main(int argc, char **argv)
{
    vspTestInit(&argc, &argv);
    vspTestAdd("/rate/save", testSave);
    vspTestAdd("/rate/restore", testRestore);
    vspTestAdd("/rate/set-later", testSetLater);
    vspTestAdd("/rate/too-late", testTooLate);
    return vspTestRun();
}
