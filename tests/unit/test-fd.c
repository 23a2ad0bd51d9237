/*
 * test-fd.c: one owner for each descriptor, and no number left behind
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "testutil.h"
#include "vspfd.h"

static int
openNull(void)
{
    return vspTestOpen("/dev/null", O_RDWR);
}

static gboolean
isOpen(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

static gboolean
isCloseOnExec(int fd)
{
    return fcntl(fd, F_GETFD) & FD_CLOEXEC;
}

static void
testClose(void)
{
    int fd = openNull();
    int number = fd;

    errno = ENOSPC;
    vspFdClose(&fd);
    g_assert_cmpint(errno, ==, ENOSPC);
    g_assert_cmpint(fd, ==, -1);
    g_assert_false(isOpen(number));

    errno = ENOSPC;
    vspFdClose(&fd);
    g_assert_cmpint(errno, ==, ENOSPC);

    /* A failing close changes errno no more than one that works. */
    fd = number;
    vspFdClose(&fd);
    g_assert_cmpint(errno, ==, ENOSPC);
    g_assert_cmpint(fd, ==, -1);
}

static void
testCloseChecked(void)
{
    int fd = openNull();
    int number = fd;

    g_assert_cmpint(vspFdCloseChecked(&fd), ==, 0);
    g_assert_cmpint(fd, ==, -1);
    g_assert_false(isOpen(number));
    g_assert_cmpint(vspFdCloseChecked(&fd), ==, 0);

    fd = number;
    g_assert_cmpint(vspFdCloseChecked(&fd), ==, -1);
    g_assert_cmpint(errno, ==, EBADF);
    g_assert_cmpint(fd, ==, -1);
}

static void
testScope(void)
{
    int number;

    {
        g_auto(vspFd) fd = openNull();

        number = fd;
        g_assert_true(isOpen(number));
    }
    g_assert_false(isOpen(number));
}

static void
testSteal(void)
{
    g_auto(vspFd) taken = -1;

    {
        g_auto(vspFd) fd = openNull();

        taken = vspFdSteal(&fd);
        g_assert_cmpint(fd, ==, -1);
    }
    g_assert_true(isOpen(taken));
}

static void
dupWithoutStandard(gpointer opaque)
{
    int fd = openNull();
    int copy;

    for (int i = 0; i < 3; i++)
        close(i);
    copy = vspFdDup(fd);
    g_assert_cmpint(copy, >, 2);
    g_assert_true(isCloseOnExec(copy));
}

static void
testDup(void)
{
    vspTestInChild(dupWithoutStandard, NULL);
    g_assert_cmpint(vspFdDup(-1), ==, -1);
    g_assert_cmpint(errno, ==, EBADF);
}

static void
testNonBlocking(void)
{
    int fds[2];
    char byte;

    g_assert_cmpint(pipe2(fds, O_CLOEXEC), ==, 0);
    g_assert_cmpint(vspFdSetNonBlocking(fds[0], TRUE), ==, 0);
    g_assert_cmpint(read(fds[0], &byte, 1), ==, -1);
    g_assert_cmpint(errno, ==, EAGAIN);
    g_assert_cmpint(vspFdSetNonBlocking(fds[0], FALSE), ==, 0);
    g_assert_false(fcntl(fds[0], F_GETFL) & O_NONBLOCK);
    vspFdClose(&fds[0]);
    vspFdClose(&fds[1]);
    g_assert_cmpint(vspFdSetNonBlocking(-1, TRUE), ==, -1);
}

typedef struct {
    int keep[6];
    gsize count;
} Keep;

/* With 0 to 19 open, exactly 0 to 2 and those to keep are left. */
static void
closeOthers(gpointer opaque)
{
    const Keep *keep = opaque;

    for (int i = 0; i < 20; i++) {
        if (!isOpen(i))
            g_assert_cmpint(dup2(0, i), ==, i);
    }
    vspFdCloseOthers(keep->keep, keep->count);
    for (int i = 0; i < 40; i++) {
        gboolean kept = i < 3;

        for (gsize k = 0; k < keep->count; k++)
            kept = kept || keep->keep[k] == i;
        g_assert_cmpint(isOpen(i), ==, kept && i < 20);
    }
}

static void
testCloseOthers(void)
{
    static const Keep rows[] = {
        { { 0 }, 0 },         { { -1, -1 }, 2 },      { { 3 }, 1 },       { { 19 }, 1 },
        { { 7, 5 }, 2 },      { { 5, 7, 5 }, 3 },     { { 3, 4, 5 }, 3 }, { { 1, 0, 2 }, 3 },
        { { 12, -1, 2 }, 3 }, { { 9, 9, 3, 18 }, 4 }, { { 500 }, 1 },     { { G_MAXINT, 6 }, 2 },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++)
        vspTestInChild(closeOthers, (gpointer)&rows[i]);
}

int
main(int argc, char **argv)
{
    vspTestInit(&argc, &argv);
    vspTestAdd("/fd/close", testClose);
    vspTestAdd("/fd/close-checked", testCloseChecked);
    vspTestAdd("/fd/scope", testScope);
    vspTestAdd("/fd/steal", testSteal);
    vspTestAdd("/fd/dup", testDup);
    vspTestAdd("/fd/non-blocking", testNonBlocking);
    vspTestAdd("/fd/close-others", testCloseOthers);
    return vspTestRun();
}
