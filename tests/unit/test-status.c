/*
 * test-status.c: records of the status channel, and what is not one
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vmspool/vsp-filewrapper.h>

#include "testutil.h"
#include "vsperrorpriv.h"
#include "vspfd.h"
#include "vspstatus.h"

typedef struct {
    int library;
    int helper;
} Channel;

static void
channelClear(Channel *channel)
{
    vspFdClose(&channel->library);
    vspFdClose(&channel->helper);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Channel, channelClear)

static Channel
openChannel(void)
{
    Channel channel;

    g_assert_cmpint(vspStatusPair(&channel.library, &channel.helper), ==, 0);
    return channel;
}

static void
testPair(void)
{
    g_auto(Channel) channel = openChannel();
    int type;
    socklen_t len = sizeof(type);

    g_assert_true(fcntl(channel.library, F_GETFD) & FD_CLOEXEC);
    g_assert_true(fcntl(channel.helper, F_GETFD) & FD_CLOEXEC);
    g_assert_cmpint(getsockopt(channel.helper, SOL_SOCKET, SO_TYPE, &type, &len), ==, 0);
    g_assert_cmpint(type, ==, SOCK_SEQPACKET);
}

/* The sizes are the protocol: a new field goes into the reserved room. */
static void
testSizes(void)
{
    g_assert_cmpuint(sizeof(vspStatusHeader), ==, 8);
    g_assert_cmpuint(sizeof(vspStatusHello), ==, 112);
    g_assert_cmpuint(sizeof(vspStatusProgress), ==, 112);
    g_assert_cmpuint(sizeof(vspStatusStatistics), ==, 384);
    g_assert_cmpuint(sizeof(vspStatusVerdict), ==, 736);
}

static void
send1(Channel *channel, vspStatusType type)
{
    vspStatusRecord record = { 0 };

    if (type == VSP_STATUS_HELLO)
        record.hello.pid = 42;
    else if (type == VSP_STATUS_PROGRESS)
        record.progress.bytesIn = G_GUINT64_CONSTANT(5) << 32;
    else
        record.verdict.statistics.bytesOut = G_GUINT64_CONSTANT(7) << 32;
    g_assert_cmpint(vspStatusSend(channel->helper, &record, type, TRUE), ==, 0);
}

static void
receive1(Channel *channel, vspStatusRecord *record, vspStatusType type)
{
    g_autoptr(GError) error = NULL;

    g_assert_cmpint(vspStatusReceive(channel->library, record, &error), ==, 1);
    g_assert_no_error(error);
    g_assert_cmpint(record->header.type, ==, type);
}

static void
assertDied(Channel *channel)
{
    vspStatusRecord record;
    g_autoptr(GError) error = NULL;

    g_assert_cmpint(vspStatusReceive(channel->library, &record, &error), ==, -1);
    g_assert_error(error, VSP_ERROR, VSP_ERROR_HELPER_DIED);
}

static void
testLife(void)
{
    g_auto(Channel) channel = openChannel();
    g_autoptr(GError) error = NULL;
    vspStatusRecord record;

    g_assert_cmpint(vspStatusReceive(channel.library, &record, &error), ==, 0);
    g_assert_no_error(error);
    send1(&channel, VSP_STATUS_HELLO);
    send1(&channel, VSP_STATUS_PROGRESS);
    send1(&channel, VSP_STATUS_VERDICT);
    vspFdClose(&channel.helper);

    /* What was sent before the hangup comes before it. */
    receive1(&channel, &record, VSP_STATUS_HELLO);
    g_assert_cmpuint(record.hello.pid, ==, 42);
    receive1(&channel, &record, VSP_STATUS_PROGRESS);
    g_assert_cmpuint(record.progress.bytesIn, ==, G_GUINT64_CONSTANT(5) << 32);
    receive1(&channel, &record, VSP_STATUS_VERDICT);
    g_assert_cmpuint(record.verdict.statistics.bytesOut, ==, G_GUINT64_CONSTANT(7) << 32);
    assertDied(&channel);
    assertDied(&channel);
}

/* A helper must not wait for a library that does not listen, nor die of one that is gone. */
static void
testNobodyListens(void)
{
    g_auto(Channel) channel = openChannel();
    vspStatusRecord record = { 0 };
    guint received = 0;
    int rc;

    for (guint i = 0; i < 100000; i++)
        g_assert_cmpint(vspStatusSend(channel.helper, &record, VSP_STATUS_PROGRESS, FALSE), ==, 0);
    while ((rc = vspStatusReceive(channel.library, &record, NULL)) > 0)
        received++;
    g_assert_cmpint(rc, ==, 0);
    g_assert_cmpuint(received, >, 0);
    g_assert_cmpuint(received, <, 100000);

    vspFdClose(&channel.library);
    g_assert_cmpint(vspStatusSend(channel.helper, &record, VSP_STATUS_VERDICT, TRUE), ==, -1);
    g_assert_cmpint(errno, ==, EPIPE);
    g_assert_cmpint(vspStatusSend(channel.helper, &record, VSP_STATUS_PROGRESS, FALSE), ==, -1);
}

static void
assertForeign(Channel *channel, const void *bytes, gsize len, const char *words)
{
    g_autoptr(GError) error = NULL;
    vspStatusRecord record;

    g_assert_cmpint(send(channel->helper, bytes, len, 0), ==, len);
    g_assert_cmpint(vspStatusReceive(channel->library, &record, &error), ==, -1);
    g_assert_error(error, VSP_ERROR, VSP_ERROR_HELPER_VERSION);
    g_assert_nonnull(strstr(error->message, words));
}

static void
testForeign(void)
{
    g_auto(Channel) channel = openChannel();
    g_autofree char *large = g_malloc0(60000);
    union {
        vspStatusHeader header;
        char bytes[60000];
    } *packet = (gpointer)large;
    const vspStatusHeader good = { VSP_STATUS_MAGIC, VSP_STATUS_VERSION, VSP_STATUS_HELLO };

    assertForeign(&channel, "x", 1, "not a status record");
    assertForeign(&channel, "1VSP", 4, "not a status record");
    packet->header = good;
    packet->header.magic ^= 1;
    assertForeign(&channel, packet, sizeof(vspStatusHello), "not a status record");
    packet->header = good;
    packet->header.version = 7;
    assertForeign(&channel, packet, sizeof(vspStatusHello), "speaks version 7");
    /* Another version may have other sizes: the version is what is told. */
    assertForeign(&channel, packet, 200, "speaks version 7");
    packet->header.version = 0;
    assertForeign(&channel, packet, sizeof(vspStatusHello), "speaks version 0");
    packet->header = good;
    assertForeign(&channel, packet, sizeof(vspStatusHello) - 1, "111 bytes");
    assertForeign(&channel, packet, sizeof(vspStatusHello) + 1, "113 bytes");
    assertForeign(&channel, packet, sizeof(vspStatusHeader), "8 bytes");
    assertForeign(&channel, packet, 60000, "60000 bytes");
    packet->header.type = VSP_STATUS_VERDICT;
    assertForeign(&channel, packet, sizeof(vspStatusHello), "type 3");
    packet->header.type = 0;
    assertForeign(&channel, packet, sizeof(vspStatusHello), "type 0");
    packet->header.type = 4;
    assertForeign(&channel, packet, 8, "type 4");
    packet->header.type = 65535;
    assertForeign(&channel, packet, 8, "type 65535");
}

/* Text that does not end within its field would be read beyond it. */
static void
testUnendedText(void)
{
    g_auto(Channel) channel = openChannel();
    vspStatusRecord record;
    vspStatusStatistics *s = &record.verdict.statistics;

    memset(&record, 'x', sizeof(record));
    g_assert_cmpint(vspStatusSend(channel.helper, &record, VSP_STATUS_HELLO, TRUE), ==, 0);
    g_assert_cmpint(vspStatusSend(channel.helper, &record, VSP_STATUS_VERDICT, TRUE), ==, 0);
    receive1(&channel, &record, VSP_STATUS_HELLO);
    g_assert_cmpuint(strlen(record.hello.release), ==, sizeof(record.hello.release) - 1);
    receive1(&channel, &record, VSP_STATUS_VERDICT);
    g_assert_cmpuint(strlen(record.verdict.detail), ==, sizeof(record.verdict.detail) - 1);
    g_assert_cmpuint(strlen(s->engine), ==, sizeof(s->engine) - 1);
    g_assert_cmpuint(strlen(s->endpoint), ==, sizeof(s->endpoint) - 1);
    g_assert_cmpuint(strlen(s->notice), ==, sizeof(s->notice) - 1);
}

static void
testSentences(void)
{
    static const struct {
        vspOperation operation;
        vspSide side;
        int errnum;
        const char *detail;
        int code;
        const char *text;
    } rows[] = {
        { VSP_OPERATION_WRITE, VSP_SIDE_FILE, ENOSPC, "", VSP_ERROR_NO_SPACE,
          "cannot write 'NAME' at offset 5368709120: No space left on device" },
        { VSP_OPERATION_WRITE, VSP_SIDE_FILE, EPIPE, "", VSP_ERROR_IO,
          "cannot write 'NAME' at offset 5368709120: Broken pipe" },
        { VSP_OPERATION_WRITE, VSP_SIDE_STREAM, EIO, "", VSP_ERROR_IO,
          "cannot write the stream from 'NAME' at offset 5368709120: Input/output error" },
        { VSP_OPERATION_WRITE, VSP_SIDE_STREAM, EPIPE, "", VSP_ERROR_READER_GONE,
          "the reader of 'NAME' closed its end after 5368709120 bytes" },
        { VSP_OPERATION_WRITE, VSP_SIDE_STREAM, ECONNRESET, "", VSP_ERROR_READER_GONE,
          "the reader of 'NAME' closed its end after 5368709120 bytes" },
        { VSP_OPERATION_READ, VSP_SIDE_FILE, EIO, "", VSP_ERROR_IO,
          "cannot read 'NAME' at offset 5368709120: Input/output error" },
        { VSP_OPERATION_READ, VSP_SIDE_STREAM, EIO, "", VSP_ERROR_IO,
          "cannot read the stream for 'NAME' at offset 5368709120: Input/output error" },
        { VSP_OPERATION_TRUNCATE, VSP_SIDE_FILE, EDQUOT, "", VSP_ERROR_NO_SPACE,
          "cannot set the length of 'NAME' to 5368709120: Disk quota exceeded" },
        { VSP_OPERATION_SYNC, VSP_SIDE_FILE, EIO, "", VSP_ERROR_IO,
          "cannot sync 'NAME' to the disk: Input/output error" },
        { VSP_OPERATION_CLOSE, VSP_SIDE_FILE, EDQUOT, "", VSP_ERROR_NO_SPACE,
          "cannot close 'NAME': Disk quota exceeded" },
        { VSP_OPERATION_SEEK, VSP_SIDE_FILE, ESPIPE, "", VSP_ERROR_IO,
          "cannot find the position in 'NAME': Illegal seek" },
        { VSP_OPERATION_MEMORY, VSP_SIDE_NONE, ENOMEM, "", VSP_ERROR_IO,
          "no memory for the buffers of 'NAME': Cannot allocate memory" },
        { VSP_OPERATION_DIRECT, VSP_SIDE_FILE, EINVAL, "why", VSP_ERROR_NO_DIRECT_IO,
          "cache mode refused for 'NAME': why: Invalid argument" },
        { VSP_OPERATION_SETUP, VSP_SIDE_FILE, EISDIR, "the file's descriptor", VSP_ERROR_IO,
          "cannot set up the transfer of 'NAME' (the file's descriptor): Is a directory" },
        { VSP_OPERATION_NONE, VSP_SIDE_NONE, 0, "what the helper says", VSP_ERROR_IO,
          "the iohelper failed on 'NAME': what the helper says" },
        { VSP_OPERATION_WRITE, VSP_SIDE_FILE, 0, "", VSP_ERROR_IO,
          "the iohelper failed on 'NAME': no reason given" },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GError) error = NULL;
        vspStatusVerdict verdict = {
            .operation = rows[i].operation,
            .side = rows[i].side,
            .errnum = rows[i].errnum,
            .offset = G_GUINT64_CONSTANT(5) << 30,
        };

        g_strlcpy(verdict.detail, rows[i].detail, sizeof(verdict.detail));
        vspStatusVerdictToError(&verdict, "NAME", &error);
        g_assert_error(error, VSP_ERROR, rows[i].code);
        g_assert_cmpstr(error->message, ==, rows[i].text);
    }
}

/* What a helper says that has gone mad makes a sentence and a report, not a crash. */
static void
testNonsense(void)
{
    g_auto(Channel) channel = openChannel();
    g_autoptr(GError) error = NULL;
    vspStatusRecord record;
    vspStatusVerdict *verdict = &record.verdict;
    GVariantBuilder builder;
    g_autoptr(GVariant) report = NULL;

    memset(&record, 0xff, sizeof(record));
    g_strlcpy(verdict->statistics.notice, "two\nlines", sizeof(verdict->statistics.notice));
    g_assert_cmpint(vspStatusSend(channel.helper, &record, VSP_STATUS_VERDICT, TRUE), ==, 0);
    receive1(&channel, &record, VSP_STATUS_VERDICT);
    vspStatusVerdictToError(verdict, "NAME", &error);
    g_assert_nonnull(error);
    g_assert_true(g_utf8_validate(error->message, -1, NULL));
    g_assert_cmpstr(verdict->statistics.notice, ==, "two?lines");

    g_variant_builder_init(&builder, G_VARIANT_TYPE_VARDICT);
    vspStatusStatisticsToReport(&verdict->statistics, &builder);
    report = g_variant_ref_sink(g_variant_builder_end(&builder));
    g_assert_true(g_variant_is_normal_form(report));
}

static void
testReport(void)
{
    vspStatusStatistics statistics = {
        .bytesIn = 1,
        .bytesOut = 2,
        .startOffset = 3,
        .setupNs = 4,
        .transferNs = 5,
        .syncNs = 6,
        .stallSourceNs = 7,
        .stallSinkNs = 8,
        .bufferSize = 9,
        .buffers = 10,
        .maxInFlight = 11,
        .alignment = 12,
        .cachedBefore = -1,
        .cachedAfter = 13,
        .holeBytes = 14,
        .cacheMode = VSP_CACHE_PACED,
        .cacheAsked = VSP_CACHE_DIRECT,
        .flags = VSP_STATISTICS_NO_URING,
        .engine = "uring",
        .endpoint = "file",
        .notice = "why",
    };
    GVariantBuilder builder;
    g_autoptr(GVariant) report = NULL;
    g_autofree char *text = NULL;

    g_variant_builder_init(&builder, G_VARIANT_TYPE_VARDICT);
    vspStatusStatisticsToReport(&statistics, &builder);
    report = g_variant_ref_sink(g_variant_builder_end(&builder));
    text = g_variant_print(report, FALSE);
    g_assert_cmpstr(
        text, ==,
        "{'engine': <'uring'>, 'endpoint': <'file'>, 'cache': <'paced'>, "
        "'cache-asked': <'direct'>, 'notice': <'why'>, 'bytes-in': <uint64 1>, "
        "'bytes-out': <uint64 2>, 'start-offset': <uint64 3>, 'setup-ns': <uint64 4>, "
        "'transfer-ns': <uint64 5>, "
        "'sync-ns': <uint64 6>, 'stall-source-ns': <uint64 7>, 'stall-sink-ns': <uint64 8>, "
        "'buffers': <uint64 10>, "
        "'buffer-size': <uint64 9>, 'max-in-flight': <uint64 11>, 'alignment': <uint64 12>, "
        "'hole-bytes': <uint64 14>, 'cached-after': <uint64 13>, 'bottleneck': <'source'>, "
        "'registered-buffers': <false>, 'io-uring-refused': <true>}");
}

int
main(int argc, char **argv)
{
    vspTestInit(&argc, &argv);
    vspTestAdd("/status/pair", testPair);
    vspTestAdd("/status/sizes", testSizes);
    vspTestAdd("/status/life", testLife);
    vspTestAdd("/status/nobody-listens", testNobodyListens);
    vspTestAdd("/status/foreign", testForeign);
    vspTestAdd("/status/unended-text", testUnendedText);
    vspTestAdd("/status/sentences", testSentences);
    vspTestAdd("/status/nonsense", testNonsense);
    vspTestAdd("/status/report", testReport);
    return vspTestRun();
}
