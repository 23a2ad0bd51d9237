/*
 * test-transports.c: one body for each kind of transport, blocking or not, in odd pieces
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "testdata.h"
#include "testutil.h"
#include "vspfd.h"
#include "vspio.h"
#include "vsptransport.h"

#define LENGTH (5 * 1024 * 1024 + 3)

typedef struct {
    vspTransport kind;
    gboolean readerBlocks;
    gboolean writerBlocks;
} Case;

typedef struct {
    int fd;
    gsize piece;
} Writer;

static void
openPair(const Case *test, vspTransportPair *pair)
{
    g_autoptr(GError) error = NULL;

    g_assert_cmpint(vspTransportOpen(test->kind, pair, &error), ==, 0);
    g_assert_no_error(error);
    g_assert_null(pair->fallback);
    g_assert_cmpint(vspFdSetNonBlocking(pair->readEnd, !test->readerBlocks), ==, 0);
    g_assert_cmpint(vspFdSetNonBlocking(pair->writeEnd, !test->writerBlocks), ==, 0);
}

static gpointer
writeAll(gpointer opaque)
{
    Writer *writer = opaque;
    g_autofree char *buf = g_malloc(writer->piece);

    for (guint64 done = 0; done < LENGTH; done += writer->piece) {
        gsize len = MIN(writer->piece, LENGTH - done);

        vspTestFill(buf, len, done);
        g_assert_cmpint(vspWriteFull(writer->fd, buf, len), ==, 0);
    }
    vspFdClose(&writer->fd);
    return NULL;
}

static void
transfer(const Case *test, gsize in, gsize out)
{
    vspTransportPair pair;
    Writer writer = { .piece = in };
    g_autofree char *buf = g_malloc(out);
    guint64 done = 0;
    GThread *thread;
    ssize_t n;

    openPair(test, &pair);
    writer.fd = vspFdSteal(&pair.writeEnd);
    thread = g_thread_new("writer", writeAll, &writer);
    while ((n = vspReadFull(pair.readEnd, buf, out)) > 0) {
        vspTestAssertData(buf, n, done);
        done += n;
    }
    g_assert_cmpint(n, ==, 0);
    g_assert_cmpuint(done, ==, LENGTH);
    g_thread_join(thread);
    vspTransportClose(&pair);
}

/* Bytes that go in before the other side takes any; 0 if the end blocks. */
static gsize
fillUp(const Case *test, vspTransportPair *pair)
{
    static const char zeros[4096];
    gsize done = 0;
    ssize_t n;

    if (test->writerBlocks)
        return 0;
    while ((n = write(pair->writeEnd, zeros, sizeof(zeros))) > 0)
        done += n;
    g_assert_cmpint(n, ==, -1);
    g_assert_cmpint(errno, ==, EAGAIN);
    return done;
}

static void
run(gconstpointer opaque)
{
    static const gsize pieces[] = { 1021, 4096, 65537, LENGTH };
    const Case *test = opaque;
    vspTransportPair pair;
    char byte = 'x';
    gsize full;

    for (guint i = 0; i < G_N_ELEMENTS(pieces); i++) {
        for (guint k = 0; k < G_N_ELEMENTS(pieces); k++)
            transfer(test, pieces[i], pieces[k]);
    }

    /* Nothing there yet. */
    openPair(test, &pair);
    g_assert_cmpint(vspPollOne(pair.readEnd, POLLIN, 0), ==, 0);
    if (!test->readerBlocks) {
        g_assert_cmpint(read(pair.readEnd, &byte, 1), ==, -1);
        g_assert_cmpint(errno, ==, EAGAIN);
    }
    /* As much fits as was told, or about. */
    full = fillUp(test, &pair);
    if (full > 0) {
        g_assert_cmpuint(full, >=, pair.granted / 2);
        g_assert_cmpint(vspPollOne(pair.writeEnd, POLLOUT, 0), ==, 0);
    }
    /* The reader goes. */
    vspFdClose(&pair.readEnd);
    g_assert_true(vspPollOne(pair.writeEnd, POLLOUT, 0) & (POLLERR | POLLHUP));
    g_assert_cmpint(write(pair.writeEnd, &byte, 1), ==, -1);
    g_assert_cmpint(errno, ==, EPIPE);
    vspTransportClose(&pair);

    /* The writer goes: what it wrote comes, then the end, more than once. */
    openPair(test, &pair);
    g_assert_cmpint(write(pair.writeEnd, &byte, 1), ==, 1);
    vspFdClose(&pair.writeEnd);
    g_assert_cmpint(read(pair.readEnd, &byte, 1), ==, 1);
    g_assert_cmpint(read(pair.readEnd, &byte, 1), ==, 0);
    g_assert_cmpint(read(pair.readEnd, &byte, 1), ==, 0);
    vspTransportClose(&pair);
}

int
main(int argc, char **argv)
{
    static const Case cases[] = {
        { VSP_TRANSPORT_PIPE, TRUE, TRUE },    { VSP_TRANSPORT_PIPE, FALSE, TRUE },
        { VSP_TRANSPORT_PIPE, TRUE, FALSE },   { VSP_TRANSPORT_PIPE, FALSE, FALSE },
        { VSP_TRANSPORT_SOCKET, TRUE, TRUE },  { VSP_TRANSPORT_SOCKET, FALSE, TRUE },
        { VSP_TRANSPORT_SOCKET, TRUE, FALSE }, { VSP_TRANSPORT_SOCKET, FALSE, FALSE },
    };

    vspTestInit(&argc, &argv);
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path =
            g_strdup_printf("/transports/%s/%s-to-%s", vspTransportToString(cases[i].kind),
                            cases[i].writerBlocks ? "blocking" : "non-blocking",
                            cases[i].readerBlocks ? "blocking" : "non-blocking");

        vspTestAddData(path, &cases[i], run);
    }
    return vspTestRun();
}
