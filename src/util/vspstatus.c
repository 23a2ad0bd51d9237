/*
 * vspstatus.c: the status channel between library and iohelper
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <glib/gi18n-lib.h>
#include <sys/socket.h>
#include <string.h>
#include <vmspool/vsp-filewrapper.h>

#include "vsperrorpriv.h"
#include "vspstatus.h"

static gsize
recordSize(guint type)
{
    switch (type) {
    case VSP_STATUS_HELLO:
        return sizeof(vspStatusHello);
    case VSP_STATUS_PROGRESS:
        return sizeof(vspStatusProgress);
    case VSP_STATUS_VERDICT:
        return sizeof(vspStatusVerdict);
    case VSP_STATUS_CONTROL:
        return sizeof(vspStatusControl);
    default:
        return 0;
    }
}

int
vspStatusPair(int *library, int *helper)
{
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
        return -1;
    *library = fds[0];
    *helper = fds[1];
    return 0;
}

int
vspStatusSend(int fd, vspStatusRecord *record, vspStatusType type, gboolean blocking)
{
    gsize size = recordSize(type);
    ssize_t n;

    record->header = (vspStatusHeader){
        .magic = VSP_STATUS_MAGIC,
        .version = VSP_STATUS_VERSION,
        .type = type,
    };
    do {
        n = send(fd, record, size, MSG_NOSIGNAL | (blocking ? 0 : MSG_DONTWAIT));
    } while (n < 0 && errno == EINTR);
    if (n < 0 && !blocking && (errno == EAGAIN || errno == EWOULDBLOCK))
        return 0;
    return n < 0 ? -1 : 0;
}

/* Text comes from another process: it ends where its field ends, and is printable (the helper writes
 * English, in ASCII). */
static void
cleanText(char *text, gsize size)
{
    text[size - 1] = '\0';
    for (char *p = text; *p; p++) {
        if (!g_ascii_isprint(*p))
            *p = '?';
    }
}

int
vspStatusReceive(int fd, vspStatusRecord *record, GError **error)
{
    ssize_t n;

    do {
        n = recv(fd, record, sizeof(*record), MSG_DONTWAIT | MSG_TRUNC);
    } while (n < 0 && errno == EINTR);

    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return 0;
    if (n <= 0) {
        vspSetError(error, VSP_ERROR_HELPER_DIED, _("the iohelper closed its status channel"));
        return -1;
    }
    if ((gsize) n < sizeof(vspStatusHeader) || record->header.magic != VSP_STATUS_MAGIC) {
        vspSetError(error, VSP_ERROR_HELPER_VERSION,
                    _("the iohelper sent something that is not a status record"));
        return -1;
    }
    if (record->header.version != VSP_STATUS_VERSION) {
        vspSetError(error, VSP_ERROR_HELPER_VERSION,
                    _("the iohelper speaks version %u of the status protocol, the library version %d"),
                    record->header.version, VSP_STATUS_VERSION);
        return -1;
    }
    if ((gsize) n != recordSize(record->header.type)) {
        vspSetError(error, VSP_ERROR_HELPER_VERSION,
                    _("the iohelper sent a status record of type %u with %zd bytes"),
                    record->header.type, n);
        return -1;
    }
    if (record->header.type == VSP_STATUS_HELLO)
        cleanText(record->hello.release, sizeof(record->hello.release));
    if (record->header.type == VSP_STATUS_VERDICT) {
        vspStatusStatistics *s = &record->verdict.statistics;

        cleanText(record->verdict.detail, sizeof(record->verdict.detail));
        cleanText(s->engine, sizeof(s->engine));
        cleanText(s->endpoint, sizeof(s->endpoint));
        cleanText(s->notice, sizeof(s->notice));
        cleanText(s->compression, sizeof(s->compression));
    }
    return 1;
}

void
vspStatusVerdictToError(const vspStatusVerdict *verdict, const char *name, GError **error)
{
    unsigned long long offset = verdict->offset;
    gboolean stream = verdict->side == VSP_SIDE_STREAM;
    /* The helper speaks English; its words are in our catalogue. */
    const char *detail = verdict->detail[0] ? _(verdict->detail) : "";

    if (verdict->errnum == 0) {
        vspSetError(error, VSP_ERROR_IO, _("the iohelper failed on '%s': %s"), name,
                    *detail ? detail : _("no reason given"));
        return;
    }
    switch ((vspOperation) verdict->operation) {
    case VSP_OPERATION_READ:
        vspSetErrno(error, verdict->errnum,
                    stream ? _("cannot read the stream for '%s' at offset %llu")
                           : _("cannot read '%s' at offset %llu"),
                    name, offset);
        return;
    case VSP_OPERATION_WRITE:
        if (stream && (verdict->errnum == EPIPE || verdict->errnum == ECONNRESET)) {
            vspSetError(error, VSP_ERROR_READER_GONE,
                        _("the reader of '%s' closed its end after %llu bytes"), name, offset);
            return;
        }
        vspSetErrno(error, verdict->errnum,
                    stream ? _("cannot write the stream from '%s' at offset %llu")
                           : _("cannot write '%s' at offset %llu"),
                    name, offset);
        return;
    case VSP_OPERATION_TRUNCATE:
        vspSetErrno(error, verdict->errnum, _("cannot set the length of '%s' to %llu"), name, offset);
        return;
    case VSP_OPERATION_SYNC:
        vspSetErrno(error, verdict->errnum, _("cannot sync '%s' to the disk"), name);
        return;
    case VSP_OPERATION_CLOSE:
        vspSetErrno(error, verdict->errnum, _("cannot close '%s'"), name);
        return;
    case VSP_OPERATION_SEEK:
        vspSetErrno(error, verdict->errnum, _("cannot find the position in '%s'"), name);
        return;
    case VSP_OPERATION_MEMORY:
        vspSetErrno(error, verdict->errnum, _("no memory for the buffers of '%s'"), name);
        return;
    case VSP_OPERATION_DIRECT:
        vspSetError(error, VSP_ERROR_NO_DIRECT_IO, _("cache mode refused for '%s': %s: %s"), name,
                    detail, g_strerror(verdict->errnum));
        return;
    case VSP_OPERATION_COMPRESS:
        vspSetError(error, VSP_ERROR_IO, _("cannot compress the stream for '%s' at offset %llu: %s"),
                    name, offset, *detail ? detail : g_strerror(verdict->errnum));
        return;
    case VSP_OPERATION_DECOMPRESS:
        vspSetError(error,
                    verdict->errnum == ENODATA   ? VSP_ERROR_IMAGE_CUT
                    : verdict->errnum == EBADMSG ? VSP_ERROR_IMAGE_CORRUPT
                                                 : VSP_ERROR_IO,
                    _("cannot decompress '%s', at byte %llu of the compressed data: %s"), name, offset,
                    *detail ? detail : g_strerror(verdict->errnum));
        return;
    case VSP_OPERATION_COMPRESSOR:
        vspSetError(error, stream ? VSP_ERROR_FAILED : VSP_ERROR_IMAGE_UNSUPPORTED,
                    stream ? _("cannot compress '%s': %s") : _("cannot decompress '%s': %s"), name,
                    *detail ? detail : g_strerror(verdict->errnum));
        return;
    case VSP_OPERATION_NONE:
    case VSP_OPERATION_SETUP:
    default:
        vspSetErrno(error, verdict->errnum, _("cannot set up the transfer of '%s' (%s)"), name,
                    detail);
        return;
    }
}

static void
addText(GVariantBuilder *builder, const char *key, const char *value)
{
    if (value && *value)
        g_variant_builder_add(builder, "{sv}", key, g_variant_new_string(value));
}

static void
addNumber(GVariantBuilder *builder, const char *key, guint64 value)
{
    g_variant_builder_add(builder, "{sv}", key, g_variant_new_uint64(value));
}

char *
vspDigestToText(const guint8 digest[VSP_STATUS_DIGEST_SIZE])
{
    GString *text = g_string_new(NULL);

    for (gsize i = 0; i < VSP_STATUS_DIGEST_SIZE; i++)
        g_string_append_printf(text, "%02x", digest[i]);
    return g_string_free(text, FALSE);
}

/* Which side the other one waited for; NULL where neither stands out. */
static const char *
bottleneck(const vspStatusStatistics *s)
{
    /* Three quarters of the time: below that both were busy. */
    if (s->transferNs == 0)
        return NULL;
    if (s->stallSourceNs > s->transferNs / 4 * 3)
        return "source";
    if (s->stallSinkNs > s->transferNs / 4 * 3)
        return "destination";
    return NULL;
}

void
vspStatusStatisticsToReport(const vspStatusStatistics *s, GVariantBuilder *builder)
{
    addText(builder, "engine", s->engine);
    addText(builder, "endpoint", s->endpoint);
    addText(builder, "cache", vspCacheModeToString(s->cacheMode));
    addText(builder, "cache-asked", vspCacheModeToString(s->cacheAsked));
    addText(builder, "notice", s->notice);
    addNumber(builder, "bytes-in", s->bytesIn);
    addNumber(builder, "bytes-out", s->bytesOut);
    addNumber(builder, "start-offset", s->startOffset);
    addNumber(builder, "setup-ns", s->setupNs);
    addNumber(builder, "transfer-ns", s->transferNs);
    addNumber(builder, "sync-ns", s->syncNs);
    addNumber(builder, "stall-source-ns", s->stallSourceNs);
    addNumber(builder, "stall-sink-ns", s->stallSinkNs);
    addNumber(builder, "buffers", s->buffers);
    addNumber(builder, "buffer-size", s->bufferSize);
    addNumber(builder, "max-in-flight", s->maxInFlight);
    addNumber(builder, "alignment", s->alignment);
    addNumber(builder, "hole-bytes", s->holeBytes);
    if (s->cachedBefore >= 0)
        addNumber(builder, "cached-before", s->cachedBefore);
    if (s->cachedAfter >= 0)
        addNumber(builder, "cached-after", s->cachedAfter);
    if (s->flags & VSP_STATISTICS_DIGEST || s->compression[0]) {
        addNumber(builder, "payload-bytes", s->payloadBytes);
        addNumber(builder, "raw-bytes", s->rawBytes);
    }
    addText(builder, "compression", s->compression);
    if (s->flags & VSP_STATISTICS_DIGEST) {
        g_autofree char *hex = vspDigestToText(s->digest);

        addText(builder, "digest", hex);
    }
    addText(builder, "bottleneck", bottleneck(s));
    g_variant_builder_add(builder, "{sv}", "registered-buffers",
                          g_variant_new_boolean(!!(s->flags & VSP_STATISTICS_REGISTERED_BUFFERS)));
    g_variant_builder_add(builder, "{sv}", "io-uring-refused",
                          g_variant_new_boolean(!!(s->flags & VSP_STATISTICS_NO_URING)));
}
