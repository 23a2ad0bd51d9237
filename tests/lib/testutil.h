/*
 * testutil.h: what every test program needs: no trace left behind, no wait without a limit
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_TESTUTIL_H
#define VSP_TESTUTIL_H

#include <glib.h>
#include <sys/types.h>

/* Generous, because a machine under load is no error; what hangs is found all the same. The
 * variable VSPTEST_LIMIT (seconds) replaces it. */
#define VSP_TEST_LIMIT_SECONDS 60

/* g_test_init(), for main() to begin with. Ignores SIGPIPE, as a daemon does. */
void vspTestInit(int *argc, char ***argv);

/* g_test_run(), and the descriptors that are open afterwards must be those that were open at
 * vspTestInit(). */
int vspTestRun(void);

/* Registers a test. It has VSP_TEST_LIMIT_SECONDS, and afterwards the descriptors must be as before
 * and no child may be left, neither running nor as a zombie. */
void vspTestAdd(const char *path, void (*func)(void));
void vspTestAddData(const char *path, gconstpointer data, void (*func)(gconstpointer));

/* The same with @data of g_malloc(), which it takes. */
void vspTestAddOwned(const char *path, gpointer data, void (*func)(gconstpointer));

/* Ends the current test as skipped; where CI is set in the environment as failed. To be followed by
 * return. */
void vspTestSkip(const char *reason);

/* @count, or less of it where everything is slow: under a sanitizer. */
guint vspTestRounds(guint count);

/* Called for each of many combinations: TRUE for those to leave out, which are none elsewhere. */
gboolean vspTestLeaveOut(void);

/* Microseconds, for vspPollOne() and vspChildWait(): now and the limit. */
gint64 vspTestDeadline(void);

/* Calls @condition until it is true; fails the test at the limit. */
void vspTestWaitFor(gboolean (*condition)(gpointer), gpointer opaque, const char *what);

/* The wait status of a child, which has to end within the limit. */
int vspTestWaitPid(pid_t pid);

/* Does such a process exist, other than as a zombie? */
gboolean vspTestIsAlive(pid_t pid);
void vspTestWaitGone(pid_t pid);

/* No child at all is left of this process; waits for those that are being reaped. */
void vspTestAssertNoChildren(void);

/* Runs @func in a forked child, for what can't be undone: other user, limits, closed descriptors.
 * An assertion that fails there fails the test. */
void vspTestInChild(void (*func)(gpointer), gpointer opaque);

/* Like it, without waiting. */
pid_t vspTestFork(void (*func)(gpointer), gpointer opaque);

/* Gives up root for an unknown user without any capability. */
void vspTestBecomeNobody(void);

/* Number of open descriptors. */
guint vspTestCountDescriptors(void);

/* A new directory that others may enter; vspTestRemove() removes it with what is in it. Both free
 * nothing of the caller's but what they return. */
char *vspTestDirectory(void);
void vspTestRemove(const char *directory);

/* The same with a scope: g_auto(vspTestDir) dir = vspTestDirectory(); */
typedef char *vspTestDir;
void vspTestDirClear(vspTestDir dir);
G_DEFINE_AUTO_CLEANUP_FREE_FUNC(vspTestDir, vspTestDirClear, NULL)

/* @name in @dir, owned by @dir's test: g_autofree it. */
char *vspTestPath(const char *dir, const char *name);

/* Opens, and never fails. */
int vspTestOpen(const char *path, int flags);

#endif /* VSP_TESTUTIL_H */
