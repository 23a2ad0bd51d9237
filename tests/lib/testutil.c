/*
 * testutil.c: what every test program needs: no trace left behind, no wait without a limit
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <glib/gstdio.h>

#include "testutil.h"

/* A number that no package gives to anybody. */
#define NOBODY 54321

typedef struct {
    void (*func)(void);
    void (*dataFunc)(gconstpointer);
    gconstpointer data;
    gpointer owned;
} Test;

static GHashTable *descriptorsAtStart;

/* Number of each open descriptor, to what it is. */
static GHashTable *
listDescriptors(void)
{
    GHashTable *table = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_autoptr(GDir) dir = g_dir_open("/proc/self/fd", 0, NULL);
    const char *name;

    g_assert_nonnull(dir);
    while ((name = g_dir_read_name(dir))) {
        g_autofree char *link = g_build_filename("/proc/self/fd", name, NULL);
        char *target = g_file_read_link(link, NULL);

        /* The one that lists them. */
        if (target && g_str_has_suffix(target, "/fd") && g_str_has_prefix(target, "/proc/")) {
            g_free(target);
            continue;
        }
        g_hash_table_insert(table, g_strdup(name), target ? target : g_strdup("?"));
    }
    return table;
}

/* How many of @now are not in @before, or are something else than there. */
static guint
reportNew(GHashTable *before, GHashTable *now)
{
    GHashTableIter iter;
    gpointer number, target;
    guint count = 0;

    g_hash_table_iter_init(&iter, now);
    while (g_hash_table_iter_next(&iter, &number, &target)) {
        if (g_strcmp0(g_hash_table_lookup(before, number), target) == 0)
            continue;
        g_printerr("descriptor %s was left open: %s\n", (char *)number, (char *)target);
        count++;
    }
    return count;
}

guint
vspTestCountDescriptors(void)
{
    g_autoptr(GHashTable) now = listDescriptors();

    return g_hash_table_size(now);
}

static guint
limitSeconds(void)
{
    const char *text = g_getenv("VSPTEST_LIMIT");
    int value = text ? atoi(text) : 0;

    return value > 0 ? (guint)value : VSP_TEST_LIMIT_SECONDS;
}

gint64
vspTestDeadline(void)
{
    return g_get_monotonic_time() + (gint64)limitSeconds() * G_USEC_PER_SEC;
}

static void
onAlarm(int signum)
{
    static const char text[] = "# the test did not end within its limit\n";

    (void)!write(STDERR_FILENO, text, sizeof(text) - 1);
    signal(SIGABRT, SIG_DFL);
    abort();
}

void
vspTestInit(int *argc, char ***argv)
{
    signal(SIGPIPE, SIG_IGN);
    signal(SIGALRM, onAlarm);
    g_test_init(argc, argv, NULL);
    descriptorsAtStart = listDescriptors();
}

int
vspTestRun(void)
{
    int rc = g_test_run();
    g_autoptr(GHashTable) now = listDescriptors();

    if (reportNew(descriptorsAtStart, now) > 0)
        rc = 1;
    g_hash_table_unref(descriptorsAtStart);
    return rc;
}

static void
runTest(gconstpointer opaque)
{
    const Test *test = opaque;
    g_autoptr(GHashTable) before = listDescriptors();
    g_autoptr(GHashTable) after = NULL;

    alarm(limitSeconds());
    if (test->func)
        test->func();
    else
        test->dataFunc(test->data);
    vspTestAssertNoChildren();
    alarm(0);
    after = listDescriptors();
    g_assert_cmpuint(reportNew(before, after), ==, 0);
    g_assert_cmpuint(g_hash_table_size(after), ==, g_hash_table_size(before));
}

static void
freeTest(gpointer opaque)
{
    Test *test = opaque;

    g_free(test->owned);
    g_free(test);
}

static void
addTest(const char *path, const Test *test)
{
    g_test_add_data_func_full(path, g_memdup2(test, sizeof(*test)), runTest, freeTest);
}

void
vspTestAdd(const char *path, void (*func)(void))
{
    addTest(path, &(Test){ .func = func });
}

void
vspTestAddData(const char *path, gconstpointer data, void (*func)(gconstpointer))
{
    addTest(path, &(Test){ .dataFunc = func, .data = data });
}

void
vspTestSkip(const char *reason)
{
    if (!g_getenv("CI")) {
        g_test_skip(reason);
        return;
    }
    g_test_message("may not be skipped here: %s", reason);
    g_test_fail();
}

void
vspTestAddOwned(const char *path, gpointer data, void (*func)(gconstpointer))
{
    addTest(path, &(Test){ .dataFunc = func, .data = data, .owned = data });
}

guint
vspTestRounds(guint count)
{
    return g_getenv("VSPTEST_SLOW") ? MAX(count / 8, 2) : count;
}

gboolean
vspTestLeaveOut(void)
{
    static guint calls;

    /* A prime: no loop within another has that period. */
    return g_getenv("VSPTEST_SLOW") && calls++ % 7 != 0;
}

void
vspTestWaitFor(gboolean (*condition)(gpointer), gpointer opaque, const char *what)
{
    gint64 deadline = vspTestDeadline();

    while (!condition(opaque)) {
        if (g_get_monotonic_time() > deadline)
            g_error("%s: not within the limit", what);
        g_usleep(1000);
    }
}

typedef struct {
    pid_t pid;
    int status;
} Waited;

static gboolean
hasEnded(gpointer opaque)
{
    Waited *waited = opaque;
    pid_t got = waitpid(waited->pid, &waited->status, WNOHANG);

    g_assert_true(got >= 0 || errno == EINTR);
    return got == waited->pid;
}

int
vspTestWaitPid(pid_t pid)
{
    Waited waited = { .pid = pid };

    vspTestWaitFor(hasEnded, &waited, "the end of a child");
    return waited.status;
}

gboolean
vspTestIsAlive(pid_t pid)
{
    g_autofree char *tasks = g_strdup_printf("/proc/%d/task", (int)pid);
    g_autoptr(GDir) dir = g_dir_open(tasks, 0, NULL);
    const char *name;

    /* Each thread: the first may be a zombie while others hang in the kernel. */
    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *path = g_build_filename(tasks, name, "stat", NULL);
        g_autofree char *text = NULL;
        const char *end;

        /* The program's name, in brackets, may hold anything. */
        if (g_file_get_contents(path, &text, NULL, NULL) && (end = strrchr(text, ')')) &&
            strlen(end) > 2 && end[2] != 'Z' && end[2] != 'X')
            return TRUE;
    }
    return FALSE;
}

static gboolean
isGone(gpointer opaque)
{
    return !vspTestIsAlive(GPOINTER_TO_INT(opaque));
}

void
vspTestWaitGone(pid_t pid)
{
    vspTestWaitFor(isGone, GINT_TO_POINTER(pid), "the end of a process");
}

static gboolean
hasNoChildren(gpointer opaque)
{
    siginfo_t info = { 0 };

    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD;
}

void
vspTestAssertNoChildren(void)
{
    vspTestWaitFor(hasNoChildren, NULL, "children to be reaped");
}

static int childErrors = -1;

static void
printToChildErrors(const char *text)
{
    (void)!write(childErrors, text, strlen(text));
}

pid_t
vspTestFork(void (*func)(gpointer), gpointer opaque)
{
    pid_t parent = getpid();
    pid_t pid = fork();

    g_assert_cmpint(pid, >=, 0);
    if (pid > 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    alarm(limitSeconds());
    /* @func may do with 2 what it likes: failed assertions are told all the same. */
    childErrors = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 200);
    g_set_printerr_handler(printToChildErrors);
    func(opaque);
    _exit(0);
}

void
vspTestInChild(void (*func)(gpointer), gpointer opaque)
{
    int status = vspTestWaitPid(vspTestFork(func, opaque));

    if (WIFSIGNALED(status))
        g_error("the forked part of the test was killed by signal %d", WTERMSIG(status));
    g_assert_cmpint(WEXITSTATUS(status), ==, 0);
}

void
vspTestBecomeNobody(void)
{
    g_assert_cmpint(setgroups(0, NULL), ==, 0);
    g_assert_cmpint(setresgid(NOBODY, NOBODY, NOBODY), ==, 0);
    g_assert_cmpint(setresuid(NOBODY, NOBODY, NOBODY), ==, 0);
}

char *
vspTestDirectory(void)
{
    /* On a disk: where /tmp is memory, half of what is tested would not happen there. */
    g_autofree char *path = g_strdup("/var/tmp/vsptest-XXXXXX");

    g_assert_nonnull(g_mkdtemp_full(path, 0755));
    return g_steal_pointer(&path);
}

void
vspTestRemove(const char *directory)
{
    g_autoptr(GDir) dir = g_dir_open(directory, 0, NULL);
    const char *name;

    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *path = g_build_filename(directory, name, NULL);

        if (g_file_test(path, G_FILE_TEST_IS_DIR) && !g_file_test(path, G_FILE_TEST_IS_SYMLINK))
            vspTestRemove(path);
        else
            g_unlink(path);
    }
    g_assert_cmpint(g_rmdir(directory), ==, 0);
}

void
vspTestDirClear(vspTestDir dir)
{
    vspTestRemove(dir);
    g_free(dir);
}

char *
vspTestPath(const char *dir, const char *name)
{
    return g_build_filename(dir, name, NULL);
}

int
vspTestOpen(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0644);

    if (fd < 0)
        g_error("cannot open %s: %s", path, g_strerror(errno));
    return fd;
}
