/*
 * test-helperpath.c: which helper is run, and what is said when there is none
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <glib/gstdio.h>
#include <vmspool/vsp-error.h>

#include "testutil.h"
#include "vspfd.h"
#include "vsphelperpath.h"
#include "vspspawn.h"

static void
assertMissing(const char *override, const char *words)
{
    g_autoptr(GError) error = NULL;

    g_assert_null(vspHelperPathFind(override, &error));
    g_assert_error(error, VSP_ERROR, VSP_ERROR_HELPER_MISSING);
    g_assert_nonnull(strstr(error->message, words));
}

static void
assertFound(const char *override, const char *path)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *found = vspHelperPathFind(override, &error);

    g_assert_no_error(error);
    g_assert_cmpstr(found, ==, path);
}

static void
testOverride(void)
{
    g_setenv("VMSPOOL_IOHELPER", "/bin/false", TRUE);
    assertFound("/bin/true", "/bin/true");
    /* Only that: who names one does not want another. */
    assertMissing("/nonexistent/helper", "'/nonexistent/helper'");
    assertMissing("relative/helper", "'relative/helper' is not absolute");
    assertMissing("", "not absolute");
}

static void
testNotExecutable(void)
{
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autofree char *path = vspTestPath(dir, "helper");

    g_assert_true(g_file_set_contents(path, "", 0, NULL));
    assertMissing(path, path);
    g_assert_cmpint(g_chmod(path, 0755), ==, 0);
    assertFound(path, path);
}

static void
testVariable(void)
{
    g_setenv("VMSPOOL_IOHELPER", "/bin/true", TRUE);
    assertFound(NULL, "/bin/true");
    g_setenv("VMSPOOL_IOHELPER", "/nonexistent/helper", TRUE);
    assertMissing(NULL, "'/nonexistent/helper'");
    g_setenv("VMSPOOL_IOHELPER", "bin/true", TRUE);
    assertMissing(NULL, "not absolute");
}

/* Each path that was tried is told, unless one of them is there. */
static void
testSearch(void)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *found = NULL;

    g_unsetenv("VMSPOOL_IOHELPER");
    found = vspHelperPathFind(NULL, &error);
    if (found) {
        g_assert_no_error(error);
        g_assert_true(g_path_is_absolute(found));
        g_assert_cmpint(access(found, X_OK), ==, 0);
        return;
    }
    g_assert_error(error, VSP_ERROR, VSP_ERROR_HELPER_MISSING);
    g_assert_nonnull(strstr(error->message, "/iohelper/vmspool_iohelper', '/"));
}

/* What this program does when it is started as a set-uid one. */
static int
printFound(void)
{
    g_autofree char *found = vspHelperPathFind(NULL, NULL);

    printf("found %s\n", found ? found : "none");
    /* Under a sanitizer a set-uid program does not get any further: it can't look for leaks. */
    fflush(stdout);
    return 0;
}

/* Who may set the environment of a set-uid program may not choose what it runs. */
static void
testSetUid(void)
{
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autofree char *path = vspTestPath(dir, "program");
    g_autofree char *self = NULL;
    gsize len;
    char *argv[] = { path, (char *)"--print-found", NULL };
    /* The leak sanitizer can't look into a set-uid process, and would fail it for that. */
    char *environment[] = { (char *)"VMSPOOL_IOHELPER=/bin/true",
                            (char *)"ASAN_OPTIONS=detect_leaks=0", NULL };
    struct statvfs fs;

    g_assert_cmpint(statvfs(dir, &fs), ==, 0);
    if (geteuid() != 0 || (fs.f_flag & ST_NOSUID)) {
        vspTestSkip("needs root, and a folder where set-uid programs work");
        return;
    }
    g_assert_true(g_file_get_contents("/proc/self/exe", &self, &len, NULL));
    g_assert_true(g_file_set_contents(path, self, len, NULL));

    for (gboolean setUid = FALSE; setUid <= TRUE; setUid++) {
        g_autofree char *out = NULL;
        g_autoptr(GError) error = NULL;

        if (setUid)
            g_assert_cmpint(chown(path, 54321, -1), ==, 0);
        g_assert_cmpint(g_chmod(path, setUid ? 04755 : 0755), ==, 0);
        g_spawn_sync(NULL, argv, environment, 0, NULL, NULL, &out, NULL, NULL, &error);
        g_assert_no_error(error);
        g_assert_true(g_str_has_prefix(out, "found "));
        g_assert_cmpint(g_str_equal(out, "found /bin/true\n"), ==, !setUid);
    }
}

int
main(int argc, char **argv)
{
    if (argc == 2 && g_str_equal(argv[1], "--print-found"))
        return printFound();
    vspTestInit(&argc, &argv);
    vspTestAdd("/helper-path/override", testOverride);
    vspTestAdd("/helper-path/not-executable", testNotExecutable);
    vspTestAdd("/helper-path/variable", testVariable);
    vspTestAdd("/helper-path/search", testSearch);
    vspTestAdd("/helper-path/set-uid", testSetUid);
    return vspTestRun();
}
