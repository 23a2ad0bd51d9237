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
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vmspool/vsp-copy.h>

#include "vsperrorpriv.h"
#include "vspfd.h"
#include "vspio.h"
#include "vspsaveimagepayload.h"
#include "vspstatus.h"

/* Where the description is looked for. QEMU's have some 100 KiB. Larger: more is read and held of
 * what ends otherwise. */
#define TAIL_MAX (4 * 1024 * 1024)

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

/* Whether the digest in @report, put into @digest, is the sealed one. */
static int
compareDigest(const vspSaveImage *image,
              GVariant *report,
              guint8 digest[VSP_SAVE_IMAGE_DIGEST_SIZE],
              GError **error)
{
    g_autofree char *sealed = NULL;
    const char *text = NULL;

    if (!g_variant_lookup(report, "digest", "&s", &text) ||
        strlen(text) != 2 * VSP_SAVE_IMAGE_DIGEST_SIZE) {
        vspSetError(error, VSP_ERROR_FAILED, _("the helper gave no digest of %s"), image->name);
        return -1;
    }
    for (gsize i = 0; digest && i < VSP_SAVE_IMAGE_DIGEST_SIZE; i++)
        digest[i] = (guint8)(g_ascii_xdigit_value(text[2 * i]) << 4 |
                             g_ascii_xdigit_value(text[2 * i + 1]));
    if (!image->hasDigest)
        return 0;
    sealed = vspDigestToText(image->digest);
    if (g_str_equal(text, sealed))
        return 0;
    vspSetError(
        error, VSP_ERROR_IMAGE_CORRUPT,
        _("%s is corrupt: the digest of the VM's state is %s, and was %s when it was saved"),
        image->name, text, sealed);
    return -1;
}

/* The mover knows a length when it reads a file into a stream, and not between two files. There it
 * is needed if the source goes on behind the payload: then another helper makes a stream of it. */
static int
movePart(const vspSaveImage *image,
         int fd,
         int out,
         const char *outName,
         const vspPayloadMove *how,
         const vspFileWrapperOptions *options,
         GVariant **report,
         GError **error)
{
    g_autoptr(vspFileWrapperOptions) reading = vspFileWrapperOptionsCopy(how->wrapper);
    g_autoptr(vspFileWrapperFd) wfd = NULL;
    g_auto(vspFd) in = vspFdDup(fd);
    int rc;

    if (in < 0) {
        vspSetErrno(error, errno, _("can't read %s"), image->name);
        return -1;
    }
    vspFileWrapperOptionsSetLength(reading, image->payloadLength);
    wfd = vspFileWrapperFdNewWithOptions(&in, image->name, reading, error);
    if (!wfd)
        return -1;
    rc = vspCopy(in, image->name, out, outName, options, how->progress, how->opaque,
                 how->cancellable, report, error);
    vspFdClose(&in);
    if (rc < 0)
        return -1;
    return vspFileWrapperFdClose(wfd, error);
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
    vspFileWrapperOptionsSetDigest(options, TRUE);
    if (image->blockDevice && (S_ISREG(st.st_mode) || S_ISBLK(st.st_mode))) {
        rc = movePart(image, fd, out, outName, how, options, &statistics, error);
    } else {
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

int
vspSaveImagePayloadRead(const vspSaveImage *image,
                        int fd,
                        const vspPayloadMove *how,
                        guint8 digest[VSP_SAVE_IMAGE_DIGEST_SIZE],
                        GVariant **report,
                        GError **error)
{
    g_auto(vspFd) sink = open("/dev/null", O_WRONLY | O_CLOEXEC);

    if (sink < 0) {
        vspSetErrno(error, errno, _("can't open %s"), "/dev/null");
        return -1;
    }
    return vspSaveImagePayloadMove(image, fd, sink, "/dev/null", how, digest, report, error);
}
