/*
 * codec.c: compress and decompress, by libarchive
 *
 * libarchive draws in libxml2, ICU and the C++ library, so it is loaded on demand. This is its one home.
 *
 * Its `raw` format takes one stream of bytes and lays a filter around it: that is what the formats' own
 * programs read and write. Reading, it is mild: it takes what is left over behind the end of a stream for
 * padding, and a stream without a beginning for an empty one. So the beginning is looked at here, and at
 * the end it is asked how much was used of what it got. Nor does it look at gzip's checksum: that is done
 * here too, by the function of zlib's that it brings along (of one stream:
 * several in a row are refused).
 *
 * Where libarchive is built without LZO (Debian's) it has the program lzop do that format.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <glib/gi18n-lib.h>
#include <string.h>

#include "codec.h"

/* At gzip's end: CRC-32 and length, each 4 bytes, little-endian. */
#define GZIP_TRAILER 8

/* What is asked of the source at once. */
#define CHUNK (256 * 1024)

#define REASON_SIZE 128

#if HAVE_LIBARCHIVE

#include <archive.h>
#include <archive_entry.h>
#include <dlfcn.h>
#include <unistd.h>

#define FUNCTIONS(F)                                                                               \
    F(archive_error_string)                                                                        \
    F(archive_entry_free)                                                                          \
    F(archive_entry_new)                                                                           \
    F(archive_entry_set_filetype)                                                                  \
    F(archive_entry_set_pathname)                                                                  \
    F(archive_filter_bytes)                                                                        \
    F(archive_read_append_filter)                                                                  \
    F(archive_read_data_block)                                                                     \
    F(archive_read_free)                                                                           \
    F(archive_read_new)                                                                            \
    F(archive_read_next_header)                                                                    \
    F(archive_read_open)                                                                           \
    F(archive_read_support_filter_lzop)                                                            \
    F(archive_read_support_format_empty)                                                           \
    F(archive_read_support_format_raw)                                                             \
    F(archive_write_add_filter_bzip2)                                                              \
    F(archive_write_add_filter_gzip)                                                               \
    F(archive_write_add_filter_lzop)                                                               \
    F(archive_write_add_filter_xz)                                                                 \
    F(archive_write_add_filter_zstd)                                                               \
    F(archive_write_close)                                                                         \
    F(archive_write_data)                                                                          \
    F(archive_write_free)                                                                          \
    F(archive_write_header)                                                                        \
    F(archive_write_new)                                                                           \
    F(archive_write_open)                                                                          \
    F(archive_write_set_bytes_in_last_block)                                                       \
    F(archive_write_set_bytes_per_block)                                                           \
    F(archive_write_set_filter_option)                                                             \
    F(archive_write_set_format_raw)

/* The functions, under their own names without the library's prefix. */
#define DECLARE(name) __typeof__(name) *p_##name;
static struct {
    FUNCTIONS(DECLARE)
    unsigned long (*crc32)(unsigned long crc, const unsigned char *data, unsigned int len);
} la;
#undef DECLARE

struct _vspCodec {
    const vspCompression *compression;
    struct archive *archive;
    gboolean writing;
    gboolean opened;
    vspCodecSink sink;
    vspCodecSource source;
    gpointer opaque;
    int errnum;       /* of sink or source */
    gboolean drained; /* the source has ended */
    guint64 received; /* from the source, or by the sink */
    guint64 decompressed;
    guint8 tail[GZIP_TRAILER]; /* the last bytes received */
    unsigned long crc;
    char chunk[CHUNK];
    char reason[REASON_SIZE];
};

/* Where an external program is used libarchive warns. */
#define IS_GOOD(rc) ((rc) == ARCHIVE_OK || (rc) == ARCHIVE_WARN)

static gboolean
load(char *reason)
{
    static gboolean loaded;
    void *handle;

    if (loaded)
        return TRUE;
    handle = dlopen(LIBARCHIVE_SONAME, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        g_strlcpy(reason, N_("libarchive is not installed"), REASON_SIZE);
        return FALSE;
    }
#define RESOLVE(name)                                                                              \
    if (!(la.p_##name = (__typeof__(name) *) dlsym(handle, #name))) {                              \
        g_strlcpy(reason, N_("libarchive is too old"), REASON_SIZE);                               \
        dlclose(handle);                                                                           \
        return FALSE;                                                                              \
    }
    FUNCTIONS(RESOLVE)
#undef RESOLVE
    la.crc32 = (__typeof__(la.crc32)) dlsym(handle, "crc32");
    loaded = TRUE;
    return TRUE;
}

static void
takeReason(vspCodec *codec)
{
    const char *text = la.p_archive_error_string(codec->archive);

    g_strlcpy(codec->reason, text ? text : "", sizeof(codec->reason));
}

static vspCodec *
newCodec(const vspCompression *compression, gboolean writing, gpointer opaque)
{
    vspCodec *codec = g_new0(vspCodec, 1);

    codec->compression = compression;
    codec->writing = writing;
    codec->opaque = opaque;
    return codec;
}

void
vspCodecFree(vspCodec *codec)
{
    if (!codec)
        return;
    /* Closing writes what is left: nobody wants it any more. */
    codec->errnum = ECANCELED;
    if (codec->archive && codec->writing)
        la.p_archive_write_free(codec->archive);
    else if (codec->archive)
        la.p_archive_read_free(codec->archive);
    g_free(codec);
}

/* The program that libarchive would have do it, if it can't itself. */
static gboolean
hasProgram(const vspCompression *compression, int rc)
{
    g_autofree char *path = NULL;

    if (rc == ARCHIVE_OK)
        return TRUE;
    /* The library starts us without an environment, and a search without a path begins in whatever
     * folder we are in. */
    g_setenv("PATH", "/usr/local/bin:/usr/bin:/bin", FALSE);
    path = g_find_program_in_path(compression->name);
    return path != NULL;
}

/* --- compressing --- */

static la_ssize_t
onWrite(struct archive *archive G_GNUC_UNUSED, void *opaque, const void *data, size_t len)
{
    vspCodec *codec = opaque;
    int rc;

    if (codec->errnum)
        return -1;
    rc = codec->sink(codec->opaque, data, len);
    if (rc < 0) {
        codec->errnum = -rc;
        return -1;
    }
    codec->received += len;
    return len;
}

static int
addFilter(vspCodec *codec)
{
    switch (codec->compression->number) {
    case 1:
        return la.p_archive_write_add_filter_gzip(codec->archive);
    case 2:
        return la.p_archive_write_add_filter_bzip2(codec->archive);
    case 3:
        return la.p_archive_write_add_filter_xz(codec->archive);
    case 4:
        return la.p_archive_write_add_filter_lzop(codec->archive);
    default:
        return la.p_archive_write_add_filter_zstd(codec->archive);
    }
}

/* Threads are worth it for the two that can split their work, and refused by a libarchive that can't. */
static void
setThreads(vspCodec *codec)
{
    g_autofree char *threads = g_strdup_printf("%u", g_get_num_processors());
    guint32 number = codec->compression->number;

    if (number == 3 || number == 5)
        la.p_archive_write_set_filter_option(codec->archive, codec->compression->name, "threads", threads);
}

static gboolean
openCompressor(vspCodec *codec, int level)
{
    g_autofree char *text = g_strdup_printf("%d", level);
    struct archive *a = codec->archive;
    struct archive_entry *entry;
    int rc;

    la.p_archive_write_set_format_raw(a);
    /* No blocks, and no padding of the last one: they are for tapes. */
    la.p_archive_write_set_bytes_per_block(a, 0);
    la.p_archive_write_set_bytes_in_last_block(a, 1);
    rc = addFilter(codec);
    if (!IS_GOOD(rc)) {
        takeReason(codec);
        return FALSE;
    }
    if (!hasProgram(codec->compression, rc)) {
        g_strlcpy(codec->reason, N_("the program lzop is not installed"), sizeof(codec->reason));
        return FALSE;
    }
    if (la.p_archive_write_set_filter_option(a, codec->compression->name, "compression-level", text) !=
        ARCHIVE_OK) {
        takeReason(codec);
        return FALSE;
    }
    /* The same data gives the same file. */
    if (codec->compression->number == 1)
        la.p_archive_write_set_filter_option(a, "gzip", "timestamp", NULL);
    setThreads(codec);

    rc = la.p_archive_write_open(a, codec, NULL, onWrite, NULL);
    codec->opened = IS_GOOD(rc);
    if (codec->opened) {
        entry = la.p_archive_entry_new();
        la.p_archive_entry_set_pathname(entry, "data");
        la.p_archive_entry_set_filetype(entry, AE_IFREG);
        rc = la.p_archive_write_header(a, entry);
        la.p_archive_entry_free(entry);
    }
    if (!IS_GOOD(rc)) {
        takeReason(codec);
        return FALSE;
    }
    return TRUE;
}

vspCodec *
vspCodecNewCompressor(const vspCompression *compression,
                      int level,
                      vspCodecSink sink,
                      gpointer opaque,
                      char *reason)
{
    vspCodec *codec;

    if (!load(reason))
        return NULL;
    codec = newCodec(compression, TRUE, opaque);
    codec->sink = sink;
    codec->archive = la.p_archive_write_new();
    if (!openCompressor(codec, level)) {
        g_strlcpy(reason, codec->reason, REASON_SIZE);
        vspCodecFree(codec);
        return NULL;
    }
    return codec;
}

static int
failCompress(vspCodec *codec)
{
    if (codec->errnum)
        return -codec->errnum;
    takeReason(codec);
    return -EIO;
}

int
vspCodecCompress(vspCodec *codec, const void *data, gsize len)
{
    while (len > 0) {
        la_ssize_t n = la.p_archive_write_data(codec->archive, data, len);

        if (n <= 0)
            return failCompress(codec);
        data = (const char *) data + n;
        len -= n;
    }
    return 0;
}

int
vspCodecFinish(vspCodec *codec)
{
    return la.p_archive_write_close(codec->archive) == ARCHIVE_OK ? 0 : failCompress(codec);
}

/* --- decompressing --- */

static la_ssize_t
onRead(struct archive *archive G_GNUC_UNUSED, void *opaque, const void **data)
{
    vspCodec *codec = opaque;
    ssize_t n = codec->drained ? 0 : codec->source(codec->opaque, codec->chunk, sizeof(codec->chunk));

    *data = codec->chunk;
    if (n < 0) {
        codec->errnum = -n;
        return -1;
    }
    codec->drained = n == 0;
    codec->received += n;
    if (n >= GZIP_TRAILER) {
        memcpy(codec->tail, codec->chunk + n - GZIP_TRAILER, GZIP_TRAILER);
    } else {
        memmove(codec->tail, codec->tail + n, GZIP_TRAILER - n);
        memcpy(codec->tail + GZIP_TRAILER - n, codec->chunk, n);
    }
    return n;
}

static int
filterOf(const vspCompression *compression)
{
    static const int filters[] = { ARCHIVE_FILTER_NONE, ARCHIVE_FILTER_GZIP, ARCHIVE_FILTER_BZIP2,
                                   ARCHIVE_FILTER_XZ,   ARCHIVE_FILTER_LZOP, ARCHIVE_FILTER_ZSTD };

    return filters[compression->number];
}

vspCodec *
vspCodecNewDecompressor(const vspCompression *compression,
                        vspCodecSource source,
                        gpointer opaque,
                        char *reason)
{
    vspCodec *codec;
    int rc;

    if (!load(reason))
        return NULL;
    codec = newCodec(compression, FALSE, opaque);
    codec->source = source;
    codec->archive = la.p_archive_read_new();
    /* Named, so that it does not look for others; lzop can't be named. */
    rc = compression->number == 4
             ? la.p_archive_read_support_filter_lzop(codec->archive)
             : la.p_archive_read_append_filter(codec->archive, filterOf(compression));
    if (IS_GOOD(rc) && hasProgram(compression, rc)) {
        la.p_archive_read_support_format_raw(codec->archive);
        la.p_archive_read_support_format_empty(codec->archive);
        return codec;
    }
    takeReason(codec);
    g_strlcpy(reason, IS_GOOD(rc) ? N_("the program lzop is not installed") : codec->reason, REASON_SIZE);
    vspCodecFree(codec);
    return NULL;
}

static ssize_t
failDecompress(vspCodec *codec)
{
    if (codec->errnum)
        return -codec->errnum;
    /* Whatever it calls it: it had everything there is, and wanted more. */
    if (codec->drained) {
        g_strlcpy(codec->reason, N_("unexpected end of compressed data"), sizeof(codec->reason));
        return -ENODATA;
    }
    takeReason(codec);
    return -EBADMSG;
}

static gboolean
checksumIsRight(const vspCodec *codec)
{
    guint32 crc, length;

    if (codec->compression->number != 1 || !la.crc32)
        return TRUE;
    memcpy(&crc, codec->tail, sizeof(crc));
    memcpy(&length, codec->tail + sizeof(crc), sizeof(length));
    return GUINT32_FROM_LE(crc) == (guint32) codec->crc &&
           GUINT32_FROM_LE(length) == (guint32) codec->decompressed;
}

/* The decompressor has found an end. Is it that of the data? */
static ssize_t
checkEnd(vspCodec *codec)
{
    const void *data;

    if (vspCodecGetPosition(codec) == codec->received && !codec->drained)
        onRead(codec->archive, codec, &data);
    if (codec->errnum)
        return -codec->errnum;
    /* A beginning that is cut off looks to it like nothing at all: so nothing is no data either. */
    if (codec->decompressed == 0 && (codec->drained || vspCodecGetPosition(codec) < codec->received)) {
        g_strlcpy(codec->reason, N_("unexpected end of compressed data"), sizeof(codec->reason));
        return -ENODATA;
    }
    if (vspCodecGetPosition(codec) < codec->received) {
        g_strlcpy(codec->reason, N_("there is something else behind the compressed data"),
                  sizeof(codec->reason));
        return -EBADMSG;
    }
    if (!checksumIsRight(codec)) {
        g_strlcpy(codec->reason, N_("the checksum does not agree"), sizeof(codec->reason));
        return -EBADMSG;
    }
    return 0;
}

ssize_t
vspCodecDecompress(vspCodec *codec, const void **data)
{
    la_int64_t offset;
    size_t len;
    int rc;

    if (!codec->opened) {
        struct archive_entry *entry;

        codec->opened = TRUE;
        rc = la.p_archive_read_open(codec->archive, codec, NULL, onRead, NULL);
        if (IS_GOOD(rc))
            rc = la.p_archive_read_next_header(codec->archive, &entry);
        if (rc == ARCHIVE_EOF)
            return checkEnd(codec);
        if (!IS_GOOD(rc))
            return failDecompress(codec);
    }
    do {
        rc = la.p_archive_read_data_block(codec->archive, data, &len, &offset);
    } while (rc == ARCHIVE_OK && len == 0);
    if (rc == ARCHIVE_EOF)
        return checkEnd(codec);
    if (rc != ARCHIVE_OK)
        return failDecompress(codec);
    codec->decompressed += len;
    if (codec->compression->number == 1 && la.crc32)
        codec->crc = la.crc32(codec->crc, *data, len);
    return len;
}

guint64
vspCodecGetPosition(const vspCodec *codec)
{
    if (codec->writing)
        return codec->received;
    return codec->opened ? (guint64) la.p_archive_filter_bytes(codec->archive, -1) : 0;
}

const char *
vspCodecGetReason(const vspCodec *codec)
{
    return codec->reason;
}

#else /* !HAVE_LIBARCHIVE */

static vspCodec *
notBuilt(char *reason)
{
    g_strlcpy(reason, N_("this build has no compression"), REASON_SIZE);
    return NULL;
}

vspCodec *
vspCodecNewCompressor(const vspCompression *compression G_GNUC_UNUSED,
                      int level G_GNUC_UNUSED,
                      vspCodecSink sink G_GNUC_UNUSED,
                      gpointer opaque G_GNUC_UNUSED,
                      char *reason)
{
    return notBuilt(reason);
}

vspCodec *
vspCodecNewDecompressor(const vspCompression *compression G_GNUC_UNUSED,
                        vspCodecSource source G_GNUC_UNUSED,
                        gpointer opaque G_GNUC_UNUSED,
                        char *reason)
{
    return notBuilt(reason);
}

void
vspCodecFree(vspCodec *codec G_GNUC_UNUSED)
{
}

int
vspCodecCompress(vspCodec *codec G_GNUC_UNUSED, const void *data G_GNUC_UNUSED, gsize len G_GNUC_UNUSED)
{
    return -ENOSYS;
}

int
vspCodecFinish(vspCodec *codec G_GNUC_UNUSED)
{
    return -ENOSYS;
}

ssize_t
vspCodecDecompress(vspCodec *codec G_GNUC_UNUSED, const void **data G_GNUC_UNUSED)
{
    return -ENOSYS;
}

guint64
vspCodecGetPosition(const vspCodec *codec G_GNUC_UNUSED)
{
    return 0;
}

const char *
vspCodecGetReason(const vspCodec *codec G_GNUC_UNUSED)
{
    return "";
}

#endif

static ssize_t
noSource(gpointer opaque G_GNUC_UNUSED, void *buf G_GNUC_UNUSED, gsize len G_GNUC_UNUSED)
{
    return 0;
}

gboolean
vspCodecIsThere(const vspCompression *compression)
{
    char reason[REASON_SIZE];
    vspCodec *codec = vspCodecNewDecompressor(compression, noSource, NULL, reason);

    vspCodecFree(codec);
    return codec != NULL;
}
