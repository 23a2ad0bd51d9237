/*
 * test-filewrapper-abort.c: a transfer that is given up, in bounded time whatever hangs
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "testfs.h"
#include "testutil.h"
#include "vspfd.h"
#include "wrapperutil.h"

#define MIB (1024 * 1024)

static void
testRunning(void)
{
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autofree char *path = vspTestPath(dir, "file");
    g_auto(vspFd) fd = vspTestOpen(path, O_WRONLY | O_CREAT);
    g_autoptr(vspFileWrapperFd) wfd = wrapperNew(&fd, "NAME", 0);
    pid_t helper = wrapperFindHelper();
    vspProgress progress;

    g_assert_cmpuint(wrapperFeed(fd, 10 * MIB), ==, 10 * MIB);
    vspFileWrapperFdAbort(wfd);
    g_assert_false(vspTestIsAlive(helper));
    vspFileWrapperFdAbort(wfd);
    wrapperFeed(fd, MIB);
    g_assert_cmpint(errno, ==, EPIPE);

    /* Even with the end still open: there is nothing to wait for. */
    wrapperAssertFailed(wfd, VSP_ERROR_ABORTED, "the transfer of 'NAME' was aborted", NULL);
    vspFdClose(&fd);
    wrapperAssertFailed(wfd, VSP_ERROR_ABORTED, "the transfer of 'NAME' was aborted", NULL);
    vspFileWrapperFdAbort(wfd);
    vspFileWrapperFdGetProgress(wfd, &progress);
    g_assert_true(progress.stage != VSP_STAGE_DONE);
}

static void
testStopped(void)
{
    g_auto(vspFd) fd = vspTestOpen("/dev/null", O_WRONLY);
    g_autoptr(vspFileWrapperFd) wfd = wrapperNew(&fd, "NAME", 0);
    pid_t helper = wrapperFindHelper();

    g_assert_cmpint(kill(helper, SIGSTOP), ==, 0);
    vspFileWrapperFdAbort(wfd);
    g_assert_false(vspTestIsAlive(helper));
    vspFdClose(&fd);
    wrapperAssertFailed(wfd, VSP_ERROR_ABORTED, "the transfer of 'NAME' was aborted", NULL);
}

/* A verdict that is there stands. */
static void
testAfterVerdict(void)
{
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autofree char *path = wrapperFakeHelper(dir, "fails-at-once");
    g_autoptr(vspFileWrapperOptions) options = wrapperOptionsWithHelper(path);
    g_auto(vspFd) fd = vspTestOpen("/dev/null", O_WRONLY);
    g_autoptr(vspFileWrapperFd) wfd = vspFileWrapperFdNewWithOptions(&fd, "NAME", options, NULL);

    g_assert_nonnull(wfd);
    vspTestWaitGone(wrapperFindHelper());
    vspFileWrapperFdAbort(wfd);
    vspFdClose(&fd);
    wrapperAssertFailed(wfd, VSP_ERROR_NO_SPACE, "offset 4711", NULL);
}

static gpointer
closeInThread(gpointer opaque)
{
    vspFileWrapperFd *wfd = opaque;
    GError *error = NULL;

    g_assert_cmpint(vspFileWrapperFdClose(wfd, &error), ==, -1);
    return error;
}

/* Does another thread of ours sit in poll(2)? */
static gboolean
threadPolls(gpointer opaque)
{
    g_autoptr(GDir) dir = g_dir_open("/proc/self/task", 0, NULL);
    const char *name;

    while ((name = g_dir_read_name(dir))) {
        g_autofree char *path = g_build_filename("/proc/self/task", name, "wchan", NULL);
        g_autofree char *text = NULL;

        if (g_file_get_contents(path, &text, NULL, NULL) && strstr(text, "poll"))
            return TRUE;
    }
    return FALSE;
}

/* @wfd is closed by one thread, which waits, and aborted by another. */
static void
abortWhileClosing(vspFileWrapperFd *wfd, const char *words)
{
    g_autoptr(GThread) thread = g_thread_new("close", closeInThread, wfd);
    g_autoptr(GError) error = NULL;
    vspProgress progress;

    vspTestWaitFor(threadPolls, NULL, "Close to wait");
    vspFileWrapperFdGetProgress(wfd, &progress);
    vspFileWrapperFdAbort(wfd);
    error = g_thread_join(g_steal_pointer(&thread));
    g_assert_error(error, VSP_ERROR, VSP_ERROR_ABORTED);
    g_assert_nonnull(strstr(error->message, words));
    wrapperAssertFailed(wfd, VSP_ERROR_ABORTED, words, NULL);
}

static void
testWhileClosing(void)
{
    g_auto(vspFd) fd = vspTestOpen("/dev/null", O_WRONLY);
    g_autoptr(vspFileWrapperFd) wfd = wrapperNew(&fd, "NAME", 0);

    g_assert_cmpint(kill(wrapperFindHelper(), SIGSTOP), ==, 0);
    vspFdClose(&fd);
    abortWhileClosing(wfd, "the transfer of 'NAME' was aborted");
}

/* The channel does not hang up, because somebody else has it: Close must not wait for that. */
static void
testChannelHeld(void)
{
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autofree char *path = wrapperFakeHelper(dir, "holds-channel");
    g_autoptr(vspFileWrapperOptions) options = wrapperOptionsWithHelper(path);
    g_auto(vspFd) fd = vspTestOpen("/dev/null", O_WRONLY);
    g_autoptr(vspFileWrapperFd) wfd = vspFileWrapperFdNewWithOptions(&fd, "NAME", options, NULL);

    g_assert_nonnull(wfd);
    vspFdClose(&fd);
    abortWhileClosing(wfd, "the transfer of 'NAME' was aborted");
}

static gpointer
abortInThread(gpointer wfd)
{
    vspFileWrapperFdAbort(wfd);
    return NULL;
}

static void
testByMany(void)
{
    for (guint i = 0; i < vspTestRounds(50); i++) {
        g_auto(vspFd) fd = vspTestOpen("/dev/null", O_WRONLY);
        g_autoptr(vspFileWrapperFd) wfd = wrapperNew(&fd, "NAME", 0);
        GThread *threads[3];

        for (guint k = 0; k < G_N_ELEMENTS(threads); k++)
            threads[k] = g_thread_new("abort", abortInThread, wfd);
        for (guint k = 0; k < G_N_ELEMENTS(threads); k++)
            g_thread_join(threads[k]);
        wrapperAssertFailed(wfd, VSP_ERROR_ABORTED, "the transfer of 'NAME' was aborted", NULL);
    }
}

/* Is one of its threads, or of those that the kernel has lent it, in an uninterruptible wait? */
static gboolean
isStuck(gpointer opaque)
{
    g_autofree char *tasks = g_strdup_printf("/proc/%d/task", GPOINTER_TO_INT(opaque));
    g_autoptr(GDir) dir = g_dir_open(tasks, 0, NULL);
    const char *name;

    while ((name = g_dir_read_name(dir))) {
        g_autofree char *path = g_build_filename(tasks, name, "stat", NULL);
        g_autofree char *text = NULL;

        if (g_file_get_contents(path, &text, NULL, NULL) && strstr(text, ") D "))
            return TRUE;
    }
    return FALSE;
}

/* Thaws the file system when it is told to, or when the test is no more. */
static void
thawLater(gpointer opaque)
{
    int *fds = opaque;
    char byte;

    prctl(PR_SET_PDEATHSIG, 0);
    alarm(0);
    vspFdClose(&fds[2]);
    while (read(fds[1], &byte, 1) < 0 && errno == EINTR)
        continue;
    ioctl(fds[0], FITHAW, 0);
}

/* A disk that does not answer: a write to a frozen file system can't be killed. */
static void
testHungDisk(void)
{
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_auto(vspFd) root = geteuid() == 0 ? vspTestDiskFs(dir, "ext4", 32 * MIB, 512) : -1;
    g_auto(vspFd) directory = -1;
    g_autofree char *path = NULL;
    g_autofree char *words = NULL;
    int fds[3];
    pid_t guard, helper;

    if (root < 0) {
        vspTestSkip("needs root, a loop device and mkfs.ext4");
        return;
    }
    path = vspTestFsPath(root, "file");
    directory = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    g_assert_cmpint(pipe2(&fds[1], O_CLOEXEC), ==, 0);
    fds[0] = directory;
    {
        g_auto(vspFd) fd = vspTestOpen(path, O_WRONLY | O_CREAT);
        g_autoptr(vspFileWrapperFd) wfd = wrapperNew(&fd, "NAME", 0);

        helper = wrapperFindHelper();
        guard = vspTestFork(thawLater, fds);
        g_assert_cmpint(ioctl(directory, FIFREEZE, 0), ==, 0);

        g_assert_cmpuint(wrapperFeed(fd, 6 * MIB), ==, 6 * MIB);
        vspFdClose(&fd);
        words = g_strdup_printf(
            "the transfer of 'NAME' was aborted, but its iohelper, pid %d, hangs", (int)helper);
        vspTestWaitFor(isStuck, GINT_TO_POINTER(helper), "the helper to hang");
        abortWhileClosing(wfd, words);
        g_assert_true(vspTestIsAlive(helper));
    }
    vspFdClose(&fds[2]);
    vspFdClose(&fds[1]);
    vspTestWaitPid(guard);
    vspTestWaitGone(helper);
}

int
main(int argc, char **argv)
{
    vspTestInit(&argc, &argv);
    vspTestAdd("/wrapper-abort/running", testRunning);
    vspTestAdd("/wrapper-abort/stopped", testStopped);
    vspTestAdd("/wrapper-abort/after-verdict", testAfterVerdict);
    vspTestAdd("/wrapper-abort/while-closing", testWhileClosing);
    vspTestAdd("/wrapper-abort/channel-held", testChannelHeld);
    vspTestAdd("/wrapper-abort/by-many", testByMany);
    vspTestAdd("/wrapper-abort/hung-disk", testHungDisk);
    return vspTestRun();
}
