/*
 * test-filewrapper-threads.c: the wrapper in a daemon with many threads, of which some start other
 * programs
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testutil.h"
#include "vspfd.h"
#include "wrapperutil.h"

#define MIB (1024 * 1024)
#define WRAPPERS 8
#define ROUNDS 25

static gint stop;

/* Starts children that know nothing of descriptors and live on, by fork and exec as by GLib: none
 * may inherit an end of ours and keep it open. */
static gpointer
startOthers(gpointer opaque)
{
    GArray *pids = opaque;

    while (!g_atomic_int_get(&stop)) {
        pid_t pid = fork();

        if (pid == 0) {
            execl("/bin/sleep", "sleep", "1000", (char *)NULL);
            _exit(127);
        }
        g_assert_cmpint(pid, >, 0);
        g_array_append_val(pids, pid);
        /* So many at once are enough. */
        if (pids->len >= 20) {
            pid = g_array_index(pids, pid_t, 0);
            g_assert_cmpint(kill(pid, SIGKILL), ==, 0);
            vspTestWaitPid(pid);
            g_array_remove_index(pids, 0);
        }
    }
    for (guint i = 0; i < pids->len; i++) {
        pid_t pid = g_array_index(pids, pid_t, i);

        kill(pid, SIGKILL);
        vspTestWaitPid(pid);
    }
    return NULL;
}

/* Other threads' opening and closing, to which a second close of ours would do harm. */
static gpointer
useDescriptors(gpointer opaque)
{
    while (!g_atomic_int_get(&stop)) {
        int fds[2];
        char byte = 'x';

        g_assert_cmpint(pipe2(fds, O_CLOEXEC), ==, 0);
        g_assert_cmpint(write(fds[1], &byte, 1), ==, 1);
        g_assert_cmpint(read(fds[0], &byte, 1), ==, 1);
        g_assert_cmpint(close(fds[0]), ==, 0);
        g_assert_cmpint(close(fds[1]), ==, 0);
    }
    return NULL;
}

static gpointer
wrapAndUnwrap(gpointer opaque)
{
    const char *path = opaque;
    g_autoptr(vspFileWrapperOptions) missing = wrapperOptionsWithHelper("/nonexistent/helper");

    for (guint i = 0; i < vspTestRounds(ROUNDS); i++) {
        guint64 length = MIB * (i % 3) + i;
        g_auto(vspFd) out = vspTestOpen(path, O_WRONLY | O_CREAT | O_TRUNC);
        g_auto(vspFd) in = -1;
        g_autoptr(vspFileWrapperFd) writing = NULL;
        g_autoptr(vspFileWrapperFd) reading = NULL;
        g_autoptr(vspFileWrapperFd) aborted = NULL;

        g_assert_null(vspFileWrapperFdNewWithOptions(&out, "NAME", missing, NULL));
        writing = wrapperNew(&out, "NAME", i % 8);
        g_assert_cmpuint(wrapperFeed(out, length), ==, length);
        vspFdClose(&out);
        wrapperAssertClosed(writing);

        in = vspTestOpen(path, O_RDONLY);
        reading = wrapperNew(&in, "NAME", i % 8);
        g_assert_cmpuint(wrapperDrain(in, 0), ==, length);
        vspFdClose(&in);
        wrapperAssertClosed(reading);

        out = vspTestOpen("/dev/null", O_WRONLY);
        aborted = wrapperNew(&out, "NAME", 0);
        vspFileWrapperFdAbort(aborted);
        wrapperAssertFailed(aborted, VSP_ERROR_ABORTED, NULL);
    }
    return NULL;
}

static void
testMany(void)
{
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autoptr(GArray) pids = g_array_new(FALSE, FALSE, sizeof(pid_t));
    GThread *others, *user;
    GThread *wrappers[WRAPPERS];
    char *paths[WRAPPERS];

    g_atomic_int_set(&stop, 0);
    others = g_thread_new("others", startOthers, pids);
    user = g_thread_new("user", useDescriptors, NULL);
    for (guint i = 0; i < WRAPPERS; i++) {
        g_autofree char *name = g_strdup_printf("file%u", i);

        paths[i] = vspTestPath(dir, name);
        wrappers[i] = g_thread_new("wrapper", wrapAndUnwrap, paths[i]);
    }
    for (guint i = 0; i < WRAPPERS; i++) {
        g_thread_join(wrappers[i]);
        g_free(paths[i]);
    }
    g_atomic_int_set(&stop, 1);
    g_thread_join(others);
    g_thread_join(user);
}

typedef struct {
    vspFileWrapperFd *wfd;
    gint done;
} Watch;

static gpointer
watchProgress(gpointer opaque)
{
    Watch *watch = opaque;
    guint64 before = 0;

    while (!g_atomic_int_get(&watch->done)) {
        vspProgress progress;
        g_autoptr(GVariant) statistics = vspFileWrapperFdGetStatistics(watch->wfd);

        g_assert_nonnull(statistics);
        vspFileWrapperFdGetProgress(watch->wfd, &progress);
        g_assert_cmpuint(progress.bytesIn, >=, before);
        before = progress.bytesIn;
    }
    return NULL;
}

/* Progress is asked for by one thread while another feeds and closes. */
static void
testProgress(void)
{
    for (guint i = 0; i < vspTestRounds(10); i++) {
        g_auto(vspFd) fd = vspTestOpen("/dev/null", O_WRONLY);
        g_autoptr(vspFileWrapperFd) wfd = wrapperNew(&fd, "NAME", 0);
        Watch watch = { .wfd = wfd };
        GThread *thread = g_thread_new("watch", watchProgress, &watch);

        g_assert_cmpuint(wrapperFeed(fd, 20 * MIB), ==, 20 * MIB);
        vspFdClose(&fd);
        wrapperAssertClosed(wfd);
        g_atomic_int_set(&watch.done, 1);
        g_thread_join(thread);
    }
}

static gpointer
abortSoon(gpointer wfd)
{
    vspFileWrapperFdAbort(wfd);
    return NULL;
}

/* Abort at any moment of a Close: one of the two outcomes, and the same for ever. */
static void
testAbortRaces(void)
{
    guint aborted = 0;

    for (guint i = 0; i < vspTestRounds(100); i++) {
        g_auto(vspFd) fd = vspTestOpen("/dev/null", O_WRONLY);
        g_autoptr(vspFileWrapperFd) wfd = wrapperNew(&fd, "NAME", 0);
        g_autoptr(GError) error = NULL;
        GThread *thread;
        int rc;

        vspFdClose(&fd);
        thread = g_thread_new("abort", abortSoon, wfd);
        rc = vspFileWrapperFdClose(wfd, &error);
        if (rc < 0)
            g_assert_error(error, VSP_ERROR, VSP_ERROR_ABORTED);
        g_thread_join(thread);
        g_assert_cmpint(vspFileWrapperFdClose(wfd, NULL), ==, rc);
        aborted += rc < 0;
    }
    g_test_message("%u were aborted in time", aborted);
}

int
main(int argc, char **argv)
{
    vspTestInit(&argc, &argv);
    vspTestAdd("/wrapper-threads/many", testMany);
    vspTestAdd("/wrapper-threads/progress", testProgress);
    vspTestAdd("/wrapper-threads/abort-races", testAbortRaces);
    return vspTestRun();
}
