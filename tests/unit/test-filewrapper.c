/*
 * test-filewrapper.c: the contract of the file wrapper where everything goes well, and its misuse
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "testdata.h"
#include "testutil.h"
#include "vspfd.h"
#include "vspio.h"
#include "wrapperutil.h"

#define MIB (1024 * 1024)
#define LENGTH (9 * MIB + 5)

static vspFileWrapperFd *
wrap(int *fd, const vspFileWrapperOptions *options)
{
    g_autoptr(GError) error = NULL;
    vspFileWrapperFd *wfd = vspFileWrapperFdNewWithOptions(fd, "NAME", options, &error);

    g_assert_no_error(error);
    return wfd;
}

/* Every transport, cache mode and way to block, both ways. */
static void
roundTrip(const char *dir, const vspFileWrapperOptions *options, guint64 length)
{
    g_autofree char *path = vspTestPath(dir, "round-trip");

    if (vspTestLeaveOut())
        return;
    for (gboolean writing = TRUE; writing >= FALSE; writing--) {
        g_auto(vspFd) fd = vspTestOpen(path, writing ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY);
        g_autoptr(vspFileWrapperFd) wfd = wrap(&fd, options);

        if (writing)
            g_assert_cmpuint(wrapperFeed(fd, length), ==, length);
        else
            g_assert_cmpuint(wrapperDrain(fd, 0), ==, length);
        vspFdClose(&fd);
        wrapperAssertClosed(wfd);
    }
    wrapperAssertFile(path, length);
}

static void
testRoundTrip(void)
{
    static const guint64 lengths[] = { 0, 1, 4096, LENGTH };
    g_auto(vspTestDir) dir = vspTestDirectory();

    for (guint i = 0; i < G_N_ELEMENTS(lengths); i++) {
        for (vspTransport transport = VSP_TRANSPORT_AUTO; transport <= VSP_TRANSPORT_SOCKET;
             transport++) {
            for (guint flags = 0; flags < 4; flags++) {
                g_autoptr(vspFileWrapperOptions) options = vspFileWrapperOptionsNew();

                vspFileWrapperOptionsSetTransport(options, transport);
                vspFileWrapperOptionsSetFlags(options, flags);
                roundTrip(dir, options, lengths[i]);
            }
        }
    }
}

static void
testFlagsAlone(void)
{
    g_auto(vspTestDir) dir = vspTestDirectory();

    for (guint flags = 0; flags < 8; flags++) {
        g_autoptr(vspFileWrapperOptions) options = vspFileWrapperOptionsNew();

        vspFileWrapperOptionsSetFlags(options, flags);
        roundTrip(dir, options, 3 * MIB + 1);
    }
    roundTrip(dir, NULL, 3 * MIB + 1);
}

static void
testOptions(void)
{
    static const char *const engines[] = { NULL, "sync", "auto" };
    g_auto(vspTestDir) dir = vspTestDirectory();

    for (vspCacheMode mode = VSP_CACHE_AUTO; mode <= VSP_CACHE_CACHED; mode++) {
        for (guint i = 0; i < G_N_ELEMENTS(engines); i++) {
            g_autoptr(vspFileWrapperOptions) options = vspFileWrapperOptionsNew();

            vspFileWrapperOptionsSetCacheMode(options, mode);
            vspFileWrapperOptionsSetEngine(options, engines[i]);
            vspFileWrapperOptionsSetBuffers(options, 2 + i, 65536 * (i + 1));
            roundTrip(dir, options, 2 * MIB + 3);
        }
    }
}

/* From where the descriptor stands, behind what is there, as for the payload behind a header. */
static void
testPosition(void)
{
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autofree char *path = vspTestPath(dir, "file");
    static const guint64 starts[] = { 1, 92, 4096, 67000 };

    for (guint i = 0; i < G_N_ELEMENTS(starts); i++) {
        for (guint flags = 0; flags < 2; flags++) {
            g_autofree char *head = g_malloc(starts[i]);
            g_auto(vspFd) fd = vspTestOpen(path, O_WRONLY | O_CREAT | O_TRUNC);
            g_auto(vspFd) in = -1;
            g_autoptr(vspFileWrapperFd) wfd = NULL;
            g_autoptr(vspFileWrapperFd) reading = NULL;

            memset(head, 'h', starts[i]);
            g_assert_cmpint(vspWriteFull(fd, head, starts[i]), ==, 0);
            wfd = wrapperNew(&fd, "NAME", flags);
            g_assert_cmpuint(wrapperFeed(fd, LENGTH), ==, LENGTH);
            vspFdClose(&fd);
            wrapperAssertClosed(wfd);

            in = vspTestOpen(path, O_RDONLY);
            memset(head, 0, starts[i]);
            g_assert_cmpint(vspReadFull(in, head, starts[i]), ==, starts[i]);
            g_assert_cmpint(head[0], ==, 'h');
            g_assert_cmpint(head[starts[i] - 1], ==, 'h');
            reading = wrapperNew(&in, "NAME", flags);
            g_assert_cmpuint(wrapperDrain(in, 0), ==, LENGTH);
            vspFdClose(&in);
            wrapperAssertClosed(reading);
        }
    }
}

static void
testLength(void)
{
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autofree char *path = vspTestPath(dir, "file");
    static const guint64 lengths[] = { 0, 1, 5000, 4 * MIB, LENGTH };

    wrapperMakeFile(path, LENGTH);
    for (guint i = 0; i < G_N_ELEMENTS(lengths); i++) {
        g_autoptr(vspFileWrapperOptions) options = vspFileWrapperOptionsNew();
        g_auto(vspFd) fd = vspTestOpen(path, O_RDONLY);
        g_autoptr(vspFileWrapperFd) wfd = NULL;

        vspFileWrapperOptionsSetLength(options, lengths[i]);
        wfd = wrap(&fd, options);
        g_assert_cmpuint(wrapperDrain(fd, 0), ==, lengths[i]);
        vspFdClose(&fd);
        wrapperAssertClosed(wfd);
    }
    {
        /* Who says how much there is does not want less. */
        g_autoptr(vspFileWrapperOptions) options = vspFileWrapperOptionsNew();
        g_auto(vspFd) fd = vspTestOpen(path, O_RDONLY);
        g_autoptr(vspFileWrapperFd) wfd = NULL;

        vspFileWrapperOptionsSetLength(options, LENGTH + 1);
        wfd = wrap(&fd, options);
        wrapperDrain(fd, 0);
        vspFdClose(&fd);
        wrapperAssertFailed(wfd, VSP_ERROR_IO, "cannot read 'NAME' at offset 9437189", NULL);
    }
}

/* What was longer before is cut to what came. */
static void
testShorterThanBefore(void)
{
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autofree char *path = vspTestPath(dir, "file");

    for (guint flags = 0; flags < 2; flags++) {
        g_auto(vspFd) fd = -1;
        g_autoptr(vspFileWrapperFd) wfd = NULL;

        wrapperMakeFile(path, LENGTH);
        fd = vspTestOpen(path, O_WRONLY);
        wfd = wrapperNew(&fd, "NAME", flags);
        g_assert_cmpuint(wrapperFeed(fd, 5000), ==, 5000);
        vspFdClose(&fd);
        wrapperAssertClosed(wfd);
        wrapperAssertFile(path, 5000);
    }
}

static void
testNonBlocking(void)
{
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autofree char *path = vspTestPath(dir, "file");

    for (guint big = 0; big < 2; big++) {
        unsigned int flags = VSP_FILE_WRAPPER_NON_BLOCKING | (big ? VSP_FILE_WRAPPER_BIG_PIPE : 0);
        g_auto(vspFd) fd = vspTestOpen(path, O_WRONLY | O_CREAT | O_TRUNC);
        g_autoptr(vspFileWrapperFd) wfd = wrapperNew(&fd, "NAME", flags);
        pid_t helper = wrapperFindHelper();
        g_autofree char *buf = g_malloc(MIB);
        guint64 done = 0;
        ssize_t n;

        g_assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
        /* The helper takes nothing now: the buffer between us fills up. */
        g_assert_cmpint(kill(helper, SIGSTOP), ==, 0);
        do {
            vspTestFill(buf, MIB, done);
            n = write(fd, buf, MIB);
            done += MAX(n, 0);
            g_assert_cmpuint(done, <, 256 * MIB);
        } while (n > 0);
        g_assert_cmpint(errno, ==, EAGAIN);
        g_assert_cmpint(vspPollOne(fd, POLLOUT, 0), ==, 0);
        g_assert_cmpint(kill(helper, SIGCONT), ==, 0);
        g_assert_cmpint(vspPollOne(fd, POLLOUT, vspTestDeadline()), ==, POLLOUT);
        vspFdClose(&fd);
        wrapperAssertClosed(wfd);
        wrapperAssertFile(path, done);
    }
    {
        g_auto(vspFd) fd = vspTestOpen(path, O_RDONLY);
        g_autoptr(vspFileWrapperFd) wfd = wrapperNew(&fd, "NAME", 0);

        g_assert_false(fcntl(fd, F_GETFL) & O_NONBLOCK);
        wrapperDrain(fd, 0);
        vspFdClose(&fd);
        wrapperAssertClosed(wfd);
    }
}

static void
testKindOfEnd(void)
{
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autofree char *path = vspTestPath(dir, "file");
    static const unsigned int rows[] = { 0, VSP_FILE_WRAPPER_BIG_PIPE };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_auto(vspFd) fd = vspTestOpen(path, O_WRONLY | O_CREAT);
        int before = fd;
        g_autoptr(vspFileWrapperFd) wfd = wrapperNew(&fd, "NAME", rows[i]);
        g_autoptr(GVariant) statistics = NULL;
        const char *transport;
        struct stat st;

        g_assert_cmpint(fstat(fd, &st), ==, 0);
        g_assert_true(rows[i] ? S_ISFIFO(st.st_mode) : S_ISSOCK(st.st_mode));
        g_assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        g_assert_true(before != fd || fcntl(before, F_GETFD) >= 0);
        vspFdClose(&fd);
        wrapperAssertClosed(wfd);
        statistics = vspFileWrapperFdGetStatistics(wfd);
        g_assert_true(g_variant_lookup(statistics, "transport", "&s", &transport));
        g_assert_cmpstr(transport, ==, rows[i] ? "pipe" : "socket");
    }
}

/* Whatever other threads start meanwhile: nothing of ours gets into it. */
static void
testCloseOnExec(void)
{
    gboolean before[256];
    g_auto(vspFd) fd = -1;
    g_autoptr(vspFileWrapperFd) wfd = NULL;
    guint ours = 0;

    for (int i = 0; i < (int)G_N_ELEMENTS(before); i++)
        before[i] = fcntl(i, F_GETFD) >= 0;
    fd = vspTestOpen("/dev/null", O_WRONLY);
    wfd = wrapperNew(&fd, "NAME", 0);
    for (int i = 0; i < (int)G_N_ELEMENTS(before); i++) {
        int flags = fcntl(i, F_GETFD);

        if (flags < 0 || before[i])
            continue;
        g_assert_true(flags & FD_CLOEXEC);
        ours++;
    }
    /* The stream and the status channel at least. */
    g_assert_cmpuint(ours, >=, 2);
    vspFdClose(&fd);
    wrapperAssertClosed(wfd);
}

static guint64
lookUpNumber(GVariant *statistics, const char *key)
{
    guint64 value = 0;

    g_assert_true(g_variant_lookup(statistics, key, "t", &value));
    return value;
}

static void
testStatistics(void)
{
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autofree char *path = vspTestPath(dir, "file");
    g_auto(vspFd) fd = vspTestOpen(path, O_WRONLY | O_CREAT);
    g_autoptr(vspFileWrapperFd) wfd = NULL;
    g_autoptr(GVariant) before = NULL;
    g_autoptr(GVariant) after = NULL;
    vspProgress progress;

    g_assert_cmpint(lseek(fd, 92, SEEK_SET), ==, 92);
    wfd = wrapperNew(&fd, "NAME", VSP_FILE_WRAPPER_BYPASS_CACHE);
    vspFileWrapperFdGetProgress(wfd, &progress);
    g_assert_cmpuint(progress.bytesIn, <=, LENGTH);
    before = vspFileWrapperFdGetStatistics(wfd);
    g_assert_true(lookUpNumber(before, "transport-granted") > 0);

    g_assert_cmpuint(wrapperFeed(fd, LENGTH), ==, LENGTH);
    vspFdClose(&fd);
    wrapperAssertClosed(wfd);
    vspFileWrapperFdGetProgress(wfd, &progress);
    g_assert_true(progress.stage == VSP_STAGE_DONE);
    g_assert_cmpuint(progress.bytesIn, ==, LENGTH);
    g_assert_cmpuint(progress.bytesOut, ==, LENGTH);

    after = vspFileWrapperFdGetStatistics(wfd);
    g_assert_false(g_variant_is_floating(after));
    g_assert_cmpuint(lookUpNumber(after, "bytes-in"), ==, LENGTH);
    g_assert_cmpuint(lookUpNumber(after, "bytes-out"), ==, LENGTH);
    g_assert_cmpuint(lookUpNumber(after, "start-offset"), ==, 92);
    g_assert_cmpuint(lookUpNumber(after, "transfer-ns"), >, 0);
    g_assert_cmpuint(lookUpNumber(after, "transport-asked"), >=,
                     lookUpNumber(after, "transport-granted"));
}

/* Between nothing and everything, and never more than was given. */
static void
testProgress(void)
{
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autofree char *path = vspTestPath(dir, "file");
    g_auto(vspFd) fd = vspTestOpen(path, O_WRONLY | O_CREAT);
    g_autoptr(vspFileWrapperFd) wfd = wrapperNew(&fd, "NAME", 0);
    vspProgress progress = { 0 };
    guint64 sent = 0, seen = 0;
    g_autofree char *buf = g_malloc0(MIB);
    gint64 deadline = vspTestDeadline();

    while (progress.bytesOut == 0) {
        g_assert_cmpint(g_get_monotonic_time(), <, deadline);
        g_assert_cmpint(vspWriteFull(fd, buf, MIB), ==, 0);
        sent += MIB;
        vspFileWrapperFdGetProgress(wfd, &progress);
        g_assert_cmpuint(progress.bytesIn, <=, sent);
        g_assert_cmpuint(progress.bytesIn, >=, seen);
        g_assert_true(progress.stage < VSP_STAGE_SYNC);
        seen = progress.bytesIn;
    }
    g_assert_true(progress.stage == VSP_STAGE_TRANSFER);
    vspFdClose(&fd);
    wrapperAssertClosed(wfd);
    vspFileWrapperFdGetProgress(wfd, &progress);
    g_assert_cmpuint(progress.bytesOut, ==, sent);
}

static void
assertRefused(int fd, unsigned int flags, int code, const char *words)
{
    int number = fd;
    int before = fcntl(fd, F_GETFL);
    guint count = vspTestCountDescriptors();
    g_autoptr(GError) error = NULL;

    g_assert_null(vspFileWrapperFdNew(&fd, "NAME", flags, &error));
    g_assert_error(error, VSP_ERROR, code);
    if (!strstr(error->message, words) || !strstr(error->message, "'NAME'"))
        g_error("no '%s', or no name, in: %s", words, error->message);

    /* It is unchanged and open. */
    g_assert_cmpint(fd, ==, number);
    g_assert_cmpint(fcntl(fd, F_GETFL), ==, before);
    g_assert_cmpuint(vspTestCountDescriptors(), ==, count);
    vspFdClose(&number);
}

static void
testRefused(void)
{
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autofree char *path = vspTestPath(dir, "file");

    wrapperMakeFile(path, 100);
    assertRefused(vspTestOpen(path, O_RDWR), 0, VSP_ERROR_INVALID_ARGUMENT, "not both");
    assertRefused(vspTestOpen(path, O_RDWR | O_APPEND), 0, VSP_ERROR_INVALID_ARGUMENT, "not both");
    assertRefused(vspTestOpen(path, O_WRONLY | O_APPEND), 0, VSP_ERROR_INVALID_ARGUMENT,
                  "appending");
    assertRefused(vspTestOpen(path, O_PATH), 0, VSP_ERROR_INVALID_ARGUMENT, "reading");
    assertRefused(vspTestOpen(path, O_RDONLY), 1u << 30, VSP_ERROR_INVALID_ARGUMENT, "0x40000000");
    assertRefused(vspTestOpen(path, O_RDONLY), 0x100001, VSP_ERROR_INVALID_ARGUMENT,
                  "flags 0x100000");
    assertRefused(-1, 0, VSP_ERROR_IO, "Bad file descriptor");
    assertRefused(vspTestOpen(dir, O_RDONLY | O_DIRECTORY), 0, VSP_ERROR_IO, "Is a directory");
    wrapperAssertFile(path, 100);
}

/* Other flags of the descriptor do not count. */
static void
testAccepted(void)
{
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autofree char *path = vspTestPath(dir, "file");
    static const int rows[] = { 0, O_APPEND, O_NONBLOCK, O_NOATIME, O_DIRECT, O_SYNC };

    wrapperMakeFile(path, 100);
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_auto(vspFd) fd = vspTestOpen(path, O_RDONLY | rows[i]);
        g_autoptr(vspFileWrapperFd) wfd = wrapperNew(&fd, "NAME", 0);

        g_assert_cmpuint(wrapperDrain(fd, 0), ==, 100);
        vspFdClose(&fd);
        wrapperAssertClosed(wfd);
    }
}

static void
assertOptionsRefused(const char *path, const vspFileWrapperOptions *options, const char *words)
{
    g_auto(vspFd) fd = vspTestOpen(path, O_RDONLY);
    int number = fd;
    g_autoptr(GError) error = NULL;

    g_assert_null(vspFileWrapperFdNewWithOptions(&fd, "NAME", options, &error));
    g_assert_error(error, VSP_ERROR, VSP_ERROR_INVALID_ARGUMENT);
    g_assert_nonnull(strstr(error->message, words));
    g_assert_cmpint(fd, ==, number);
}

static void
testOptionsRefused(void)
{
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autofree char *path = vspTestPath(dir, "file");
    g_autoptr(vspFileWrapperOptions) options = vspFileWrapperOptionsNew();

    wrapperMakeFile(path, 100);
    vspFileWrapperOptionsSetBuffers(options, 0, 65535);
    assertOptionsRefused(path, options, "65535 is not a multiple of 64 KiB");
    vspFileWrapperOptionsSetBuffers(options, 0, (gsize)1 << 40);
    assertOptionsRefused(path, options, "buffer size");
    vspFileWrapperOptionsSetBuffers(options, 65, 65536);
    assertOptionsRefused(path, options, "65 buffers");
    vspFileWrapperOptionsSetBuffers(options, G_MAXUINT, 0);
    assertOptionsRefused(path, options, "buffers");
    vspFileWrapperOptionsSetBuffers(options, 64, 65536);
    roundTrip(dir, options, 100);
    vspFileWrapperOptionsSetBuffers(options, 0, 0);
    vspFileWrapperOptionsSetCacheMode(options, VSP_CACHE_CACHED + 1);
    assertOptionsRefused(path, options, "cache mode");
    vspFileWrapperOptionsSetCacheMode(options, VSP_CACHE_AUTO);
    vspFileWrapperOptionsSetTransport(options, VSP_TRANSPORT_SOCKET + 1);
    assertOptionsRefused(path, options, "transport");
    vspFileWrapperOptionsSetTransport(options, VSP_TRANSPORT_AUTO);
    vspFileWrapperOptionsSetLength(options, (guint64)G_MAXINT64 + 1);
    assertOptionsRefused(path, options, "length");
    vspFileWrapperOptionsSetLength(options, G_MAXUINT64);
    vspFileWrapperOptionsSetRateLimit(options, G_MAXUINT64);
    assertOptionsRefused(path, options, "rate limit");
    vspFileWrapperOptionsSetRateLimit(options, 0);
    vspFileWrapperOptionsSetIoPriority(options, "soon");
    assertOptionsRefused(path, options, "'soon'");
    vspFileWrapperOptionsSetIoPriority(options, NULL);
    vspFileWrapperOptionsSetEngine(options, "steam");
    assertOptionsRefused(path, options, "no such engine: 'steam'");
}

static void
testStillOpen(void)
{
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autofree char *path = vspTestPath(dir, "file");

    for (guint i = 0; i < 4; i++) {
        unsigned int flags = i & 1 ? VSP_FILE_WRAPPER_BIG_PIPE : 0;
        g_auto(vspFd) fd = vspTestOpen(path, O_WRONLY | O_CREAT | O_TRUNC);
        g_autoptr(vspFileWrapperFd) wfd = wrapperNew(&fd, "NAME", flags);
        g_autofree char *number = NULL;

        if (i & 2) {
            /* Under another number it would keep the helper waiting as well. */
            int copy = vspFdDup(fd);

            vspFdClose(&fd);
            fd = copy;
        }
        number = g_strdup_printf("descriptor %d", fd);
        wrapperAssertFailed(wfd, VSP_ERROR_STILL_OPEN, "'NAME'", number, NULL);
        g_assert_cmpuint(wrapperFeed(fd, LENGTH), ==, LENGTH);
        wrapperAssertFailed(wfd, VSP_ERROR_STILL_OPEN, "'NAME'", number, NULL);
        vspFdClose(&fd);
        wrapperAssertClosed(wfd);
        wrapperAssertFile(path, LENGTH);
    }
}

/* The number may be somebody else's by now. */
static void
testNumberReused(void)
{
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autofree char *path = vspTestPath(dir, "file");
    g_auto(vspFd) fd = vspTestOpen(path, O_WRONLY | O_CREAT);
    g_autoptr(vspFileWrapperFd) wfd = wrapperNew(&fd, "NAME", 0);
    int number = fd;
    g_auto(vspFd) other = vspTestOpen("/dev/null", O_RDONLY);

    g_assert_cmpint(dup3(other, number, O_CLOEXEC), ==, number);
    wrapperAssertClosed(wfd);
    g_assert_cmpint(fcntl(number, F_GETFD), ==, FD_CLOEXEC);
}

static void
testCloseTwice(void)
{
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autofree char *path = vspTestPath(dir, "file");
    g_auto(vspFd) fd = vspTestOpen(path, O_WRONLY | O_CREAT);
    g_autoptr(vspFileWrapperFd) wfd = wrapperNew(&fd, "NAME", 0);
    g_auto(vspFd) full = vspTestOpen("/dev/full", O_WRONLY);
    g_autoptr(vspFileWrapperFd) failing = wrapperNew(&full, "FULL", 0);

    vspFdClose(&fd);
    for (guint i = 0; i < 3; i++) {
        wrapperAssertClosed(wfd);
        vspFileWrapperFdAbort(wfd);
    }
    g_assert_cmpint(vspFileWrapperFdClose(wfd, NULL), ==, 0);

    wrapperFeed(full, 100);
    vspFdClose(&full);
    for (guint i = 0; i < 3; i++) {
        wrapperAssertFailed(failing, VSP_ERROR_NO_SPACE, "'FULL'", "offset 0", NULL);
        vspFileWrapperFdAbort(failing);
    }
    g_assert_cmpint(vspFileWrapperFdClose(failing, NULL), ==, -1);
}

static void
testNull(void)
{
    wrapperAssertClosed(NULL);
    vspFileWrapperFdAbort(NULL);
    vspFileWrapperFdFree(NULL);
}

/* Aborted: the helper is gone, and the caller's end is still the caller's. */
static void
testFreeWithoutClose(void)
{
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autofree char *path = vspTestPath(dir, "file");
    g_auto(vspFd) fd = vspTestOpen(path, O_WRONLY | O_CREAT);
    vspFileWrapperFd *wfd = wrapperNew(&fd, "NAME", 0);
    pid_t helper = wrapperFindHelper();

    vspFileWrapperFdFree(wfd);
    vspTestWaitGone(helper);
    g_assert_cmpint(fcntl(fd, F_GETFD), ==, FD_CLOEXEC);
    wrapperFeed(fd, 10 * MIB);
    g_assert_cmpint(errno, ==, EPIPE);
}

/* A name is text for messages, not a path, and it can't break a line of a log. */
static void
testNames(void)
{
    static const char *const rows[][2] = {
        { "", "''" },
        { "-x", "'-x'" },
        { "--strict", "'--strict'" },
        { "two\nlines", "'two\\nlines'" },
        { "\x1b[31mred", "'\\x1b[31mred'" },
        { "/no/such/path", "'/no/such/path'" },
        { "50% off %s %n", "'50% off %s %n'" },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_auto(vspFd) fd = vspTestOpen("/dev/full", O_WRONLY);
        g_autoptr(vspFileWrapperFd) wfd = wrapperNew(&fd, rows[i][0], 0);

        wrapperFeed(fd, 100);
        vspFdClose(&fd);
        wrapperAssertFailed(wfd, VSP_ERROR_NO_SPACE, rows[i][1], NULL);
    }
}

/* The helper has the descriptor and never the path: what happens to that does not matter. */
static void
testUnlinked(void)
{
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autofree char *path = vspTestPath(dir, "file");
    g_auto(vspFd) fd = vspTestOpen(path, O_WRONLY | O_CREAT);
    g_auto(vspFd) same = vspTestOpen(path, O_RDONLY);
    g_autoptr(vspFileWrapperFd) wfd = wrapperNew(&fd, path, VSP_FILE_WRAPPER_BYPASS_CACHE);

    g_assert_cmpint(unlink(path), ==, 0);
    wrapperMakeFile(path, 100);
    g_assert_cmpuint(wrapperFeed(fd, LENGTH), ==, LENGTH);
    vspFdClose(&fd);
    wrapperAssertClosed(wfd);
    g_assert_cmpuint(wrapperDrain(same, 0), ==, LENGTH);
    wrapperAssertFile(path, 100);
}

static void
testNoTrace(void)
{
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autofree char *path = vspTestPath(dir, "file");
    g_autoptr(vspFileWrapperOptions) missing = vspFileWrapperOptionsNew();
    guint before = vspTestCountDescriptors();

    vspFileWrapperOptionsSetHelperPath(missing, "/nonexistent/helper");
    for (guint i = 0; i < vspTestRounds(200); i++) {
        g_auto(vspFd) fd = vspTestOpen(path, O_WRONLY | O_CREAT);
        g_autoptr(vspFileWrapperFd) wfd = NULL;

        g_assert_null(vspFileWrapperFdNewWithOptions(&fd, "NAME", missing, NULL));
        wfd = wrapperNew(&fd, "NAME", 0);
        vspFdClose(&fd);
        wrapperAssertClosed(wfd);
    }
    g_assert_cmpuint(vspTestCountDescriptors(), ==, before);
}

int
main(int argc, char **argv)
{
    vspTestInit(&argc, &argv);
    vspTestAdd("/wrapper/round-trip", testRoundTrip);
    vspTestAdd("/wrapper/flags-alone", testFlagsAlone);
    vspTestAdd("/wrapper/options", testOptions);
    vspTestAdd("/wrapper/position", testPosition);
    vspTestAdd("/wrapper/length", testLength);
    vspTestAdd("/wrapper/shorter-than-before", testShorterThanBefore);
    vspTestAdd("/wrapper/non-blocking", testNonBlocking);
    vspTestAdd("/wrapper/kind-of-end", testKindOfEnd);
    vspTestAdd("/wrapper/close-on-exec", testCloseOnExec);
    vspTestAdd("/wrapper/statistics", testStatistics);
    vspTestAdd("/wrapper/progress", testProgress);
    vspTestAdd("/wrapper/refused", testRefused);
    vspTestAdd("/wrapper/accepted", testAccepted);
    vspTestAdd("/wrapper/options-refused", testOptionsRefused);
    vspTestAdd("/wrapper/still-open", testStillOpen);
    vspTestAdd("/wrapper/number-reused", testNumberReused);
    vspTestAdd("/wrapper/close-twice", testCloseTwice);
    vspTestAdd("/wrapper/null", testNull);
    vspTestAdd("/wrapper/free-without-close", testFreeWithoutClose);
    vspTestAdd("/wrapper/names", testNames);
    vspTestAdd("/wrapper/unlinked", testUnlinked);
    vspTestAdd("/wrapper/no-trace", testNoTrace);
    return vspTestRun();
}
