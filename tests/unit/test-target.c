/*
 * test-target.c: what may be written to, how it is created, and what is removed again
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vmspool/vsp-error.h>

#include "testutil.h"
#include "vspfd.h"
#include "vspio.h"
#include "vsptarget.h"

static void
assertRefused(const char *path, gboolean overwrite, vspError code)
{
    g_autoptr(GError) error = NULL;

    g_assert_null(vspTargetNew(path, overwrite, &error));
    g_assert_error(error, VSP_ERROR, (int)code);
}

static vspTarget *
newTarget(const char *path, gboolean overwrite)
{
    g_autoptr(GError) error = NULL;
    vspTarget *target = vspTargetNew(path, overwrite, &error);

    g_assert_no_error(error);
    return target;
}

/* Opens @target and writes @text. */
static void
writeTarget(vspTarget *target, const char *text)
{
    g_autoptr(GError) error = NULL;
    g_auto(vspFd) fd = vspTargetOpen(target, &error);

    g_assert_no_error(error);
    g_assert_cmpint(fcntl(fd, F_GETFL) & O_ACCMODE, ==, O_WRONLY);
    g_assert_cmpint(fcntl(fd, F_GETFL) & O_NONBLOCK, ==, 0);
    g_assert_cmpint(vspWriteFull(fd, text, strlen(text)), ==, 0);
}

static void
assertContent(const char *path, const char *expected)
{
    g_autofree char *content = NULL;

    g_assert_true(g_file_get_contents(path, &content, NULL, NULL));
    g_assert_cmpstr(content, ==, expected);
}

static guint
countFiles(const char *folder)
{
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    guint count = 0;

    while (g_dir_read_name(dir))
        count++;
    return count;
}

/* For the owner alone, from its first byte, whatever the umask; removed if it is not committed. */
static void
testCreate(void)
{
    static const mode_t masks[] = { 0, 022, 0777 };
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autofree char *path = vspTestPath(dir, "x");

    for (gsize i = 0; i < G_N_ELEMENTS(masks); i++) {
        g_autoptr(vspTarget) target = NULL;
        mode_t mask = umask(masks[i]);
        struct stat st;

        target = newTarget(path, FALSE);
        g_assert_cmpuint(countFiles(dir), ==, 0);
        writeTarget(target, "data");
        umask(mask);
        g_assert_cmpint(stat(path, &st), ==, 0);
        g_assert_cmpint(st.st_mode & 07777, ==, 0600);
        g_clear_pointer(&target, vspTargetFree);
        g_assert_cmpuint(countFiles(dir), ==, 0);
    }
}

static void
testCommit(void)
{
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autofree char *path = vspTestPath(dir, "x");
    g_autoptr(vspTarget) target = newTarget(path, FALSE);
    g_autoptr(GError) error = NULL;

    writeTarget(target, "data");
    g_assert_cmpint(vspTargetCommit(target, &error), ==, 0);
    g_assert_no_error(error);
    g_clear_pointer(&target, vspTargetFree);
    assertContent(path, "data");
}

/* An existing empty file is used as it is, mode and all, and is empty again afterwards. */
static void
testEmpty(void)
{
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autofree char *path = vspTestPath(dir, "x");
    g_autoptr(vspTarget) target = NULL;
    struct stat before, after;

    g_assert_true(g_file_set_contents(path, "", 0, NULL));
    g_assert_cmpint(chmod(path, 0640), ==, 0);
    g_assert_cmpint(stat(path, &before), ==, 0);
    target = newTarget(path, FALSE);
    writeTarget(target, "data");
    g_clear_pointer(&target, vspTargetFree);
    g_assert_cmpint(stat(path, &after), ==, 0);
    g_assert_cmpuint(after.st_ino, ==, before.st_ino);
    g_assert_cmpint(after.st_mode, ==, before.st_mode);
    g_assert_cmpint(after.st_size, ==, 0);
}

/* Somebody filled it, or put another in its place, between the look and the opening. */
static void
testRace(void)
{
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autofree char *path = vspTestPath(dir, "x");
    g_autoptr(vspTarget) target = NULL;
    g_autoptr(GError) error = NULL;

    g_assert_true(g_file_set_contents(path, "", 0, NULL));
    target = newTarget(path, FALSE);
    g_assert_true(g_file_set_contents(path, "precious", -1, NULL));
    g_assert_cmpint(vspTargetOpen(target, &error), ==, -1);
    g_assert_nonnull(error);
    g_clear_error(&error);
    g_clear_pointer(&target, vspTargetFree);
    assertContent(path, "precious");
    g_assert_cmpint(unlink(path), ==, 0);

    target = newTarget(path, FALSE);
    g_assert_true(g_file_set_contents(path, "precious", -1, NULL));
    g_assert_cmpint(vspTargetOpen(target, &error), ==, -1);
    g_assert_error(error, VSP_ERROR, VSP_ERROR_EXISTS);
    g_clear_pointer(&target, vspTargetFree);
    assertContent(path, "precious");
    g_assert_cmpint(unlink(path), ==, 0);

    /* Ours was replaced: what is there now is not ours to remove. */
    target = newTarget(path, FALSE);
    writeTarget(target, "ours");
    g_assert_true(g_file_set_contents(path, "theirs", -1, NULL));
    g_clear_pointer(&target, vspTargetFree);
    assertContent(path, "theirs");
}

/* The old file is there until the new one takes its place, and for good if that does not come. */
static void
testReplace(void)
{
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autofree char *name = g_strnfill(255, 'n');
    g_autofree char *path = vspTestPath(dir, name);
    g_autoptr(vspTarget) target = NULL;
    g_autoptr(GError) error = NULL;
    struct stat st;

    /* Not by another name first: there is no room for a longer one. */
    g_assert_true(g_file_set_contents_full(path, "old", -1, G_FILE_SET_CONTENTS_NONE, 0644, NULL));
    assertRefused(path, FALSE, VSP_ERROR_EXISTS);
    target = newTarget(path, TRUE);
    writeTarget(target, "new");
    assertContent(path, "old");
    g_clear_pointer(&target, vspTargetFree);
    assertContent(path, "old");
    g_assert_cmpuint(countFiles(dir), ==, 1);

    target = newTarget(path, TRUE);
    writeTarget(target, "new");
    g_assert_cmpint(vspTargetCommit(target, &error), ==, 0);
    g_assert_no_error(error);
    g_clear_pointer(&target, vspTargetFree);
    assertContent(path, "new");
    g_assert_cmpuint(countFiles(dir), ==, 1);
    g_assert_cmpint(stat(path, &st), ==, 0);
    g_assert_cmpint(st.st_mode & 07777, ==, 0600);
}

static void
testRefused(void)
{
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autofree char *file = vspTestPath(dir, "file");
    g_autofree char *empty = vspTestPath(dir, "empty");
    g_autofree char *link = vspTestPath(dir, "link");
    g_autofree char *dangling = vspTestPath(dir, "dangling");
    g_autofree char *fifo = vspTestPath(dir, "fifo");
    g_autofree char *slash = g_strconcat(dir, "/", NULL);
    g_autofree char *inFile = g_strconcat(file, "/x", NULL);
    g_autofree char *nowhere = vspTestPath(dir, "no/x");

    g_assert_true(g_file_set_contents(file, "data", -1, NULL));
    g_assert_true(g_file_set_contents(empty, "", 0, NULL));
    g_assert_cmpint(symlink("empty", link), ==, 0);
    g_assert_cmpint(symlink("new", dangling), ==, 0);
    g_assert_cmpint(mkfifo(fifo, 0600), ==, 0);

    assertRefused(file, FALSE, VSP_ERROR_EXISTS);
    assertRefused(link, TRUE, VSP_ERROR_INVALID_ARGUMENT);
    assertRefused(dangling, TRUE, VSP_ERROR_INVALID_ARGUMENT);
    /* Without blocking for a reader. */
    assertRefused(fifo, TRUE, VSP_ERROR_INVALID_ARGUMENT);
    assertRefused(dir, TRUE, VSP_ERROR_INVALID_ARGUMENT);
    assertRefused(slash, TRUE, VSP_ERROR_INVALID_ARGUMENT);
    assertRefused("/dev/null", TRUE, VSP_ERROR_INVALID_ARGUMENT);
    assertRefused("", TRUE, VSP_ERROR_INVALID_ARGUMENT);
    assertRefused(".", TRUE, VSP_ERROR_INVALID_ARGUMENT);
    assertRefused("..", TRUE, VSP_ERROR_INVALID_ARGUMENT);
    assertRefused(nowhere, TRUE, VSP_ERROR_NOT_FOUND);
    assertRefused(inFile, TRUE, VSP_ERROR_NOT_FOUND);
    g_assert_cmpuint(countFiles(dir), ==, 5);
}

static void
refusedAsNobody(gpointer opaque)
{
    const char *dir = opaque;
    g_autofree char *path = vspTestPath(dir, "x");

    vspTestBecomeNobody();
    assertRefused(path, FALSE, VSP_ERROR_ACCESS);
}

/* Before anything happens to a VM, not when the file is created. */
static void
testForeignFolder(void)
{
    g_auto(vspTestDir) dir = vspTestDirectory();

    if (geteuid() != 0) {
        vspTestSkip("needs root, to become somebody else");
        return;
    }
    g_assert_cmpint(chmod(dir, 0755), ==, 0);
    vspTestInChild(refusedAsNobody, dir);
}

/* A name relative to where we are, which begins like an option, with what a terminal would act on.
 */
static void
testNames(void)
{
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autofree char *before = g_get_current_dir();
    g_autoptr(vspTarget) target = NULL;
    g_autoptr(GError) error = NULL;

    g_assert_cmpint(chdir(dir), ==, 0);
    target = newTarget("-x\n\033[2J", FALSE);
    g_assert_null(strpbrk(vspTargetGetName(target), "\n\033"));
    writeTarget(target, "data");
    /* Folders are held, not named: it does not matter where we go meanwhile. */
    g_assert_cmpint(chdir(before), ==, 0);
    g_assert_cmpint(vspTargetCommit(target, &error), ==, 0);
    g_assert_no_error(error);
    g_assert_cmpuint(countFiles(dir), ==, 1);
}

static void
testRoom(void)
{
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autofree char *path = vspTestPath(dir, "x");
    g_autoptr(vspTarget) target = newTarget(path, FALSE);
    g_autoptr(GError) error = NULL;
    guint64 room = 0;

    g_assert_cmpint(vspTargetGetRoom(target, &room, &error), ==, 0);
    g_assert_no_error(error);
    g_assert_cmpuint(room, >, 0);
}

int
main(int argc, char **argv)
{
    vspTestInit(&argc, &argv);
    vspTestAdd("/target/create", testCreate);
    vspTestAdd("/target/commit", testCommit);
    vspTestAdd("/target/empty", testEmpty);
    vspTestAdd("/target/race", testRace);
    vspTestAdd("/target/replace", testReplace);
    vspTestAdd("/target/refused", testRefused);
    vspTestAdd("/target/foreign-folder", testForeignFolder);
    vspTestAdd("/target/names", testNames);
    vspTestAdd("/target/room", testRoom);
    return vspTestRun();
}
