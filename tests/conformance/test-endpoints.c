/*
 * test-endpoints.c: one body for each kind of endpoint, by itself and with a wrapper around it
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cache.h"
#include "control.h"
#include "endpoint.h"
#include "testdata.h"
#include "testfs.h"
#include "testutil.h"
#include "vspfd.h"
#include "vspio.h"

#define MIB (1024 * 1024)

/* What a kind can do, for the body to expect. */
typedef struct {
    const char *name;
    const char *kind;
    gboolean seekable;
    gboolean keeps;     /* what is written can be read again */
    gboolean hasLength; /* which truncate sets */
    gboolean holes;     /* zero works without writing */
    /* Two descriptors of the same: one to write and one to read. FALSE: can't be had here. */
    gboolean (*open)(const char *dir, int *writing, int *reading);
} Kind;

typedef enum {
    PLAIN,
    FAULT, /* without a fault */
} Around;

typedef struct {
    const Kind *kind;
    Around around;
} Case;

static gboolean
openFile(const char *dir, int *writing, int *reading)
{
    g_autofree char *path = vspTestPath(dir, "file");

    *writing = vspTestOpen(path, O_WRONLY | O_CREAT | O_TRUNC);
    *reading = vspTestOpen(path, O_RDONLY);
    return TRUE;
}

static gboolean
openTmpfs(const char *dir, int *writing, int *reading)
{
    g_auto(vspFd) root = vspTestTmpfs(16 * MIB);
    g_autofree char *path = NULL;

    if (root < 0)
        return FALSE;
    path = vspTestFsPath(root, "file");
    *writing = vspTestOpen(path, O_WRONLY | O_CREAT);
    *reading = vspTestOpen(path, O_RDONLY);
    return TRUE;
}

static gboolean
openLoop(const char *dir, guint sector, int *writing, int *reading)
{
    g_autofree char *path = NULL;
    g_auto(vspFd) device = vspTestLoop(dir, 16 * MIB, sector, &path);

    if (device < 0)
        return FALSE;
    *writing = vspTestOpen(path, O_WRONLY);
    *reading = vspTestOpen(path, O_RDONLY);
    return TRUE;
}

static gboolean
openLoop512(const char *dir, int *writing, int *reading)
{
    return openLoop(dir, 512, writing, reading);
}

static gboolean
openLoop4096(const char *dir, int *writing, int *reading)
{
    return openLoop(dir, 4096, writing, reading);
}

static gboolean
openNull(const char *dir, int *writing, int *reading)
{
    *writing = vspTestOpen("/dev/null", O_WRONLY);
    *reading = vspTestOpen("/dev/null", O_RDONLY);
    return TRUE;
}

static gboolean
openStream(const char *dir, int *writing, int *reading)
{
    int fds[2];

    g_assert_cmpint(pipe2(fds, O_CLOEXEC | O_NONBLOCK), ==, 0);
    *writing = fds[1];
    *reading = fds[0];
    return TRUE;
}

static const Kind kinds[] = {
    { "file", "file", TRUE, TRUE, TRUE, TRUE, openFile },
    { "tmpfs", "file", TRUE, TRUE, TRUE, TRUE, openTmpfs },
    { "block-512", "block", TRUE, TRUE, FALSE, TRUE, openLoop512 },
    { "block-4096", "block", TRUE, TRUE, FALSE, TRUE, openLoop4096 },
    { "null", "null", TRUE, FALSE, FALSE, TRUE, openNull },
    { "stream", "stream", FALSE, TRUE, FALSE, FALSE, openStream },
};

static vspEndpoint *
makeEndpoint(const Case *test, int fd)
{
    int errnum = 0;
    vspEndpoint *ep = vspEndpointOpen(fd, VSP_SIDE_FILE, &errnum);

    g_assert_nonnull(ep);
    g_assert_cmpstr(ep->ops->kind, ==, test->kind->kind);
    if (test->around == FAULT) {
        ep = vspEndpointFaultNew(ep, "");
        g_assert_nonnull(ep);
    }
    g_assert_true(ep->side == VSP_SIDE_FILE);
    g_assert_cmpint(ep->seekable, ==, test->kind->seekable);
    g_assert_cmpint(!!ep->cache, ==, test->kind->seekable);
    g_assert_cmpuint(vspEndpointGetAlignment(ep), ==, 1);
    return ep;
}

/* In order, as a stream is moved. */
static void
inOrder(const Case *test, vspEndpoint *out, vspEndpoint *in)
{
    static const gsize lengths[] = { 1, 511, 4096, 7, 30000 };
    char buf[30000];
    guint64 offset = 0;

    for (guint i = 0; i < G_N_ELEMENTS(lengths); i++) {
        vspTestFill(buf, lengths[i], offset);
        g_assert_cmpint(vspEndpointWrite(out, buf, lengths[i]), ==, lengths[i]);
        memset(buf, 0, sizeof(buf));
        if (test->kind->keeps) {
            g_assert_cmpint(vspEndpointRead(in, buf, lengths[i]), ==, lengths[i]);
            vspTestAssertData(buf, lengths[i], offset);
        } else {
            g_assert_cmpint(vspEndpointRead(in, buf, lengths[i]), ==, 0);
        }
        offset += lengths[i];
    }
}

/* In some other order, in each cache mode that it takes. */
static void
atOffsets(const Case *test, vspEndpoint *out, vspEndpoint *in)
{
    static const off_t offsets[] = { 3 * 65536, 0, 65536, 2 * 65536 };
    g_autofree char *raw = g_malloc(3 * 65536);
    char *buf = (char *)(((gsize)raw + 65535) & ~(gsize)65535);

    for (vspCacheMode mode = VSP_CACHE_DIRECT; mode <= VSP_CACHE_CACHED; mode++) {
        int errnum = 0;
        const char *why = NULL;

        g_assert_cmpint(vspCacheSetUp(out->cache, mode, FALSE, FALSE, &errnum, &why), ==, 0);
        g_assert_cmpint(vspCacheSetUp(in->cache, mode, FALSE, FALSE, &errnum, &why), ==, 0);
        for (guint i = 0; i < G_N_ELEMENTS(offsets); i++) {
            ssize_t n;

            vspTestFill(buf, 65536, offsets[i] + mode);
            while ((n = vspEndpointPwrite(out, buf, 65536, offsets[i])) < 0)
                g_assert_true(vspCacheStepDown(out->cache, vspCacheGetMode(out->cache), -n));
            g_assert_cmpint(n, ==, 65536);
        }
        g_assert_cmpint(vspEndpointSync(out), ==, 0);
        for (guint i = 0; i < G_N_ELEMENTS(offsets) && test->kind->keeps; i++) {
            ssize_t n;

            memset(buf, 0, 65536);
            while ((n = vspEndpointPread(in, buf, 65536, offsets[i])) < 0)
                g_assert_true(vspCacheStepDown(in->cache, vspCacheGetMode(in->cache), -n));
            g_assert_cmpint(n, ==, 65536);
            vspTestAssertData(buf, 65536, offsets[i] + mode);
        }
        vspCacheFinish(out->cache, 0, 4 * 65536);
        vspCacheFinish(in->cache, 0, 4 * 65536);
    }
}

static void
lengths(const Case *test, vspEndpoint *out, vspEndpoint *in)
{
    char buf[8192];
    struct stat st;

    g_assert_cmpint(vspEndpointTruncate(out, 100000), ==, 0);
    g_assert_cmpint(vspEndpointTruncate(out, 100000), ==, 0);
    if (!test->kind->hasLength)
        return;
    g_assert_cmpint(fstat(out->fd, &st), ==, 0);
    g_assert_cmpint(st.st_size, ==, 100000);
    /* Short at the end, and nothing behind it. */
    g_assert_cmpint(vspEndpointPread(in, buf, sizeof(buf), 98304), ==, 100000 - 98304);
    g_assert_cmpint(vspEndpointPread(in, buf, sizeof(buf), 100000), ==, 0);
    g_assert_cmpint(vspEndpointPread(in, buf, sizeof(buf), 999424), ==, 0);
    g_assert_cmpint(vspEndpointTruncate(out, 300000), ==, 0);
    g_assert_cmpint(vspEndpointPread(in, buf, sizeof(buf), 98304), ==, sizeof(buf));
    g_assert_cmpint(buf[8191], ==, 0);
}

static void
zeros(const Case *test, vspEndpoint *out, vspEndpoint *in)
{
    g_autofree char *buf = g_malloc(2 * 65536);
    int rc;

    vspTestFill(buf, 2 * 65536, 0);
    g_assert_cmpint(vspEndpointPwrite(out, buf, 2 * 65536, 65536), ==, 2 * 65536);
    g_assert_cmpint(vspEndpointSync(out), ==, 0);
    g_assert_false(vspEndpointIsHole(in, 65536, 65536));
    rc = vspEndpointZero(out, 2 * 65536, 65536);
    g_assert_cmpint(rc, <=, 0);
    if (rc < 0) {
        g_test_message("%s: zeros have to be written: %s", test->kind->name, g_strerror(-rc));
        return;
    }
    if (!test->kind->keeps)
        return;
    memset(buf, 1, 2 * 65536);
    g_assert_cmpint(vspEndpointPread(in, buf, 2 * 65536, 65536), ==, 2 * 65536);
    vspTestAssertData(buf, 65536, 0);
    for (guint i = 0; i < 65536; i++)
        g_assert_cmpint(buf[65536 + i], ==, 0);
}

static void
run(gconstpointer opaque)
{
    const Case *test = opaque;
    g_auto(vspTestDir) dir = vspTestDirectory();
    int writing, reading;
    vspEndpoint *out, *in;

    if (!test->kind->open(dir, &writing, &reading)) {
        vspTestSkip("needs root");
        return;
    }
    out = makeEndpoint(test, writing);
    in = makeEndpoint(test, reading);

    inOrder(test, out, in);
    if (test->kind->seekable) {
        atOffsets(test, out, in);
        lengths(test, out, in);
        zeros(test, out, in);
    } else {
        g_assert_cmpint(vspEndpointTruncate(out, 5), ==, 0);
    }
    g_assert_cmpint(vspEndpointSync(out), ==, 0);
    g_assert_cmpint(vspEndpointClose(out), ==, 0);
    g_assert_true(out->closed);
    if (!test->kind->seekable) {
        char byte;

        g_assert_cmpint(vspEndpointRead(in, &byte, 1), ==, 0);
    }
    g_assert_cmpint(vspEndpointClose(in), ==, 0);
    /* Closed is closed: the descriptor may be somebody else's already. */
    g_assert_cmpint(fcntl(writing, F_GETFD), ==, -1);
    g_assert_cmpint(fcntl(reading, F_GETFD), ==, -1);
    vspEndpointFree(out);
    vspEndpointFree(in);
}

static void
testPosition(void)
{
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autofree char *path = vspTestPath(dir, "file");
    int fd = vspTestOpen(path, O_WRONLY | O_CREAT);
    int errnum;
    g_autoptr(vspEndpoint) ep = NULL;

    g_assert_cmpint(vspWriteFull(fd, "header", 6), ==, 0);
    ep = vspEndpointOpen(fd, VSP_SIDE_FILE, &errnum);
    g_assert_cmpint(ep->start, ==, 6);
    g_assert_cmpint(ep->size, ==, 6);
}

static void
testNotAnEndpoint(void)
{
    g_auto(vspFd) directory = vspTestOpen("/", O_RDONLY | O_DIRECTORY);
    int errnum = 0;

    g_assert_null(vspEndpointOpen(directory, VSP_SIDE_FILE, &errnum));
    g_assert_cmpint(errnum, ==, EISDIR);
    g_assert_null(vspEndpointOpen(-1, VSP_SIDE_FILE, &errnum));
    g_assert_cmpint(errnum, ==, EBADF);
}

static void
testFaultSpecs(void)
{
    static const char *const bad[] = {
        "write",
        "write@1",
        "write@=EIO",
        "write@0=EIO",
        "write@x=EIO",
        "write@1=EFOO",
        "wrote@1=EIO",
        "write@1+-=EIO",
        "write@1=EIO,",
        "=",
        ",",
    };
    static const char *const good[] = { "", "write@1=EIO", "read@2+=short,sync@1=EDQUOT" };

    for (guint i = 0; i < G_N_ELEMENTS(bad) + G_N_ELEMENTS(good); i++) {
        gboolean isBad = i < G_N_ELEMENTS(bad);
        int fd = vspTestOpen("/dev/null", O_WRONLY);
        int errnum;
        vspEndpoint *inner = vspEndpointOpen(fd, VSP_SIDE_FILE, &errnum);
        vspEndpoint *ep = vspEndpointFaultNew(inner, isBad ? bad[i] : good[i - G_N_ELEMENTS(bad)]);

        g_assert_cmpint(!ep, ==, isBad);
        vspEndpointFree(isBad ? inner : ep);
    }
}

/* Misuse ends the program, by name, and not by corrupting a file. */
static void
misuse(void (*func)(vspEndpoint *), const char *path, int flags, const char *pattern)
{
    if (g_test_subprocess()) {
        int errnum;

        func(vspEndpointOpen(vspTestOpen(path, flags), VSP_SIDE_FILE, &errnum));
        return;
    }
    g_test_trap_subprocess(NULL, 0, 0);
    g_test_trap_assert_failed();
    g_test_trap_assert_stderr(pattern);
}

static void
closeTwice(vspEndpoint *ep)
{
    vspEndpointClose(ep);
    vspEndpointClose(ep);
}

static void
preadStream(vspEndpoint *ep)
{
    char byte;

    vspEndpointPread(ep, &byte, 1, 0);
}

static void
zeroStream(vspEndpoint *ep)
{
    ep->ops->zero(ep, 0, 4096);
}

static void
unaligned(vspEndpoint *ep)
{
    char bytes[512];
    int errnum;
    const char *why;

    vspCacheSetUp(ep->cache, VSP_CACHE_DIRECT, FALSE, TRUE, &errnum, &why);
    vspEndpointPread(ep, bytes, sizeof(bytes), 1);
}

static void
testCloseTwice(void)
{
    misuse(closeTwice, "/dev/null", O_RDONLY, "*vspEndpointClose*closed*");
}

static void
testPreadStream(void)
{
    misuse(preadStream, "/dev/zero", O_RDONLY, "*checkRange*seekable*");
}

static void
testZeroStream(void)
{
    misuse(zeroStream, "/dev/zero", O_RDONLY, "*'stream' was asked to make a hole*");
}

static void
testUnaligned(void)
{
    misuse(unaligned, "/proc/self/exe", O_RDONLY, "*checkRange*alignment*");
}

int
main(int argc, char **argv)
{
    static Case cases[2 * G_N_ELEMENTS(kinds)];

    vspTestInit(&argc, &argv);
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path =
            g_strdup_printf("/endpoints/%s/%s", kinds[i / 2].name, i % 2 ? "fault" : "plain");

        cases[i] = (Case){ &kinds[i / 2], i % 2 ? FAULT : PLAIN };
        vspTestAddData(path, &cases[i], run);
    }
    vspTestAdd("/endpoints/position", testPosition);
    vspTestAdd("/endpoints/not-an-endpoint", testNotAnEndpoint);
    vspTestAdd("/endpoints/fault-specs", testFaultSpecs);
    vspTestAdd("/endpoints/misuse/close-twice", testCloseTwice);
    vspTestAdd("/endpoints/misuse/pread-stream", testPreadStream);
    vspTestAdd("/endpoints/misuse/zero-stream", testZeroStream);
    vspTestAdd("/endpoints/misuse/unaligned", testUnaligned);
    return vspTestRun();
}
