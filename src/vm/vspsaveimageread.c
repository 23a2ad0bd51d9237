/*
 * vspsaveimageread.c: opens a save image: every check that can be made without reading the payload
 *
 * The file may have been made by an enemy. What a number in it says is compared with the size of
 * the file and with a limit before anything is allocated or read by it.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <glib/gi18n-lib.h>

#include "vsperrorpriv.h"
#include "vspfd.h"
#include "vspio.h"
#include "vspsaveimagepriv.h"

#define VERSION_MAX 2
#define PAYLOAD_MAGIC_MAX 9

static int
checkType(const vspSaveImage *image, mode_t mode, GError **error)
{
    if (S_ISREG(mode) || S_ISBLK(mode))
        return 0;
    if (S_ISDIR(mode))
        vspSetError(error, VSP_ERROR_IMAGE_FOREIGN, _("%s is a directory, not a save image"),
                    image->name);
    else if (S_ISFIFO(mode))
        vspSetError(error, VSP_ERROR_IMAGE_FOREIGN, _("%s is a pipe, not a save image"),
                    image->name);
    else if (S_ISSOCK(mode))
        vspSetError(error, VSP_ERROR_IMAGE_FOREIGN, _("%s is a socket, not a save image"),
                    image->name);
    else
        vspSetError(error, VSP_ERROR_IMAGE_FOREIGN,
                    _("%s is a device that can't hold a save image"), image->name);
    return -1;
}

static int
findSize(vspSaveImage *image, int fd, GError **error)
{
    struct stat st;
    off_t position, end;

    if (fstat(fd, &st) < 0) {
        vspSetErrno(error, errno, _("can't stat %s"), image->name);
        return -1;
    }
    if (checkType(image, st.st_mode, error) < 0)
        return -1;
    image->blockDevice = S_ISBLK(st.st_mode);
    if (!image->blockDevice) {
        image->fileSize = (guint64)st.st_size;
        return 0;
    }
    /* The descriptor may be the caller's: its position is put back. */
    position = lseek(fd, 0, SEEK_CUR);
    end = position < 0 ? -1 : lseek(fd, 0, SEEK_END);
    if (end < 0 || lseek(fd, position, SEEK_SET) < 0) {
        vspSetErrno(error, errno, _("can't find the size of %s"), image->name);
        return -1;
    }
    image->fileSize = (guint64)end;
    return 0;
}

/* All of @len bytes, or an error. The file may shrink while it is read. */
static int
readAt(const vspSaveImage *image, int fd, void *buf, gsize len, guint64 offset, GError **error)
{
    ssize_t n = vspPreadFull(fd, buf, len, (off_t)offset);

    if (n < 0) {
        vspSetErrno(error, errno, _("can't read %s at offset %" PRIu64), image->name, offset);
        return -1;
    }
    if ((gsize)n < len) {
        vspSetError(error, VSP_ERROR_IMAGE_CUT, _("%s ended at byte %" PRIu64 " while it was read"),
                    image->name, offset + (guint64)n);
        return -1;
    }
    return 0;
}

void
vspSaveImageHeaderSwap(vspSaveImageHeader *header)
{
    header->version = GUINT32_SWAP_LE_BE(header->version);
    header->dataLen = GUINT32_SWAP_LE_BE(header->dataLen);
    header->wasRunning = GUINT32_SWAP_LE_BE(header->wasRunning);
    header->format = GUINT32_SWAP_LE_BE(header->format);
    header->cookieOffset = GUINT32_SWAP_LE_BE(header->cookieOffset);
}

/* Whether the first @len bytes of the header are how an image begins. */
static gboolean
isMagic(vspSaveImage *image, gsize len)
{
    len = MIN(len, sizeof(image->header.magic));
    image->complete = memcmp(image->header.magic, VSP_SAVE_IMAGE_MAGIC_COMPLETE, len) == 0;
    return image->complete || memcmp(image->header.magic, VSP_SAVE_IMAGE_MAGIC_PARTIAL, len) == 0;
}

static int
readHeader(vspSaveImage *image, int fd, GError **error)
{
    vspSaveImageHeader *header = &image->header;
    gsize len = MIN(image->fileSize, sizeof(*header));
    guint32 version;

    if (len == 0) {
        vspSetError(error, VSP_ERROR_IMAGE_EMPTY, _("%s is empty"), image->name);
        return -1;
    }
    if (readAt(image, fd, header, len, 0, error) < 0)
        return -1;
    if (!isMagic(image, len)) {
        vspSetError(error, VSP_ERROR_IMAGE_FOREIGN,
                    _("%s is not a save image: it does not begin as one"), image->name);
        return -1;
    }
    if (len < sizeof(*header)) {
        vspSetError(error, VSP_ERROR_IMAGE_CUT,
                    _("%s is cut at byte %zu, within its header of %zu bytes"), image->name, len,
                    sizeof(*header));
        return -1;
    }
    version = header->version;
    if (version > VERSION_MAX) {
        image->swapped = TRUE;
        vspSaveImageHeaderSwap(header);
        version = MIN(version, header->version);
    }
    if (header->version > VERSION_MAX) {
        vspSetError(error, VSP_ERROR_IMAGE_UNSUPPORTED,
                    _("%s is a save image of version %u; the newest that is known is %d"),
                    image->name, version, VERSION_MAX);
        return -1;
    }
    return 0;
}

static int
checkHeader(vspSaveImage *image, GError **error)
{
    const vspSaveImageHeader *header = &image->header;
    guint64 payload = vspSaveImageGetPayloadOffset(image);
    gboolean fits = payload <= image->fileSize;

    if (header->dataLen == 0) {
        vspSetError(error, VSP_ERROR_IMAGE_CORRUPT,
                    _("%s is corrupt: by its header it has no domain XML"), image->name);
        return -1;
    }
    if (header->dataLen > VSP_SAVE_IMAGE_DATA_MAX) {
        if (fits)
            vspSetError(error, VSP_ERROR_IMAGE_UNSUPPORTED,
                        _("%s has %u bytes for its domain XML, more than the limit of %d"),
                        image->name, header->dataLen, VSP_SAVE_IMAGE_DATA_MAX);
        else
            vspSetError(error, VSP_ERROR_IMAGE_CORRUPT,
                        _("%s is corrupt: by its header it has %u bytes of domain XML, more than"
                          " the file and the limit of %d"),
                        image->name, header->dataLen, VSP_SAVE_IMAGE_DATA_MAX);
        return -1;
    }
    if (header->cookieOffset == 1 || header->cookieOffset > header->dataLen) {
        vspSetError(error, VSP_ERROR_IMAGE_CORRUPT,
                    _("%s is corrupt: by its header the cookie is at %u of %u bytes"), image->name,
                    header->cookieOffset, header->dataLen);
        return -1;
    }
    /* A partial image may end here: its save had not come to the VM's state. */
    if (!fits || (image->complete && payload == image->fileSize)) {
        vspSetError(error, VSP_ERROR_IMAGE_CUT,
                    _("%s is cut at byte %" PRIu64 ": by its header the VM's state begins"
                      " at byte %" PRIu64),
                    image->name, image->fileSize, payload);
        return -1;
    }
    return 0;
}

/* Length of the text and its NUL within @max bytes; 0 if it has no NUL there. */
static gsize
textSize(const char *text, gsize max)
{
    const char *nul = memchr(text, '\0', max);

    return nul ? (gsize)(nul - text) + 1 : 0;
}

static gboolean
isZero(const char *bytes, gsize len)
{
    return len == 0 || (bytes[0] == '\0' && memcmp(bytes, bytes + 1, len - 1) == 0);
}

static int
splitData(vspSaveImage *image, const char *data, GError **error)
{
    gsize dataLen = image->header.dataLen;
    gsize cookieOffset = image->header.cookieOffset;
    gsize xmlMax = cookieOffset ? cookieOffset : dataLen;
    gsize textLen = textSize(data, xmlMax);
    gsize used;

    if (textLen == 0) {
        vspSetError(error, VSP_ERROR_IMAGE_CORRUPT, _("%s is corrupt: its domain XML has no end"),
                    image->name);
        return -1;
    }
    image->xml = g_memdup2(data, textLen);
    image->xmlSize = cookieOffset ? cookieOffset : textLen;
    if (cookieOffset && !isZero(data + textLen, cookieOffset - textLen))
        vspSaveImageNotice(image, _("there is data between the domain XML and the cookie"));

    if (cookieOffset && cookieOffset < dataLen) {
        image->cookieSize = textSize(data + cookieOffset, dataLen - cookieOffset);
        if (image->cookieSize == 0) {
            vspSetError(error, VSP_ERROR_IMAGE_CORRUPT, _("%s is corrupt: its cookie has no end"),
                        image->name);
            return -1;
        }
        image->cookie = g_memdup2(data + cookieOffset, image->cookieSize);
    }
    used = image->xmlSize + image->cookieSize;
    if (!isZero(data + used, dataLen - used))
        vspSaveImageNotice(image, _("the room behind the domain XML holds data"));
    return 0;
}

static int
readData(vspSaveImage *image, int fd, GError **error)
{
    g_autofree char *data = g_malloc(image->header.dataLen);
    g_autoptr(GError) xmlError = NULL;

    if (readAt(image, fd, data, image->header.dataLen, VSP_SAVE_IMAGE_HEADER_SIZE, error) < 0 ||
        splitData(image, data, error) < 0)
        return -1;
    image->domain = vspDomainXmlParse(image->xml, strlen(image->xml), &xmlError);
    if (!image->domain) {
        vspSetError(error, VSP_ERROR_IMAGE_CORRUPT, _("%s is corrupt: %s"), image->name,
                    xmlError->message);
        return -1;
    }
    return 0;
}

/* How the payload of each format begins. */
static gboolean
isPayloadMagic(guint32 format, const guint8 *bytes, gsize len)
{
    static const struct {
        gsize len;
        const char *bytes;
    } magics[] = {
        [VSP_SAVE_IMAGE_FORMAT_RAW] = { 4, "QEVM" },
        [VSP_SAVE_IMAGE_FORMAT_GZIP] = { 2, "\x1f\x8b" },
        [VSP_SAVE_IMAGE_FORMAT_BZIP2] = { 3, "BZh" },
        [VSP_SAVE_IMAGE_FORMAT_XZ] = { 6, "\3757zXZ\0" },
        [VSP_SAVE_IMAGE_FORMAT_LZOP] = { 9, "\x89LZO\0\r\n\x1a\n" },
        [VSP_SAVE_IMAGE_FORMAT_ZSTD] = { 4, "\x28\xb5\x2f\xfd" },
        [VSP_SAVE_IMAGE_FORMAT_SPARSE] = { 4, "QEVM" },
    };

    if (format >= G_N_ELEMENTS(magics))
        return FALSE;
    /* Zstandard may begin with a frame that is to be skipped, which has 16 magics. */
    if (format == VSP_SAVE_IMAGE_FORMAT_ZSTD && len >= 4 && (bytes[0] & 0xf0) == 0x50 &&
        memcmp(bytes + 1, "\x2a\x4d\x18", 3) == 0)
        return TRUE;
    return len >= magics[format].len &&
           memcmp(bytes, magics[format].bytes, magics[format].len) == 0;
}

static int
checkPayload(vspSaveImage *image, int fd, GError **error)
{
    guint64 offset = vspSaveImageGetPayloadOffset(image);
    guint64 available = image->fileSize - offset;
    guint8 magic[PAYLOAD_MAGIC_MAX];
    gsize len;

    image->payloadLength = available;
    vspSaveImageSealRead(image);
    if (image->seal == VSP_SAVE_IMAGE_SEAL_VALID) {
        guint64 end = offset + MIN(image->sealLength, G_MAXUINT64 - offset);

        if (image->sealLength > available) {
            vspSetError(error, VSP_ERROR_IMAGE_CUT,
                        _("%s is cut at byte %" PRIu64 ": by its seal it ends at byte %" PRIu64),
                        image->name, image->fileSize, end);
            return -1;
        }
        /* A block device is as long as it is. */
        if (image->sealLength < available && !image->blockDevice) {
            vspSetError(
                error, VSP_ERROR_IMAGE_CORRUPT,
                _("%s is corrupt: by its seal it ends at byte %" PRIu64 ", but there are %" PRIu64),
                image->name, end, image->fileSize);
            return -1;
        }
        image->payloadLength = image->sealLength;
    }
    len = MIN(image->payloadLength, sizeof(magic));
    if (readAt(image, fd, magic, len, offset, error) < 0)
        return -1;
    image->payloadPlausible = isPayloadMagic(image->format, magic, len);
    return 0;
}

/* What is odd and yet no reason to refuse. */
static void
collectNotices(vspSaveImage *image)
{
    const vspSaveImageHeader *header = &image->header;
    const char *format = vspSaveImageFormatToString(image->format);

    if (header->wasRunning > 1)
        vspSaveImageNotice(image,
                           _("the run state is %u, which is neither 0 nor 1; it counts as 1"),
                           header->wasRunning);
    if (!isZero((const char *)header->reserved, sizeof(header->reserved)))
        vspSaveImageNotice(image, _("the header's reserved words hold data"));
    if (header->format != image->format)
        vspSaveImageNotice(image, _("version %u has no compression: format %u is ignored"),
                           header->version, header->format);
    if (!format)
        vspSaveImageNotice(image, _("format %u is not known"), image->format);
    else if (!image->payloadPlausible && image->payloadLength > 0)
        vspSaveImageNotice(image, _("the VM's state does not begin as one of format %s does"),
                           format);
}

static int
readImage(vspSaveImage *image, int fd, GError **error)
{
    if (findSize(image, fd, error) < 0 || readHeader(image, fd, error) < 0 ||
        checkHeader(image, error) < 0 || readData(image, fd, error) < 0)
        return -1;
    /* Older versions have the number, but nothing reads it. */
    image->format =
        image->header.version >= 2 ? image->header.format : (guint32)VSP_SAVE_IMAGE_FORMAT_RAW;
    if (checkPayload(image, fd, error) < 0)
        return -1;
    collectNotices(image);
    g_ptr_array_add(image->notices, NULL);
    return 0;
}

static vspSaveImage *
newImage(const char *name)
{
    vspSaveImage *image = g_new0(vspSaveImage, 1);

    image->name = vspNameEscape(name);
    image->notices = g_ptr_array_new_with_free_func(g_free);
    return image;
}

static vspSaveImage *
openFd(vspSaveImage *unread, int fd, GError **error)
{
    g_autoptr(vspSaveImage) image = unread;
    g_autoptr(GError) failure = NULL;

    if (readImage(image, fd, &failure) == 0)
        return g_steal_pointer(&image);
    /* With the mark of a partial image there is one cause for whatever is missing or wrong in it.
     */
    if ((failure->code == VSP_ERROR_IMAGE_CUT || failure->code == VSP_ERROR_IMAGE_CORRUPT) &&
        memcmp(image->header.magic, VSP_SAVE_IMAGE_MAGIC_PARTIAL, sizeof(image->header.magic)) ==
            0) {
        failure->code = VSP_ERROR_IMAGE_PARTIAL;
        g_prefix_error(&failure, _("the save did not finish: "));
    }
    g_propagate_error(error, g_steal_pointer(&failure));
    return NULL;
}

vspSaveImage *
vspSaveImageOpenFd(int fd, const char *name, GError **error)
{
    return openFd(newImage(name), fd, error);
}

vspSaveImage *
vspSaveImageOpenKeep(const char *path, int *kept, GError **error)
{
    g_autoptr(vspSaveImage) image = newImage(path);
    g_auto(vspFd) fd = -1;
    struct stat st;

    /* Asked first, because opening alone has an effect on some devices; and again of what was
     * opened. O_NONBLOCK is for a pipe that takes its place in between. */
    if (stat(path, &st) == 0 && checkType(image, st.st_mode, error) < 0)
        return NULL;
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        vspSetErrno(error, errno, _("can't open %s"), image->name);
        return NULL;
    }
    image = openFd(g_steal_pointer(&image), fd, error);
    if (image && kept)
        *kept = vspFdSteal(&fd);
    return g_steal_pointer(&image);
}

vspSaveImage *
vspSaveImageOpen(const char *path, GError **error)
{
    return vspSaveImageOpenKeep(path, NULL, error);
}

vspSaveImage *
vspSaveImageOpenComplete(const char *path, int *kept, GError **error)
{
    g_auto(vspFd) fd = -1;
    g_autoptr(vspSaveImage) image = vspSaveImageOpenKeep(path, &fd, error);

    if (!image)
        return NULL;
    if (!image->complete) {
        vspSetError(error, VSP_ERROR_IMAGE_PARTIAL, _("the save did not finish: %s is incomplete"),
                    image->name);
        return NULL;
    }
    *kept = vspFdSteal(&fd);
    return g_steal_pointer(&image);
}
