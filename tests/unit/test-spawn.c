/*
 * test-spawn.c: children of a program that does what it likes with signals and descriptors
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <glib/gstdio.h>
#include <vmspool/vsp-error.h>

#include "testutil.h"
#include "vspfd.h"
#include "vspspawn.h"

/* Of /bin/sh. */
static vspChild *
spawnScript(const char *script, const int *sources, const int *targets, gsize count)
{
    const char *argv[] = { "/bin/sh", "-c", script, NULL };
    g_autoptr(GError) error = NULL;
    vspChild *child = vspChildSpawn(argv, NULL, 0, sources, targets, count, &error);

    g_assert_no_error(error);
    g_assert_nonnull(child);
    return child;
}

static int
waitExited(vspChild *child)
{
    int status = 0;

    g_assert_cmpint(vspChildWait(child, vspTestDeadline(), &status), ==, VSP_CHILD_EXITED);
    return status;
}

static void
assertNotStarted(const char *path, vspError code, int errnum)
{
    const char *argv[] = { path, NULL };
    g_autoptr(GError) error = NULL;

    g_assert_null(vspChildSpawn(argv, NULL, 0, NULL, NULL, 0, &error));
    g_assert_error(error, VSP_ERROR, (int)code);
    g_assert_nonnull(strstr(error->message, path));
    g_assert_nonnull(strstr(error->message, g_strerror(errnum)));

    g_clear_error(&error);
    g_assert_null(vspChildSpawn(argv, NULL, VSP_SPAWN_DETACHED, NULL, NULL, 0, &error));
    g_assert_cmpint(error->domain, ==, VSP_ERROR);
    g_assert_nonnull(strstr(error->message, path));
    g_assert_nonnull(strstr(error->message, g_strerror(errnum)));
}

/* Known at once, with path and reason, and nothing is left behind. */
static void
testExecFails(void)
{
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autofree char *plain = vspTestPath(dir, "plain");
    g_autofree char *badShell = vspTestPath(dir, "bad-shell");

    g_assert_true(g_file_set_contents(plain, "text\n", -1, NULL));
    g_assert_true(g_file_set_contents(badShell, "#!/nonexistent/shell\n", -1, NULL));
    g_assert_cmpint(g_chmod(badShell, 0755), ==, 0);

    assertNotStarted("/nonexistent/program", VSP_ERROR_NOT_FOUND, ENOENT);
    assertNotStarted("no-such-program-in-the-path", VSP_ERROR_NOT_FOUND, ENOENT);
    assertNotStarted(plain, VSP_ERROR_ACCESS, EACCES);
    assertNotStarted(dir, VSP_ERROR_ACCESS, EACCES);
    assertNotStarted(badShell, VSP_ERROR_FAILED, ENOENT);
}

static void
execFailsWhileIgnored(gpointer opaque)
{
    signal(SIGCHLD, SIG_IGN);
    assertNotStarted("/nonexistent/program", VSP_ERROR_NOT_FOUND, ENOENT);
}

static void
noDescriptors(gpointer opaque)
{
    const char *argv[] = { "/bin/true", NULL };
    struct rlimit limit = { 3, 3 };
    g_autoptr(GError) error = NULL;

    g_assert_cmpint(setrlimit(RLIMIT_NOFILE, &limit), ==, 0);
    g_assert_null(vspChildSpawn(argv, NULL, 0, NULL, NULL, 0, &error));
    g_assert_error(error, VSP_ERROR, VSP_ERROR_IO);
    g_assert_nonnull(strstr(error->message, g_strerror(EMFILE)));
}

static void
testSpawnFails(void)
{
    vspTestInChild(execFailsWhileIgnored, NULL);
    vspTestInChild(noDescriptors, NULL);
}

static void
testStatus(void)
{
    static const struct {
        const char *script;
        const char *text;
    } rows[] = {
        { "exit 0", "exited with status 0" },
        { "exit 3", "exited with status 3" },
        { "exit 255", "exited with status 255" },
        { "kill -KILL $$", "was killed by signal 9 (Killed)" },
        { "kill -TERM $$", "was killed by signal 15 (Terminated)" },
        { "ulimit -c 0; kill -SEGV $$", "was killed by signal 11 (Segmentation fault)" },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(vspChild) child = spawnScript(rows[i].script, NULL, NULL, 0);
        g_autofree char *text = vspChildStatusText(waitExited(child));
        int again = -1;

        g_assert_cmpstr(text, ==, rows[i].text);
        g_assert_cmpint(vspChildWait(child, 0, &again), ==, VSP_CHILD_EXITED);
        g_assert_cmpint(again, ==, waitExited(child));
        vspChildKill(child, SIGKILL);
    }
}

static void
testDeadline(void)
{
    int fds[2];
    int target = STDIN_FILENO;

    g_assert_cmpint(pipe2(fds, O_CLOEXEC), ==, 0);
    {
        g_autoptr(vspChild) child = spawnScript("read x; exit 5", &fds[0], &target, 1);

        g_assert_cmpint(vspChildWait(child, 0, NULL), ==, VSP_CHILD_RUNNING);
        g_assert_cmpint(vspChildWait(child, g_get_monotonic_time() + 1000, NULL), ==,
                        VSP_CHILD_RUNNING);
        g_assert_true(vspTestIsAlive(vspChildGetPid(child)));
        vspFdClose(&fds[1]);
        g_assert_cmpint(WEXITSTATUS(waitExited(child)), ==, 5);
    }
    vspFdClose(&fds[0]);
}

static void
testKill(void)
{
    g_autoptr(vspChild) child = spawnScript("exec sleep 1000", NULL, NULL, 0);

    vspChildKill(child, SIGTERM);
    g_assert_cmpint(WTERMSIG(waitExited(child)), ==, SIGTERM);
}

static void
testStderr(void)
{
    static const struct {
        const char *script;
        const char *text;
    } rows[] = {
        { ":", "" },
        { "echo reason >&2", "reason" },
        { "printf '\\n one \\n\\ttwo\\033[31m\\n\\n' >&2", "one ; two[31m" },
        { "printf 'a\\000b\\377' >&2", "a\xef\xbf\xbd"
                                       "b\xef\xbf\xbd" },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(vspChild) child = spawnScript(rows[i].script, NULL, NULL, 0);
        g_autofree char *text = NULL;
        g_autofree char *again = NULL;

        waitExited(child);
        text = vspChildGetStderr(child);
        again = vspChildGetStderr(child);
        g_assert_cmpstr(text, ==, rows[i].text);
        g_assert_cmpstr(again, ==, text);
    }
}

/* Nobody reads: the child must end all the same, and only the beginning is kept. */
static void
testStderrFlood(void)
{
    g_autoptr(vspChild) child = spawnScript(
        "echo first >&2; head -c 1048576 /dev/zero | tr '\\0' x >&2; exit 7", NULL, NULL, 0);
    g_autofree char *text = NULL;

    g_assert_cmpint(WEXITSTATUS(waitExited(child)), ==, 7);
    text = vspChildGetStderr(child);
    g_assert_true(g_str_has_prefix(text, "first; xxx"));
    g_assert_cmpuint(strlen(text), >, 500);
    g_assert_cmpuint(strlen(text), <=, 1100);
}

/* What this program does when it is started as such a child: tells @fd what it has where. */
static int
listDescriptors(int fd)
{
    /* Above are those that the program which started the test may have left. */
    for (int i = 0; i < 10; i++) {
        g_autofree char *link = g_strdup_printf("/proc/self/fd/%d", i);
        g_autofree char *target = g_file_read_link(link, NULL);

        if (target)
            dprintf(fd, "%d %s\n", i, target);
    }
    return 0;
}

static vspChild *
spawnLister(
    const char *word, vspSpawnFlags flags, const int *sources, const int *targets, gsize count)
{
    const char *argv[] = { "/proc/self/exe", word, NULL };
    g_autoptr(GError) error = NULL;
    vspChild *child = vspChildSpawn(argv, NULL, flags, sources, targets, count, &error);

    g_assert_no_error(error);
    g_assert_nonnull(child);
    return child;
}

/* With nothing mapped the child reads nothing and writes nowhere. */
static void
testNoStandardStreams(void)
{
    g_autoptr(vspChild) child = spawnLister("--list-to-2", 0, NULL, NULL, 0);
    g_autofree char *text = NULL;

    waitExited(child);
    text = vspChildGetStderr(child);
    g_assert_true(g_str_has_prefix(text, "0 /dev/null; 1 /dev/null; 2 pipe:"));
}

static void
testEnvironment(void)
{
    const char *argv[] = { "/usr/bin/env", NULL };
    const char *const environment[] = { "ONE=1", "TWO=2", NULL };
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autofree char *path = vspTestPath(dir, "out");
    g_auto(vspFd) fd = vspTestOpen(path, O_WRONLY | O_CREAT);
    int target = STDOUT_FILENO;
    g_autoptr(GError) error = NULL;
    g_autoptr(vspChild) child = vspChildSpawn(argv, environment, 0, &fd, &target, 1, &error);
    g_autofree char *text = NULL;

    g_assert_no_error(error);
    waitExited(child);
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_assert_cmpstr(text, ==, "ONE=1\nTWO=2\n");
}

typedef struct {
    int sources[3];       /* where the files in, out and status are, for targets 0, 1 and 3 */
    gboolean closeOthers; /* of 0 to 2 */
    vspSpawnFlags flags;
} Numbers;

static const char *const files[] = { "in", "out", "status" };

/* Puts the files at the numbers asked for, starts a child, and asks it what it has where. */
static void
spawnFromNumbers(gpointer opaque)
{
    const Numbers *numbers = opaque;
    const int targets[] = { 0, 1, 3 };
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autofree char *text = NULL;
    g_autofree char *expected = NULL;
    int opened[3];
    vspChild *child;

    for (guint i = 0; i < 3; i++) {
        g_autofree char *path = vspTestPath(dir, files[i]);
        int fd = vspTestOpen(path, O_RDWR | O_CREAT);

        opened[i] = fcntl(fd, F_DUPFD_CLOEXEC, 100);
        vspFdClose(&fd);
    }
    if (numbers->closeOthers) {
        for (int i = 0; i < 3; i++)
            close(i);
    }
    for (guint i = 0; i < 3; i++) {
        g_assert_cmpint(dup3(opened[i], numbers->sources[i], O_CLOEXEC), ==, numbers->sources[i]);
        vspFdClose(&opened[i]);
    }
    child = spawnLister("--list-to-3", numbers->flags, numbers->sources, targets, 3);
    if (numbers->flags & VSP_SPAWN_DETACHED)
        g_assert_true(vspChildWait(child, vspTestDeadline(), NULL) == VSP_CHILD_LOST);
    else
        g_assert_cmpint(waitExited(child), ==, 0);
    vspChildFree(child);

    /* Ours are as they were. */
    for (guint i = 0; i < 3; i++)
        g_assert_true(fcntl(numbers->sources[i], F_GETFD) & FD_CLOEXEC);

    {
        g_autofree char *path = vspTestPath(dir, "status");
        g_auto(GStrv) lines = NULL;

        g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
        lines = g_strsplit(text, "\n", -1);
        g_assert_cmpuint(g_strv_length(lines), ==, 5);
        expected = g_strdup_printf("0 %s/in", dir);
        g_assert_cmpstr(lines[0], ==, expected);
        g_free(expected);
        expected = g_strdup_printf("1 %s/out", dir);
        g_assert_cmpstr(lines[1], ==, expected);
        g_assert_true(g_str_has_prefix(lines[2], "2 pipe:"));
        g_free(expected);
        expected = g_strdup_printf("3 %s/status", dir);
        g_assert_cmpstr(lines[3], ==, expected);
    }
}

/* Sources that are numbered like the targets of others, in each order there is. */
static void
spawnFromAllNumbers(vspSpawnFlags flags)
{
    for (int a = 0; a < 6; a++) {
        for (int b = 0; b < 6; b++) {
            for (int c = 0; c < 6; c++) {
                Numbers numbers = { { a, b, c }, FALSE, flags };

                if (a != b && b != c && a != c)
                    vspTestInChild(spawnFromNumbers, &numbers);
            }
        }
    }
}

static void
testNumbers(void)
{
    spawnFromAllNumbers(0);
}

static void
testNumbersDetached(void)
{
    spawnFromAllNumbers(VSP_SPAWN_DETACHED);
}

/* A daemon may run without 0, 1 and 2: what we open lands there. */
static void
testWithoutStandard(void)
{
    static const int rows[][3] = {
        { 3, 4, 5 }, { 0, 3, 4 }, { 1, 2, 3 }, { 3, 1, 0 },
        { 4, 3, 2 }, { 2, 0, 1 }, { 0, 1, 2 }, { 7, 8, 9 },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        Numbers numbers = { { rows[i][0], rows[i][1], rows[i][2] }, TRUE, 0 };

        vspTestInChild(spawnFromNumbers, &numbers);
        numbers.flags = VSP_SPAWN_DETACHED;
        vspTestInChild(spawnFromNumbers, &numbers);
    }
}

static void
spawnWhileIgnored(gpointer opaque)
{
    vspChild *child;
    int status = -1;

    signal(SIGCHLD, SIG_IGN);
    child = spawnScript("exit 3", NULL, NULL, 0);
    g_assert_cmpint(vspChildWait(child, vspTestDeadline(), &status), ==, VSP_CHILD_LOST);
    g_assert_cmpint(vspChildWait(child, 0, NULL), ==, VSP_CHILD_LOST);
    /* The number may be another process by now: nothing is sent. */
    vspChildKill(child, SIGKILL);
    vspChildFree(child);
}

static void
testSigchldIgnored(void)
{
    vspTestInChild(spawnWhileIgnored, NULL);
}

static void
testStatusTaken(void)
{
    g_autoptr(vspChild) child = spawnScript("exit 3", NULL, NULL, 0);

    /* An application that reaps whatever ends. */
    g_assert_cmpint(waitpid(-1, NULL, 0), ==, vspChildGetPid(child));
    g_assert_cmpint(vspChildWait(child, vspTestDeadline(), NULL), ==, VSP_CHILD_LOST);
}

/* Freed while it runs, it is reaped when it ends: vspTestAdd() looks for zombies. */
static void
testFreeRunning(void)
{
    int fds[2];
    int target = STDIN_FILENO;
    pid_t pid;

    g_assert_cmpint(pipe2(fds, O_CLOEXEC), ==, 0);
    {
        g_autoptr(vspChild) child = spawnScript("read x", &fds[0], &target, 1);

        pid = vspChildGetPid(child);
    }
    g_assert_true(vspTestIsAlive(pid));
    vspFdClose(&fds[0]);
    vspFdClose(&fds[1]);
    vspTestWaitGone(pid);
    vspChildFree(NULL);
}

static gboolean
hasText(gpointer path)
{
    g_autofree char *text = NULL;

    return g_file_get_contents(path, &text, NULL, NULL) && g_str_has_suffix(text, "end\n");
}

/* What this program does when it is started detached. */
static int
describeSelf(const char *path)
{
    g_autofree char *status = NULL;
    g_autofree char *text = NULL;

    if (!g_file_get_contents("/proc/self/status", &status, NULL, NULL))
        return 1;
    text = g_strdup_printf("%sparent %d\nsession %d pid %d\nend\n", status, (int)getppid(),
                           (int)getsid(0), (int)getpid());
    return !g_file_set_contents(path, text, -1, NULL);
}

static void
spawnDetached(gpointer opaque)
{
    const char *argv[] = { "/proc/self/exe", "--describe-to", opaque, NULL };
    g_autoptr(GError) error = NULL;
    g_autofree char *text = NULL;
    g_autofree char *session = NULL;
    g_autofree char *parent = NULL;
    vspChild *child;
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    child = vspChildSpawn(argv, NULL, VSP_SPAWN_DETACHED, NULL, NULL, 0, &error);
    g_assert_no_error(error);
    session = g_strdup_printf("session %d pid %d\n", vspChildGetPid(child), vspChildGetPid(child));
    parent = g_strdup_printf("parent %d\n", (int)getpid());

    g_assert_cmpint(vspChildWait(child, vspTestDeadline(), NULL), ==, VSP_CHILD_LOST);
    vspTestWaitFor(hasText, opaque, "what the detached child writes");
    g_assert_true(g_file_get_contents(opaque, &text, NULL, NULL));
    g_assert_nonnull(strstr(text, "SigBlk:\t0000000000000000\n"));
    g_assert_nonnull(strstr(text, session));
    g_assert_null(strstr(text, parent));
    vspChildFree(child);

    /* Not a child of ours, and our mask is what it was. */
    vspTestAssertNoChildren();
    sigprocmask(SIG_SETMASK, NULL, &all);
    g_assert_true(sigismember(&all, SIGUSR1));
}

static void
testDetached(void)
{
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autofree char *path = vspTestPath(dir, "out");

    vspTestInChild(spawnDetached, path);
}

static void
testDetachedOutlives(void)
{
    const char *argv[] = { "sleep", "1000", NULL };
    g_autoptr(GError) error = NULL;
    vspChild *child = vspChildSpawn(argv, NULL, VSP_SPAWN_DETACHED, NULL, NULL, 0, &error);
    pid_t pid;

    g_assert_no_error(error);
    pid = vspChildGetPid(child);
    g_assert_cmpint(vspChildWait(child, 0, NULL), ==, VSP_CHILD_RUNNING);
    vspChildFree(child);
    g_assert_true(vspTestIsAlive(pid));
    kill(pid, SIGKILL);
    vspTestWaitGone(pid);
}

int
main(int argc, char **argv)
{
    if (argc == 2 && g_str_equal(argv[1], "--list-to-2"))
        return listDescriptors(2);
    if (argc == 2 && g_str_equal(argv[1], "--list-to-3"))
        return listDescriptors(3);
    if (argc == 3 && g_str_equal(argv[1], "--describe-to"))
        return describeSelf(argv[2]);
    vspTestInit(&argc, &argv);
    vspTestAdd("/spawn/exec-fails", testExecFails);
    vspTestAdd("/spawn/spawn-fails", testSpawnFails);
    vspTestAdd("/spawn/status", testStatus);
    vspTestAdd("/spawn/deadline", testDeadline);
    vspTestAdd("/spawn/kill", testKill);
    vspTestAdd("/spawn/stderr", testStderr);
    vspTestAdd("/spawn/stderr-flood", testStderrFlood);
    vspTestAdd("/spawn/no-standard-streams", testNoStandardStreams);
    vspTestAdd("/spawn/environment", testEnvironment);
    vspTestAdd("/spawn/numbers", testNumbers);
    vspTestAdd("/spawn/numbers-detached", testNumbersDetached);
    vspTestAdd("/spawn/without-standard", testWithoutStandard);
    vspTestAdd("/spawn/sigchld-ignored", testSigchldIgnored);
    vspTestAdd("/spawn/status-taken", testStatusTaken);
    vspTestAdd("/spawn/free-running", testFreeRunning);
    vspTestAdd("/spawn/detached", testDetached);
    vspTestAdd("/spawn/detached-outlives", testDetachedOutlives);
    return vspTestRun();
}
