/*
 * test-transport.c: a pair comes out whatever the kernel refuses, and says what it got
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "testdata.h"
#include "testdeny.h"
#include "testutil.h"
#include "vspfd.h"
#include "vsptransport.h"

#define KIB 1024
#define PIPE_SIZE_USEFUL (256 * KIB)

/* One way, from the writing to the reading end, and the end is seen. */
static void
assertWorks(vspTransportPair *pair)
{
    char sent[1000];
    char got[sizeof(sent) + 1];

    g_assert_true(fcntl(pair->readEnd, F_GETFD) & FD_CLOEXEC);
    g_assert_true(fcntl(pair->writeEnd, F_GETFD) & FD_CLOEXEC);
    g_assert_false(fcntl(pair->readEnd, F_GETFL) & O_NONBLOCK);
    g_assert_false(fcntl(pair->writeEnd, F_GETFL) & O_NONBLOCK);

    vspTestFill(sent, sizeof(sent), 0);
    g_assert_cmpint(write(pair->writeEnd, sent, sizeof(sent)), ==, sizeof(sent));
    vspFdClose(&pair->writeEnd);
    g_assert_cmpint(read(pair->readEnd, got, sizeof(got)), ==, sizeof(sent));
    vspTestAssertData(got, sizeof(sent), 0);
    g_assert_cmpint(read(pair->readEnd, got, sizeof(got)), ==, 0);
    vspTransportClose(pair);
    g_assert_cmpint(pair->readEnd, ==, -1);
    g_assert_cmpint(pair->writeEnd, ==, -1);
}

static gsize
pipeMaxSize(void)
{
    g_autofree char *text = NULL;

    g_assert_true(g_file_get_contents("/proc/sys/fs/pipe-max-size", &text, NULL, NULL));
    return g_ascii_strtoull(text, NULL, 10);
}

static void
testPipe(void)
{
    g_autoptr(GError) error = NULL;
    vspTransportPair pair;

    g_assert_cmpint(vspTransportOpen(VSP_TRANSPORT_PIPE, &pair, &error), ==, 0);
    g_assert_no_error(error);
    g_assert_true(pair.kind == VSP_TRANSPORT_PIPE);
    g_assert_null(pair.fallback);
    g_assert_cmpuint(pair.asked, ==, MIN(pipeMaxSize(), 4 * KIB * KIB));
    g_assert_cmpuint(pair.granted, >=, PIPE_SIZE_USEFUL);
    g_assert_cmpint(pair.granted, ==, fcntl(pair.readEnd, F_GETPIPE_SZ));
    assertWorks(&pair);
}

/* What the kernel says it got, the doubling taken back. */
static gsize
sendBuffer(int fd)
{
    int value;
    socklen_t len = sizeof(value);

    g_assert_cmpint(getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &value, &len), ==, 0);
    return value / 2;
}

static void
assertSocket(vspTransport kind)
{
    g_autoptr(GError) error = NULL;
    vspTransportPair pair;
    struct stat st;

    g_assert_cmpint(vspTransportOpen(kind, &pair, &error), ==, 0);
    g_assert_no_error(error);
    g_assert_true(pair.kind == VSP_TRANSPORT_SOCKET);
    g_assert_null(pair.fallback);
    g_assert_cmpint(fstat(pair.readEnd, &st), ==, 0);
    g_assert_true(S_ISSOCK(st.st_mode));
    g_assert_cmpuint(pair.asked, ==, 2 * KIB * KIB);
    g_assert_cmpuint(pair.granted, ==, sendBuffer(pair.writeEnd));
    assertWorks(&pair);
}

static void
testSocket(void)
{
    assertSocket(VSP_TRANSPORT_SOCKET);
    assertSocket(VSP_TRANSPORT_AUTO);
}

/* Without CAP_NET_ADMIN the kernel clips at its limit, and that is what is told. */
static void
socketAsNobody(gpointer opaque)
{
    vspTestBecomeNobody();
    assertSocket(VSP_TRANSPORT_SOCKET);
}

static void
testSocketAsNobody(void)
{
    if (geteuid() != 0) {
        vspTestSkip("needs root, to give it up");
        return;
    }
    vspTestInChild(socketAsNobody, NULL);
}

/* A user beyond /proc/sys/fs/pipe-user-pages-soft gets pipes of a page or two, not to be enlarged.
 */
static void
pipesExhausted(gpointer opaque)
{
    struct rlimit limit = { 8192, 8192 };
    g_autoptr(GError) error = NULL;
    vspTransportPair pair;
    gsize opened = 0;
    int fds[2] = { -1, -1 };

    g_assert_cmpint(setrlimit(RLIMIT_NOFILE, &limit), ==, 0);
    vspTestBecomeNobody();
    do {
        g_assert_cmpint(pipe2(fds, O_CLOEXEC), ==, 0);
        g_assert_cmpuint(++opened, <, 4000);
    } while (fcntl(fds[0], F_GETPIPE_SZ) > 2 * getpagesize());

    g_assert_cmpuint(vspTransportEnlargePipe(fds[0]), <, PIPE_SIZE_USEFUL);

    g_assert_cmpint(vspTransportOpen(VSP_TRANSPORT_PIPE, &pair, &error), ==, 0);
    g_assert_no_error(error);
    g_assert_true(pair.kind == VSP_TRANSPORT_SOCKET);
    g_assert_nonnull(pair.fallback);
    g_assert_cmpuint(pair.asked, >=, PIPE_SIZE_USEFUL);
    g_assert_cmpuint(pair.granted, ==, sendBuffer(pair.writeEnd));
    assertWorks(&pair);
}

static void
testPipesExhausted(void)
{
    if (geteuid() != 0) {
        vspTestSkip("needs root, to give it up");
        return;
    }
    vspTestInChild(pipesExhausted, NULL);
}

/* Reported of real kernels: contiguous memory is short, the pipe is in use, the call is not there.
 */
static void
pipeSizeRefused(gpointer opaque)
{
    g_autoptr(GError) error = NULL;
    vspTransportPair pair;
    int fds[2];

    if (!vspTestDeny(SYS_fcntl, 1, G_MAXUINT32, F_SETPIPE_SZ, GPOINTER_TO_INT(opaque)))
        g_error("no system call filter");
    g_assert_cmpint(vspTransportOpen(VSP_TRANSPORT_PIPE, &pair, &error), ==, 0);
    g_assert_no_error(error);
    g_assert_true(pair.kind == VSP_TRANSPORT_SOCKET);
    g_assert_nonnull(pair.fallback);
    assertWorks(&pair);

    g_assert_cmpint(pipe2(fds, O_CLOEXEC), ==, 0);
    g_assert_cmpuint(vspTransportEnlargePipe(fds[0]), ==, fcntl(fds[0], F_GETPIPE_SZ));
}

static void
testPipeSizeRefused(void)
{
    static const int errnums[] = { EPERM, ENOMEM, EBUSY, EINVAL, ENOSYS };

    for (guint i = 0; i < G_N_ELEMENTS(errnums); i++)
        vspTestInChild(pipeSizeRefused, GINT_TO_POINTER(errnums[i]));
}

static void
sendBufferRefused(gpointer opaque)
{
    g_autoptr(GError) error = NULL;
    vspTransportPair pair;

    if (!vspTestDeny(SYS_setsockopt, 0, 0, 0, GPOINTER_TO_INT(opaque)))
        g_error("no system call filter");
    g_assert_cmpint(vspTransportOpen(VSP_TRANSPORT_SOCKET, &pair, &error), ==, 0);
    g_assert_no_error(error);
    g_assert_cmpuint(pair.granted, ==, sendBuffer(pair.writeEnd));
    assertWorks(&pair);
}

static void
testSendBufferRefused(void)
{
    vspTestInChild(sendBufferRefused, GINT_TO_POINTER(EPERM));
    vspTestInChild(sendBufferRefused, GINT_TO_POINTER(ENOBUFS));
}

static void
noPipe(gpointer opaque)
{
    g_autoptr(GError) error = NULL;
    vspTransportPair pair;

    if (!vspTestDeny(SYS_pipe2, 0, 0, 0, EMFILE))
        g_error("no system call filter");
    g_assert_cmpint(vspTransportOpen(VSP_TRANSPORT_PIPE, &pair, &error), ==, 0);
    g_assert_true(pair.kind == VSP_TRANSPORT_SOCKET);
    g_assert_nonnull(pair.fallback);
    assertWorks(&pair);
}

static void
noSocket(gpointer opaque)
{
    g_autoptr(GError) error = NULL;
    vspTransportPair pair;

    if (!vspTestDeny(SYS_socketpair, 0, 0, 0, EAFNOSUPPORT))
        g_error("no system call filter");
    g_assert_cmpint(vspTransportOpen(VSP_TRANSPORT_SOCKET, &pair, &error), ==, 0);
    g_assert_true(pair.kind == VSP_TRANSPORT_PIPE);
    g_assert_nonnull(pair.fallback);
    g_assert_cmpuint(pair.granted, ==, fcntl(pair.readEnd, F_GETPIPE_SZ));
    assertWorks(&pair);

    /* A pipe as small as the kernel makes them is better than nothing. */
    if (!vspTestDeny(SYS_fcntl, 1, G_MAXUINT32, F_SETPIPE_SZ, EPERM))
        g_error("no system call filter");
    g_assert_cmpint(vspTransportOpen(VSP_TRANSPORT_PIPE, &pair, &error), ==, 0);
    g_assert_true(pair.kind == VSP_TRANSPORT_PIPE);
    assertWorks(&pair);
}

static void
neither(gpointer opaque)
{
    g_autoptr(GError) error = NULL;
    struct rlimit limit = { 0, 0 };
    vspTransportPair pair;

    g_assert_cmpint(setrlimit(RLIMIT_NOFILE, &limit), ==, 0);
    g_assert_cmpint(vspTransportOpen(VSP_TRANSPORT_AUTO, &pair, &error), ==, -1);
    g_assert_nonnull(strstr(error->message, g_strerror(EMFILE)));
    g_assert_cmpint(pair.readEnd, ==, -1);
    g_assert_cmpint(pair.writeEnd, ==, -1);
}

static void
testOtherKind(void)
{
    vspTestInChild(noPipe, NULL);
    vspTestInChild(noSocket, NULL);
    vspTestInChild(neither, NULL);
}

static void
testEnlarge(void)
{
    g_auto(vspFd) null = vspTestOpen("/dev/null", O_RDONLY);
    int fds[2];

    g_assert_cmpuint(vspTransportEnlargePipe(null), ==, 0);
    g_assert_cmpuint(vspTransportEnlargePipe(-1), ==, 0);

    /* One that is large enough stays as it is. */
    g_assert_cmpint(pipe2(fds, O_CLOEXEC), ==, 0);
    g_assert_cmpint(fcntl(fds[0], F_SETPIPE_SZ, pipeMaxSize()), >, 0);
    g_assert_cmpuint(vspTransportEnlargePipe(fds[0]), ==, fcntl(fds[0], F_GETPIPE_SZ));
    g_assert_cmpuint(vspTransportEnlargePipe(fds[0]), >=, MIN(pipeMaxSize(), 4 * KIB * KIB));
    vspFdClose(&fds[0]);
    vspFdClose(&fds[1]);
}

int
main(int argc, char **argv)
{
    vspTestInit(&argc, &argv);
    vspTestAdd("/transport/pipe", testPipe);
    vspTestAdd("/transport/socket", testSocket);
    vspTestAdd("/transport/socket-as-nobody", testSocketAsNobody);
    vspTestAdd("/transport/pipes-exhausted", testPipesExhausted);
    vspTestAdd("/transport/pipe-size-refused", testPipeSizeRefused);
    vspTestAdd("/transport/send-buffer-refused", testSendBufferRefused);
    vspTestAdd("/transport/other-kind", testOtherKind);
    vspTestAdd("/transport/enlarge", testEnlarge);
    return vspTestRun();
}
