/*
 * vspsaveimagepayload.c: an image's payload: how it begins and ends, and its way elsewhere
 *
 * A raw payload is QEMU's migration stream. It ends with a byte of zero, then, unless the machine
 * type has that off, the byte 6, a length and a description in JSON that is so long. That tells a
 * whole stream from a cut one without knowing any device.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vmspool/vsp-copy.h>

#include "vspcompression.h"
#include "vsperrorpriv.h"
#include "vspfd.h"
#include "vspio.h"
#include "vspsaveimagepayload.h"
#include "vspstatus.h"

/* Where the description is looked for. QEMU's have some 100 KiB. Larger: more is read and held of
 * what ends otherwise. */
#define TAIL_MAX (4 * 1024 * 1024)

/* Between two reports of progress, ms. */
#define TICK 100

#define MARK_END 0x00
#define MARK_DESCRIPTION 0x06
#define MARK_SIZE 6 /* the two bytes and the length */

/* Whether the brackets of the JSON object at @text close at its last byte and not before. */
static gboolean
isObject(const char *text, gsize len)
{
    gsize depth = 0;
    gboolean quoted = FALSE;

    for (gsize i = 0; i < len; i++) {
        if (quoted) {
            if (text[i] == '\\')
                i++;
            else if (text[i] == '"')
                quoted = FALSE;
        } else if (text[i] == '"') {
            quoted = TRUE;
        } else if (text[i] == '{' || text[i] == '[') {
            depth++;
        } else if (text[i] == '}' || text[i] == ']') {
            if (depth == 0 || --depth == 0)
                return depth == 0 && i == len - 1;
        }
    }
    return FALSE;
}

static vspPayloadEnd
findEnd(const guint8 *tail, gsize len)
{
    for (gsize i = len; i-- > MARK_SIZE;) {
        const guint8 *mark = tail + i - MARK_SIZE;
        guint32 length;

        if (tail[i] != '{' || mark[0] != MARK_END || mark[1] != MARK_DESCRIPTION)
            continue;
        memcpy(&length, mark + 2, sizeof(length));
        if (GUINT32_FROM_BE(length) == len - i && isObject((const char *)tail + i, len - i))
            return VSP_PAYLOAD_END_DESCRIBED;
    }
    return len > 0 && tail[len - 1] == MARK_END ? VSP_PAYLOAD_END_PLAIN : VSP_PAYLOAD_END_BAD;
}

int
vspSaveImagePayloadFindEnd(const vspSaveImage *image, int fd, vspPayloadEnd *end, GError **error)
{
    gsize len = (gsize)MIN(image->payloadLength, TAIL_MAX);
    guint64 offset = vspSaveImageGetPayloadOffset(image) + image->payloadLength - len;
    g_autofree guint8 *tail = NULL;
    ssize_t n;

    *end = VSP_PAYLOAD_END_UNKNOWN;
    if (image->format != VSP_SAVE_IMAGE_FORMAT_RAW ||
        (image->blockDevice && image->seal != VSP_SAVE_IMAGE_SEAL_VALID))
        return 0;
    tail = g_malloc(len + 1);
    n = vspPreadFull(fd, tail, len, (off_t)offset);
    if (n != (ssize_t)len) {
        vspSetErrno(error, n < 0 ? errno : ENODATA, _("can't read %s at offset %" PRIu64),
                    image->name, offset);
        return -1;
    }
    *end = findEnd(tail, len);
    return 0;
}

int
vspSaveImagePayloadCheck(const vspSaveImage *image, int fd, vspPayloadEnd *end, GError **error)
{
    const char *format = vspSaveImageFormatToString(image->format);
    guint64 offset = vspSaveImageGetPayloadOffset(image);

    if (!format) {
        vspSetError(error, VSP_ERROR_IMAGE_UNSUPPORTED,
                    _("%s has its VM's state in format %u, which is not known"), image->name,
                    image->format);
        return -1;
    }
    if (!image->payloadPlausible) {
        vspSetError(error, VSP_ERROR_IMAGE_CORRUPT,
                    _("%s is corrupt at byte %" PRIu64
                      ": the VM's state does not begin as one of format %s does"),
                    image->name, offset, format);
        return -1;
    }
    if (vspSaveImagePayloadFindEnd(image, fd, end, error) < 0)
        return -1;
    if (*end == VSP_PAYLOAD_END_BAD) {
        gboolean sealed = image->seal == VSP_SAVE_IMAGE_SEAL_VALID;

        vspSetError(
            error, sealed ? VSP_ERROR_IMAGE_CORRUPT : VSP_ERROR_IMAGE_CUT,
            sealed ? _("%s is corrupt before byte %" PRIu64
                       ": the VM's state does not end as QEMU's does")
                   : _("%s is cut at byte %" PRIu64 ": the VM's state does not end as QEMU's does"),
            image->name, offset + image->payloadLength);
        return -1;
    }
    return 0;
}

const char *
vspSaveImagePayloadCompression(const vspSaveImage *image)
{
    const vspCompression *compression = vspCompressionFromNumber(image->format);

    return compression ? compression->name : NULL;
}

static int
takeDigest(const vspSaveImage *image,
           GVariant *report,
           guint8 digest[VSP_SAVE_IMAGE_DIGEST_SIZE],
           GError **error)
{
    const char *text = NULL;

    if (!g_variant_lookup(report, "digest", "&s", &text) ||
        strlen(text) != 2 * VSP_SAVE_IMAGE_DIGEST_SIZE) {
        vspSetError(error, VSP_ERROR_FAILED, _("the helper gave no digest of %s"), image->name);
        return -1;
    }
    for (gsize i = 0; i < VSP_SAVE_IMAGE_DIGEST_SIZE; i++)
        digest[i] = (guint8)(g_ascii_xdigit_value(text[2 * i]) << 4 |
                             g_ascii_xdigit_value(text[2 * i + 1]));
    return 0;
}

/* Whether the digest of what was read, put into @digest (nullable), is the sealed one. */
static int
compareDigest(const vspSaveImage *image,
              GVariant *report,
              guint8 digest[VSP_SAVE_IMAGE_DIGEST_SIZE],
              GError **error)
{
    guint8 found[VSP_SAVE_IMAGE_DIGEST_SIZE];
    g_autofree char *sealed = NULL;
    g_autofree char *text = NULL;

    if (takeDigest(image, report, found, error) < 0)
        return -1;
    if (digest)
        memcpy(digest, found, sizeof(found));
    if (!image->hasDigest || memcmp(found, image->digest, sizeof(found)) == 0)
        return 0;
    sealed = vspDigestToText(image->digest);
    text = vspDigestToText(found);
    vspSetError(error, VSP_ERROR_IMAGE_CORRUPT,
                _("%s is corrupt: the digest of the VM's state is %s, and was %s when it was saved"),
                image->name, text, sealed);
    return -1;
}

/* A stream of the payload, and the helper that makes it; -1 with @error. */
static int
openStream(const vspSaveImage *image,
           int fd,
           const char *decompression,
           const vspPayloadMove *how,
           vspFileWrapperFd **wfd,
           GError **error)
{
    g_autoptr(vspFileWrapperOptions) options = vspFileWrapperOptionsCopy(how->wrapper);
    guint64 offset = vspSaveImageGetPayloadOffset(image);
    g_auto(vspFd) in = vspFdDup(fd);

    if (in < 0 || lseek(in, (off_t)offset, SEEK_SET) < 0) {
        vspSetErrno(error, errno, _("can't read %s at offset %" PRIu64), image->name, offset);
        return -1;
    }
    vspFileWrapperOptionsSetLength(options, image->payloadLength);
    vspFileWrapperOptionsSetDecompression(options, decompression);
    vspFileWrapperOptionsSetDigest(options, TRUE);
    *wfd = vspFileWrapperFdNewWithOptions(&in, image->name, options, error);
    return *wfd ? vspFdSteal(&in) : -1;
}

/* By two helpers: one makes a stream of the payload, and the other a file of that. For what the one
 * between two files can't do: end before the source does, and know both digests. */
static int
moveByStream(const vspSaveImage *image,
             int fd,
             int out,
             const char *outName,
             const char *decompression,
             const char *compression,
             const vspPayloadMove *how,
             GVariant **report,
             GError **error)
{
    g_autoptr(vspFileWrapperOptions) options = vspFileWrapperOptionsCopy(how->wrapper);
    g_autoptr(vspFileWrapperFd) wfd = NULL;
    g_autoptr(GVariant) statistics = NULL;
    g_auto(vspFd) in = openStream(image, fd, decompression, how, &wfd, error);

    if (in < 0)
        return -1;
    vspFileWrapperOptionsSetCompression(options, compression);
    vspFileWrapperOptionsSetDigest(options, TRUE);
    if (vspCopy(in, image->name, out, outName, options, how->progress, how->opaque,
                how->cancellable, report, error) < 0)
        return -1;
    vspFdClose(&in);
    if (vspFileWrapperFdClose(wfd, error) < 0)
        return -1;
    statistics = vspFileWrapperFdGetStatistics(wfd);
    return compareDigest(image, statistics, NULL, error);
}

int
vspSaveImagePayloadRecode(const vspSaveImage *image,
                          int fd,
                          int out,
                          const char *outName,
                          const char *compression,
                          const vspPayloadMove *how,
                          guint8 digest[VSP_SAVE_IMAGE_DIGEST_SIZE],
                          GVariant **report,
                          GError **error)
{
    const char *decompression = vspSaveImagePayloadCompression(image);
    g_autoptr(GVariant) statistics = NULL;

    if (moveByStream(image, fd, out, outName, decompression, compression, how, &statistics,
                     error) < 0 ||
        takeDigest(image, statistics, digest, error) < 0)
        return -1;
    *report = g_steal_pointer(&statistics);
    return 0;
}

int
vspSaveImagePayloadMove(const vspSaveImage *image,
                        int fd,
                        int out,
                        const char *outName,
                        const vspPayloadMove *how,
                        guint8 digest[VSP_SAVE_IMAGE_DIGEST_SIZE],
                        GVariant **report,
                        GError **error)
{
    g_autoptr(vspFileWrapperOptions) options = vspFileWrapperOptionsCopy(how->wrapper);
    guint64 offset = vspSaveImageGetPayloadOffset(image);
    g_autoptr(GVariant) statistics = NULL;
    struct stat st;
    int rc;

    if (fstat(out, &st) < 0 || lseek(fd, (off_t)offset, SEEK_SET) < 0) {
        vspSetErrno(error, errno, _("can't read %s at offset %" PRIu64), image->name, offset);
        return -1;
    }
    if (image->blockDevice && (S_ISREG(st.st_mode) || S_ISBLK(st.st_mode))) {
        rc = moveByStream(image, fd, out, outName, NULL, NULL, how, &statistics, error);
    } else {
        vspFileWrapperOptionsSetDigest(options, TRUE);
        vspFileWrapperOptionsSetLength(options, image->payloadLength);
        rc = vspCopy(fd, image->name, out, outName, options, how->progress, how->opaque,
                     how->cancellable, &statistics, error);
    }
    if (rc == 0)
        rc = compareDigest(image, statistics, digest, error);
    if (rc == 0 && report)
        *report = g_steal_pointer(&statistics);
    return rc;
}

/* Waits for more of the stream. -1 with @error if that is cancelled. */
static int
waitForMore(const vspSaveImage *image,
            int in,
            vspFileWrapperFd *wfd,
            const vspPayloadMove *how,
            GError **error)
{
    vspProgress progress;

    do {
        if (g_cancellable_is_cancelled(how->cancellable)) {
            vspFileWrapperFdAbort(wfd);
            vspSetError(error, VSP_ERROR_ABORTED, _("cancelled: %s is as it was"), image->name);
            return -1;
        }
        if (how->progress) {
            vspFileWrapperFdGetProgress(wfd, &progress);
            progress.bytesTotal = image->payloadLength;
            how->progress(&progress, how->opaque);
        }
    } while (vspPollOne(in, POLLIN, vspDeadline(TICK)) == 0);
    return 0;
}

/* Reads the stream to its end. @tail has room for twice TAIL_MAX bytes, of which the last *@len are left
 * in it; @head gets the first bytes. */
static int
drain(const vspSaveImage *image,
      int in,
      vspFileWrapperFd *wfd,
      const vspPayloadMove *how,
      char head[4],
      guint8 *tail,
      gsize *len,
      GError **error)
{
    gboolean begun = FALSE;
    ssize_t n;

    *len = 0;
    do {
        if (*len == 2 * TAIL_MAX) {
            memmove(tail, tail + TAIL_MAX, TAIL_MAX);
            *len = TAIL_MAX;
        }
        if (waitForMore(image, in, wfd, how, error) < 0)
            return -1;
        n = read(in, tail + *len, 2 * TAIL_MAX - *len);
        if (n < 0 && errno != EINTR) {
            vspSetErrno(error, errno, _("can't read %s"), image->name);
            return -1;
        }
        *len += (gsize)MAX(n, 0);
        if (!begun && *len >= 4) {
            memcpy(head, tail, 4);
            begun = TRUE;
        }
    } while (n != 0);
    return 0;
}

static int
readDecompressed(const vspSaveImage *image,
                 int fd,
                 const vspPayloadMove *how,
                 vspPayloadEnd *end,
                 guint8 digest[VSP_SAVE_IMAGE_DIGEST_SIZE],
                 GVariant **report,
                 GError **error)
{
    g_autoptr(vspFileWrapperFd) wfd = NULL;
    g_autofree guint8 *tail = g_malloc(2 * TAIL_MAX);
    g_auto(vspFd) in =
        openStream(image, fd, vspSaveImagePayloadCompression(image), how, &wfd, error);
    g_autoptr(GVariant) statistics = NULL;
    char head[4] = { 0 };
    gsize len, kept;

    if (in < 0 || drain(image, in, wfd, how, head, tail, &len, error) < 0)
        return -1;
    vspFdClose(&in);
    if (vspFileWrapperFdClose(wfd, error) < 0)
        return -1;
    statistics = vspFileWrapperFdGetStatistics(wfd);
    if (compareDigest(image, statistics, digest, error) < 0)
        return -1;
    kept = MIN(len, TAIL_MAX);
    *end = findEnd(tail + len - kept, kept);
    if (memcmp(head, "QEVM", sizeof(head)) != 0 || *end == VSP_PAYLOAD_END_BAD) {
        vspSetError(error, VSP_ERROR_IMAGE_CORRUPT,
                    _("%s is corrupt: what is compressed in it does not begin and end as a VM's state "
                      "does"),
                    image->name);
        return -1;
    }
    *report = g_steal_pointer(&statistics);
    return 0;
}

int
vspSaveImagePayloadRead(const vspSaveImage *image,
                        int fd,
                        const vspPayloadMove *how,
                        vspPayloadEnd *end,
                        guint8 digest[VSP_SAVE_IMAGE_DIGEST_SIZE],
                        GVariant **report,
                        GError **error)
{
    g_auto(vspFd) sink = -1;

    if (vspSaveImagePayloadCompression(image))
        return readDecompressed(image, fd, how, end, digest, report, error);
    sink = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (sink < 0) {
        vspSetErrno(error, errno, _("can't open %s"), "/dev/null");
        return -1;
    }
    return vspSaveImagePayloadMove(image, fd, sink, "/dev/null", how, digest, report, error);
}
