/*
 * test-io.c: whole reads and writes, whatever the kernel hands out at once
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "testdata.h"
#include "testutil.h"
#include "vspfd.h"
#include "vspio.h"

#define LENGTH (3 * 1024 * 1024 + 11)

typedef struct {
    int fds[2];
    gsize chunk;
    GThread *thread;
} Pipe;

static void
openPipe(Pipe *p, gboolean nonBlocking)
{
    g_assert_cmpint(pipe2(p->fds, O_CLOEXEC), ==, 0);
    g_assert_cmpint(vspFdSetNonBlocking(p->fds[0], nonBlocking), ==, 0);
    g_assert_cmpint(vspFdSetNonBlocking(p->fds[1], nonBlocking), ==, 0);
}

static void
closePipe(Pipe *p)
{
    vspFdClose(&p->fds[0]);
    vspFdClose(&p->fds[1]);
}

/* Writes in odd pieces, then ends. */
static gpointer
writeInPieces(gpointer opaque)
{
    Pipe *p = opaque;
    g_autofree char *data = g_malloc(LENGTH);

    vspTestFill(data, LENGTH, 0);
    for (gsize done = 0; done < LENGTH; done += p->chunk)
        g_assert_cmpint(vspWriteFull(p->fds[1], data + done, MIN(p->chunk, LENGTH - done)), ==, 0);
    vspFdClose(&p->fds[1]);
    return NULL;
}

static void
onTick(int signum)
{
}

/* Interrupts system calls all the time. The limit's alarm is the same timer: for a child of its
 * own. */
static void
startTicks(void)
{
    struct sigaction action = { .sa_handler = onTick }; /* without SA_RESTART */
    struct itimerval timer = { { 0, 300 }, { 0, 300 } };

    g_assert_cmpint(sigaction(SIGALRM, &action, NULL), ==, 0);
    g_assert_cmpint(setitimer(ITIMER_REAL, &timer, NULL), ==, 0);
}

static void
transfer(gsize chunk, gsize asked, gboolean nonBlocking)
{
    Pipe p = { .chunk = chunk };
    g_autofree char *data = g_malloc(LENGTH + 1);
    gsize done = 0;

    openPipe(&p, nonBlocking);
    p.thread = g_thread_new("writer", writeInPieces, &p);
    for (;;) {
        ssize_t n = vspReadFull(p.fds[0], data + done, MIN(asked, LENGTH + 1 - done));

        g_assert_cmpint(n, >=, 0);
        done += n;
        /* Short only at the end. */
        if ((gsize)n < asked)
            break;
    }
    g_thread_join(p.thread);
    g_assert_cmpuint(done, ==, LENGTH);
    vspTestAssertData(data, LENGTH, 0);
    closePipe(&p);
}

static void
testWhole(void)
{
    static const gsize chunks[] = { 4099, 65536, LENGTH };

    for (guint i = 0; i < G_N_ELEMENTS(chunks); i++) {
        transfer(chunks[i], LENGTH + 1, FALSE);
        transfer(chunks[i], 65537, FALSE);
        transfer(chunks[i], 65537, TRUE);
        transfer(chunks[i], LENGTH + 1, TRUE);
    }
}

static gpointer
readSlowly(gpointer opaque)
{
    Pipe *p = opaque;
    g_autofree char *data = g_malloc(LENGTH);
    gsize done = 0;

    while (done < LENGTH) {
        ssize_t n = read(p->fds[0], data + done, MIN(p->chunk, LENGTH - done));

        if (n < 0 && errno == EINTR)
            continue;
        g_assert_cmpint(n, >, 0);
        done += n;
    }
    vspTestAssertData(data, LENGTH, 0);
    return NULL;
}

static void
transferWithSignals(gpointer opaque)
{
    Pipe p = { .chunk = 997 };
    g_autofree char *data = g_malloc(LENGTH);

    vspTestFill(data, LENGTH, 0);
    openPipe(&p, FALSE);
    p.thread = g_thread_new("reader", readSlowly, &p);
    startTicks();
    g_assert_cmpint(vspWriteFull(p.fds[1], data, LENGTH), ==, 0);
    g_thread_join(p.thread);
    memset(data, 0, LENGTH);
    p.chunk = 997;
    p.thread = g_thread_new("writer", writeInPieces, &p);
    g_assert_cmpint(vspReadFull(p.fds[0], data, LENGTH), ==, LENGTH);
    vspTestAssertData(data, LENGTH, 0);
    g_thread_join(p.thread);
}

static void
testInterrupted(void)
{
    vspTestInChild(transferWithSignals, NULL);
}

static void
testErrors(void)
{
    Pipe p = { 0 };
    char buf[16] = "";
    g_auto(vspFd) full = vspTestOpen("/dev/full", O_WRONLY);

    openPipe(&p, FALSE);
    g_assert_cmpint(vspReadFull(p.fds[1], buf, sizeof(buf)), ==, -1);
    g_assert_cmpint(errno, ==, EBADF);
    g_assert_cmpint(vspWriteFull(p.fds[0], buf, sizeof(buf)), ==, -1);
    g_assert_cmpint(errno, ==, EBADF);
    vspFdClose(&p.fds[0]);
    g_assert_cmpint(vspWriteFull(p.fds[1], buf, sizeof(buf)), ==, -1);
    g_assert_cmpint(errno, ==, EPIPE);
    g_assert_cmpint(vspWriteFull(full, buf, sizeof(buf)), ==, -1);
    g_assert_cmpint(errno, ==, ENOSPC);
    g_assert_cmpint(vspPwriteFull(full, buf, sizeof(buf), 0), ==, -1);
    g_assert_cmpint(errno, ==, ENOSPC);
    g_assert_cmpint(vspPwriteFull(p.fds[1], buf, sizeof(buf), 0), ==, -1);
    g_assert_cmpint(errno, ==, ESPIPE);
    closePipe(&p);
}

static void
testNothing(void)
{
    Pipe p = { 0 };
    char byte;

    /* No byte asked for: no call that could block. */
    openPipe(&p, FALSE);
    g_assert_cmpint(vspReadFull(p.fds[0], &byte, 0), ==, 0);
    g_assert_cmpint(vspWriteFull(p.fds[1], &byte, 0), ==, 0);
    closePipe(&p);
}

static void
testAtOffset(void)
{
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autofree char *path = vspTestPath(dir, "file");
    g_auto(vspFd) fd = vspTestOpen(path, O_RDWR | O_CREAT);
    g_autofree char *data = g_malloc(LENGTH);

    vspTestFill(data, LENGTH, 0);
    g_assert_cmpint(vspPwriteFull(fd, data, LENGTH, 92), ==, 0);
    g_assert_cmpint(lseek(fd, 0, SEEK_CUR), ==, 0);
    memset(data, 0, LENGTH);
    g_assert_cmpint(vspPreadFull(fd, data, LENGTH, 92), ==, LENGTH);
    vspTestAssertData(data, LENGTH, 0);
    g_assert_cmpint(vspPreadFull(fd, data, 100, 92 + LENGTH - 7), ==, 7);
    vspTestAssertData(data, 7, LENGTH - 7);
    g_assert_cmpint(vspPreadFull(fd, data, 100, 92 + LENGTH), ==, 0);
    g_assert_cmpint(lseek(fd, 0, SEEK_CUR), ==, 0);
    g_assert_cmpint(vspPreadFull(fd, data, 100, -1), ==, -1);
    g_assert_cmpint(errno, ==, EINVAL);
}

static void
testPoll(void)
{
    Pipe p = { 0 };

    openPipe(&p, FALSE);
    g_assert_cmpint(vspPollOne(p.fds[0], POLLIN, 0), ==, 0);
    g_assert_cmpint(vspPollOne(p.fds[0], POLLIN, vspDeadline(1)), ==, 0);
    g_assert_cmpint(vspPollOne(p.fds[1], POLLOUT, -1), ==, POLLOUT);
    g_assert_cmpint(write(p.fds[1], "x", 1), ==, 1);
    g_assert_cmpint(vspPollOne(p.fds[0], POLLIN, -1), ==, POLLIN);
    vspFdClose(&p.fds[1]);
    g_assert_cmpint(vspPollOne(p.fds[0], 0, -1), ==, POLLHUP);
    closePipe(&p);
}

static void
pollWithSignals(gpointer opaque)
{
    Pipe p = { 0 };
    gint64 deadline = vspDeadline(50);

    openPipe(&p, FALSE);
    startTicks();
    /* Neither early, nor started anew by each signal. */
    g_assert_cmpint(vspPollOne(p.fds[0], POLLIN, deadline), ==, 0);
    g_assert_cmpint(g_get_monotonic_time(), >=, deadline);
}

static void
testPollInterrupted(void)
{
    vspTestInChild(pollWithSignals, NULL);
}

int
main(int argc, char **argv)
{
    vspTestInit(&argc, &argv);
    vspTestAdd("/io/whole", testWhole);
    vspTestAdd("/io/interrupted", testInterrupted);
    vspTestAdd("/io/errors", testErrors);
    vspTestAdd("/io/nothing", testNothing);
    vspTestAdd("/io/at-offset", testAtOffset);
    vspTestAdd("/io/poll", testPoll);
    vspTestAdd("/io/poll-interrupted", testPollInterrupted);
    return vspTestRun();
}
