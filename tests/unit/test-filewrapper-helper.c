/*
 * test-filewrapper-helper.c: helpers that are missing, wrong, or die; and what a right one is given
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <glib/gstdio.h>

#include "testutil.h"
#include "vspfd.h"
#include "vspspawn.h"
#include "wrapperutil.h"

#define MIB (1024 * 1024)

/* New fails as told, with the descriptor unchanged and nothing left behind. */
static void
assertNotWrapped(const char *helper, int code, const char *words)
{
    g_autoptr(vspFileWrapperOptions) options = wrapperOptionsWithHelper(helper);
    g_auto(vspFd) fd = vspTestOpen("/dev/null", O_WRONLY);
    int number = fd;
    guint count = vspTestCountDescriptors();
    g_autoptr(GError) error = NULL;

    g_assert_null(vspFileWrapperFdNewWithOptions(&fd, "NAME", options, &error));
    g_assert_error(error, VSP_ERROR, code);
    if (!strstr(error->message, words))
        g_error("no '%s' in: %s", words, error->message);
    g_assert_cmpint(fd, ==, number);
    g_assert_cmpint(fcntl(fd, F_GETFL) & O_ACCMODE, ==, O_WRONLY);
    g_assert_cmpuint(vspTestCountDescriptors(), ==, count);
    vspTestAssertNoChildren();
    g_assert_null(vspFileWrapperFdNewWithOptions(&fd, "NAME", options, NULL));
}

static void
makeProgram(const char *path, const char *text, int mode)
{
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
    g_assert_cmpint(g_chmod(path, mode), ==, 0);
}

static void
testMissing(void)
{
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autofree char *plain = vspTestPath(dir, "plain");
    g_autofree char *badShell = vspTestPath(dir, "bad-shell");

    makeProgram(plain, "text\n", 0644);
    makeProgram(badShell, "#!/nonexistent/shell\n", 0755);
    assertNotWrapped("/nonexistent/helper", VSP_ERROR_HELPER_MISSING, "'/nonexistent/helper'");
    assertNotWrapped("vmspool_iohelper", VSP_ERROR_HELPER_MISSING, "not absolute");
    assertNotWrapped("./vmspool_iohelper", VSP_ERROR_HELPER_MISSING, "not absolute");
    assertNotWrapped(plain, VSP_ERROR_HELPER_MISSING, plain);
    assertNotWrapped(dir, VSP_ERROR_HELPER_MISSING, "Permission denied");
    assertNotWrapped(badShell, VSP_ERROR_HELPER_MISSING, "No such file or directory");
}

/* Some program, but not an iohelper. */
static void
testWrongProgram(void)
{
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autofree char *script = vspTestPath(dir, "script");
    g_autofree char *flood = vspTestPath(dir, "flood");
    g_autofree char *dies = vspTestPath(dir, "dies");

    makeProgram(script, "#!/bin/sh\necho I am no helper >&2\nexit 5\n", 0755);
    makeProgram(flood, "#!/bin/sh\nhead -c 1048576 /dev/zero | tr '\\0' x >&2\nexit 5\n", 0755);
    makeProgram(dies, "#!/bin/sh\nkill -SEGV $$\n", 0755);
    assertNotWrapped("/bin/true", VSP_ERROR_HELPER_DIED, "exited with status 0");
    assertNotWrapped("/bin/false", VSP_ERROR_HELPER_DIED, "exited with status 1");
    assertNotWrapped(script, VSP_ERROR_HELPER_DIED,
                     "exited with status 5 after 0 bytes: I am no helper");
    assertNotWrapped(flood, VSP_ERROR_HELPER_DIED, "exited with status 5 after 0 bytes: xxxx");
    assertNotWrapped(dies, VSP_ERROR_HELPER_DIED, "was killed by signal 11 (Segmentation fault)");
}

static void
testOtherVersion(void)
{
    static const struct {
        const char *name;
        int code;
        const char *words;
    } rows[] = {
        { "other-version", VSP_ERROR_HELPER_VERSION,
          "speaks version 2 of the status protocol, the library version 1" },
        { "older-version", VSP_ERROR_HELPER_VERSION, "speaks version 0" },
        { "other-protocol", VSP_ERROR_HELPER_VERSION, "not a status record" },
        { "says-why", VSP_ERROR_HELPER_DIED,
          "of 'NAME' exited with status 3 after 0 bytes: the moon is; in the way" },
        { "refuses", VSP_ERROR_IO, "cannot write 'NAME' at offset 4711: Input/output error" },
    };
    g_auto(vspTestDir) dir = vspTestDirectory();

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *path = wrapperFakeHelper(dir, rows[i].name);

        assertNotWrapped(path, rows[i].code, rows[i].words);
    }
}

/* What Close says about a helper that is not right after its hello. */
static void
testWrongEnd(void)
{
    static const struct {
        const char *name;
        int code; /* -1: success */
        const char *words;
    } rows[] = {
        { "no-verdict", VSP_ERROR_HELPER_DIED, "of 'NAME' exited with status 0 after 0 bytes" },
        { "says-why-later", VSP_ERROR_HELPER_DIED,
          "was killed by signal 6 (Aborted) after 12345 bytes: assertion failed" },
        { "fails-at-once", VSP_ERROR_NO_SPACE,
          "cannot write 'NAME' at offset 4711: No space left on device" },
        { "two-verdicts", VSP_ERROR_NO_SPACE, "offset 4711: No space left on device" },
        { "closes-channel", VSP_ERROR_HELPER_DIED, "closed its status channel without ending" },
        { "other-status", -1, NULL },
        { "does-not-end", -1, NULL },
    };
    g_auto(vspTestDir) dir = vspTestDirectory();
    struct rlimit noCore = { 0, 0 };

    setrlimit(RLIMIT_CORE, &noCore);
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *path = wrapperFakeHelper(dir, rows[i].name);
        g_autoptr(vspFileWrapperOptions) options = wrapperOptionsWithHelper(path);
        g_auto(vspFd) fd = vspTestOpen("/dev/null", O_WRONLY);
        g_autoptr(GError) error = NULL;
        g_autoptr(vspFileWrapperFd) wfd =
            vspFileWrapperFdNewWithOptions(&fd, "NAME", options, &error);

        g_assert_no_error(error);
        vspFdClose(&fd);
        for (guint again = 0; again < 2; again++) {
            if (rows[i].code < 0)
                wrapperAssertClosed(wfd);
            else
                wrapperAssertFailed(wfd, rows[i].code, rows[i].words, NULL);
        }
    }
}

/* The caller blocks in a write when the helper dies: EPIPE, and Close says why. */
static void
testKilled(void)
{
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autofree char *path = vspTestPath(dir, "file");
    static const int signals[] = { SIGKILL, SIGTERM, SIGSTOP };

    for (guint flags = 0; flags <= VSP_FILE_WRAPPER_BIG_PIPE; flags += VSP_FILE_WRAPPER_BIG_PIPE) {
        for (guint i = 0; i < G_N_ELEMENTS(signals); i++) {
            g_auto(vspFd) fd = vspTestOpen(path, O_WRONLY | O_CREAT | O_TRUNC);
            g_autoptr(vspFileWrapperFd) wfd = wrapperNew(&fd, "NAME", flags);
            pid_t helper = wrapperFindHelper();
            g_autofree char *killer = g_strdup_printf(
                "until grep -q 'State:.S' /proc/$PPID/status; do :; done; kill -KILL %d",
                (int)helper);
            const char *argv[] = { "/bin/sh", "-c", killer, NULL };
            g_autoptr(vspChild) child = NULL;

            g_assert_cmpuint(wrapperFeed(fd, 10 * MIB), ==, 10 * MIB);
            if (signals[i] == SIGSTOP) {
                /* Stopped, so that the write blocks; killed when it does. */
                g_assert_cmpint(kill(helper, SIGSTOP), ==, 0);
                child = vspChildSpawn(argv, NULL, 0, NULL, NULL, 0, NULL);
                g_assert_nonnull(child);
            } else {
                g_assert_cmpint(kill(helper, signals[i]), ==, 0);
            }
            g_assert_cmpuint(wrapperFeed(fd, 10000 * (guint64)MIB), <, 10000 * (guint64)MIB);
            g_assert_cmpint(errno, ==, EPIPE);
            vspFdClose(&fd);
            if (child)
                g_assert_true(vspChildWait(child, vspTestDeadline(), NULL) == VSP_CHILD_EXITED);
            wrapperAssertFailed(wfd, VSP_ERROR_HELPER_DIED, "of 'NAME' was killed by signal ",
                                signals[i] == SIGTERM ? "15 (Terminated)" : "9 (Killed)", " after ",
                                " bytes", NULL);
        }
    }
}

/* Reading: the caller sees an end, and only Close knows that it is not the end of the file. */
static void
testKilledReading(void)
{
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autofree char *path = vspTestPath(dir, "file");
    g_auto(vspFd) fd = -1;
    g_autoptr(vspFileWrapperFd) wfd = NULL;

    wrapperMakeFile(path, 64 * MIB);
    fd = vspTestOpen(path, O_RDONLY);
    wfd = wrapperNew(&fd, "NAME", 0);
    g_assert_cmpint(kill(wrapperFindHelper(), SIGKILL), ==, 0);
    g_assert_cmpuint(wrapperDrain(fd, 0), <, 64 * MIB);
    vspFdClose(&fd);
    wrapperAssertFailed(wfd, VSP_ERROR_HELPER_DIED, "was killed by signal 9 (Killed) after ", NULL);
}

static gpointer
reapEverything(gpointer opaque)
{
    gint *stop = opaque;

    while (!g_atomic_int_get(stop)) {
        if (waitpid(-1, NULL, WNOHANG) <= 0)
            g_usleep(100);
    }
    return NULL;
}

/* An application that takes every exit status costs a detail of the text. */
static void
testStatusTaken(void)
{
    gint stop = 0;
    g_autoptr(GThread) thread = g_thread_new("reaper", reapEverything, &stop);

    for (guint i = 0; i < 20; i++) {
        g_auto(vspFd) fd = vspTestOpen("/dev/null", O_WRONLY);
        g_autoptr(vspFileWrapperFd) wfd = wrapperNew(&fd, "NAME", 0);

        g_assert_cmpuint(wrapperFeed(fd, MIB), ==, MIB);
        vspFdClose(&fd);
        wrapperAssertClosed(wfd);
    }
    {
        g_auto(vspFd) fd = vspTestOpen("/dev/null", O_WRONLY);
        g_autoptr(vspFileWrapperFd) wfd = wrapperNew(&fd, "NAME", 0);

        g_assert_cmpint(kill(wrapperFindHelper(), SIGKILL), ==, 0);
        vspFdClose(&fd);
        wrapperAssertFailed(wfd, VSP_ERROR_HELPER_DIED, "of 'NAME'", " after 0 bytes", NULL);
    }
    g_atomic_int_set(&stop, 1);
    g_thread_join(g_steal_pointer(&thread));
}

static void
withSigchldIgnored(gpointer opaque)
{
    g_auto(vspFd) fd = vspTestOpen("/dev/null", O_WRONLY);
    g_auto(vspFd) full = vspTestOpen("/dev/full", O_WRONLY);
    vspFileWrapperFd *wfd;

    signal(SIGCHLD, SIG_IGN);
    wfd = wrapperNew(&fd, "NAME", 0);
    g_assert_cmpuint(wrapperFeed(fd, MIB), ==, MIB);
    vspFdClose(&fd);
    wrapperAssertClosed(wfd);
    vspFileWrapperFdFree(wfd);

    wfd = wrapperNew(&full, "NAME", 0);
    wrapperFeed(full, MIB);
    vspFdClose(&full);
    wrapperAssertFailed(wfd, VSP_ERROR_NO_SPACE, NULL);
    vspFileWrapperFdFree(wfd);
    assertNotWrapped("/bin/false", VSP_ERROR_HELPER_DIED, "after 0 bytes");
}

static void
testSigchldIgnored(void)
{
    vspTestInChild(withSigchldIgnored, NULL);
}

static int
compareText(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static char *
listDescriptorsOf(pid_t pid)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/fd", (int)pid);
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    const char *name;

    g_assert_nonnull(dir);
    while ((name = g_dir_read_name(dir)))
        g_ptr_array_add(names, g_strdup(name));
    g_ptr_array_sort(names, compareText);
    g_ptr_array_add(names, NULL);
    return g_strjoinv(" ", (char **)names->pdata);
}

/* The file, the transport, stderr and the status channel: nothing else, whatever is open in the
 * caller; and no environment. */
static void
assertGiven(int flags)
{
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autofree char *path = vspTestPath(dir, "file");
    g_auto(vspFd) fd = -1;
    g_autoptr(vspFileWrapperFd) wfd = NULL;
    g_autofree char *list = NULL;
    g_autofree char *variables = NULL;
    g_autofree char *environPath = NULL;
    g_autofree char *link = NULL;
    g_autofree char *target = NULL;
    int inherited[3];
    pid_t helper;
    gsize len;

    /* Left open by others, without close-on-exec, below and above what the helper gets. */
    for (guint i = 0; i < G_N_ELEMENTS(inherited); i++) {
        g_auto(vspFd) null = vspTestOpen("/dev/null", O_RDWR);

        inherited[i] = fcntl(null, F_DUPFD, i * 100);
    }
    fd = vspTestOpen(path, flags | O_CREAT);
    wfd = wrapperNew(&fd, "NAME", 0);
    helper = wrapperFindHelper();
    list = listDescriptorsOf(helper);
    g_assert_cmpstr(list, ==, "0 1 2 3");

    link = g_strdup_printf("/proc/%d/fd/%d", (int)helper, flags == O_WRONLY ? 1 : 0);
    target = g_file_read_link(link, NULL);
    if (flags == O_WRONLY)
        g_assert_cmpstr(target, ==, path);
    environPath = g_strdup_printf("/proc/%d/environ", (int)helper);
    g_assert_true(g_file_get_contents(environPath, &variables, &len, NULL));
    g_assert_cmpuint(len, ==, 0);

    vspFdClose(&fd);
    wrapperAssertClosed(wfd);
    for (guint i = 0; i < G_N_ELEMENTS(inherited); i++)
        vspFdClose(&inherited[i]);
}

static void
testGiven(void)
{
    assertGiven(O_WRONLY);
}

static void
givenWithoutStandard(gpointer opaque)
{
    for (int i = 0; i < 3; i++)
        close(i);
    assertGiven(O_WRONLY);
}

static void
testGivenWithoutStandard(void)
{
    vspTestInChild(givenWithoutStandard, NULL);
}

static void
onSignal(int signum)
{
}

/* One of the sets in the text of /proc/PID/status. */
static guint64
signalSet(const char *text, const char *name)
{
    const char *line = strstr(text, name);

    g_assert_nonnull(line);
    return g_ascii_strtoull(line + strlen(name), NULL, 16);
}

/* The helper starts with a clean slate, and what the caller set up stays as it was. */
static void
withSignalsSet(gpointer opaque)
{
    g_auto(vspFd) fd = vspTestOpen("/dev/null", O_WRONLY);
    struct sigaction before[NSIG];
    sigset_t blocked, now;
    vspFileWrapperFd *wfd;
    g_autofree char *path = NULL;
    g_autofree char *text = NULL;

    sigfillset(&blocked);
    sigdelset(&blocked, SIGALRM);
    sigprocmask(SIG_SETMASK, &blocked, NULL);
    sigprocmask(SIG_SETMASK, NULL, &blocked);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGUSR1, onSignal);
    for (int i = 1; i < NSIG; i++)
        sigaction(i, NULL, &before[i]);

    wfd = wrapperNew(&fd, "NAME", 0);
    path = g_strdup_printf("/proc/%d/status", (int)wrapperFindHelper());
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_assert_cmphex(signalSet(text, "SigBlk:"), ==, 0);
    /* They are EPIPE and EFBIG there. Beyond 31 the C library does what it likes. */
    g_assert_cmphex(signalSet(text, "SigIgn:") & 0x7fffffff, ==,
                    1 << (SIGPIPE - 1) | 1 << (SIGXFSZ - 1));

    g_assert_cmpuint(wrapperFeed(fd, MIB), ==, MIB);
    vspFdClose(&fd);
    wrapperAssertClosed(wfd);
    vspFileWrapperFdFree(wfd);

    sigprocmask(SIG_SETMASK, NULL, &now);
    for (int i = 1; i < NSIG; i++) {
        struct sigaction after;

        g_assert_cmpint(sigismember(&now, i), ==, sigismember(&blocked, i));
        if (sigaction(i, NULL, &after) == 0)
            g_assert_true(after.sa_handler == before[i].sa_handler);
    }
}

static void
testSignals(void)
{
    vspTestInChild(withSignalsSet, NULL);
}

/* A wrapper in a daemon that is killed in mid-transfer, with the stream's other end elsewhere. */
static void
daemonToBeKilled(gpointer opaque)
{
    int *out = opaque;
    g_auto(vspFd) fd = vspTestOpen("/dev/null", O_WRONLY);
    vspFileWrapperFd *wfd = wrapperNew(&fd, "NAME", 0);
    pid_t helper = wrapperFindHelper();
    /* QEMU lives on, and so does its copy of the stream. */
    const char *argv[] = { "sleep", "1000", NULL };
    int target = 5;
    vspChild *child = vspChildSpawn(argv, NULL, VSP_SPAWN_DETACHED, &fd, &target, 1, NULL);
    pid_t pids[2] = { helper, vspChildGetPid(child) };

    g_assert_nonnull(wfd);
    g_assert_cmpuint(wrapperFeed(fd, 10 * MIB), ==, 10 * MIB);
    g_assert_cmpint(write(*out, pids, sizeof(pids)), ==, sizeof(pids));
    pause();
}

static void
testParentKilled(void)
{
    int fds[2];
    pid_t pids[2];
    pid_t parent;
    int status;

    g_assert_cmpint(pipe2(fds, O_CLOEXEC), ==, 0);
    parent = vspTestFork(daemonToBeKilled, &fds[1]);
    g_assert_cmpint(read(fds[0], pids, sizeof(pids)), ==, sizeof(pids));
    g_assert_true(vspTestIsAlive(pids[0]));
    g_assert_cmpint(kill(parent, SIGKILL), ==, 0);
    status = vspTestWaitPid(parent);
    g_assert_true(WIFSIGNALED(status));
    vspTestWaitGone(pids[0]);
    g_assert_true(vspTestIsAlive(pids[1]));
    g_assert_cmpint(kill(pids[1], SIGKILL), ==, 0);
    vspTestWaitGone(pids[1]);
    vspFdClose(&fds[0]);
    vspFdClose(&fds[1]);
}

/* Each lack of a descriptor on the way: an error that says so, and nothing changed. */
static void
withFewDescriptors(gpointer opaque)
{
    int fd = vspTestOpen("/dev/null", O_WRONLY);
    int number = fd;
    guint failures = 0;

    for (rlim_t limit = fd + 1;; limit++) {
        struct rlimit few = { limit, 1024 };
        struct rlimit many = { 1024, 1024 };
        g_autoptr(GError) error = NULL;
        vspFileWrapperFd *wfd;
        guint before = vspTestCountDescriptors();

        g_assert_cmpint(setrlimit(RLIMIT_NOFILE, &few), ==, 0);
        wfd = vspFileWrapperFdNew(&fd, "NAME", 0, &error);
        g_assert_cmpint(setrlimit(RLIMIT_NOFILE, &many), ==, 0);
        if (wfd) {
            vspFdClose(&fd);
            wrapperAssertClosed(wfd);
            vspFileWrapperFdFree(wfd);
            break;
        }
        failures++;
        g_assert_nonnull(error);
        if (error->code == VSP_ERROR_HELPER_MISSING ||
            !strstr(error->message, "Too many open files"))
            g_error("not the reason: %s", error->message);
        g_assert_cmpint(fd, ==, number);
        g_assert_cmpuint(vspTestCountDescriptors(), ==, before);
        vspTestAssertNoChildren();
    }
    g_assert_cmpuint(failures, >, 3);
}

static void
testFewDescriptors(void)
{
    vspTestInChild(withFewDescriptors, NULL);
}

int
main(int argc, char **argv)
{
    vspTestInit(&argc, &argv);
    vspTestAdd("/wrapper-helper/missing", testMissing);
    vspTestAdd("/wrapper-helper/wrong-program", testWrongProgram);
    vspTestAdd("/wrapper-helper/other-version", testOtherVersion);
    vspTestAdd("/wrapper-helper/wrong-end", testWrongEnd);
    vspTestAdd("/wrapper-helper/killed", testKilled);
    vspTestAdd("/wrapper-helper/killed-reading", testKilledReading);
    vspTestAdd("/wrapper-helper/status-taken", testStatusTaken);
    vspTestAdd("/wrapper-helper/sigchld-ignored", testSigchldIgnored);
    vspTestAdd("/wrapper-helper/given", testGiven);
    vspTestAdd("/wrapper-helper/given-without-standard", testGivenWithoutStandard);
    vspTestAdd("/wrapper-helper/signals", testSignals);
    vspTestAdd("/wrapper-helper/parent-killed", testParentKilled);
    vspTestAdd("/wrapper-helper/few-descriptors", testFewDescriptors);
    return vspTestRun();
}
