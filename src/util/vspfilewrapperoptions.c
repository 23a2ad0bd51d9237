/*
 * vspfilewrapperoptions.c: how a wrapper is to work, and the words for it
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <glib/gi18n-lib.h>
#include <stdlib.h>
#include <string.h>

#include "vsperrorpriv.h"
#include "vspfilewrapperpriv.h"

#define ALL_FLAGS                                                                                  \
    (VSP_FILE_WRAPPER_BYPASS_CACHE | VSP_FILE_WRAPPER_NON_BLOCKING | VSP_FILE_WRAPPER_BIG_PIPE |    \
     VSP_FILE_WRAPPER_SPARSE)

/* The helper's own limits. */
#define BUFFERS_MAX 64
#define BUFFER_SIZE_UNIT (64 * 1024)
#define BUFFER_SIZE_MAX (64 * 1024 * 1024)

static const char *const cacheModes[] = {
    [VSP_CACHE_AUTO] = "auto",   [VSP_CACHE_DIRECT] = "direct", [VSP_CACHE_DONTCACHE] = "dontcache",
    [VSP_CACHE_PACED] = "paced", [VSP_CACHE_CACHED] = "cached",
};

static const char *const transports[] = {
    [VSP_TRANSPORT_AUTO] = "auto",
    [VSP_TRANSPORT_PIPE] = "pipe",
    [VSP_TRANSPORT_SOCKET] = "socket",
};

/* Of every helper that speaks our protocol; a build without io_uring lacks one, and says so itself. */
static const char *const engines[] = { "auto", "uring", "threads", "zerocopy", "sync" };

static int
wordIndex(const char *word, const char *const *words, gsize count)
{
    for (gsize i = 0; i < count; i++) {
        if (g_strcmp0(word, words[i]) == 0)
            return i;
    }
    return -1;
}

const char *
vspCacheModeToString(vspCacheMode mode)
{
    return (gsize) mode < G_N_ELEMENTS(cacheModes) ? cacheModes[mode] : "unknown";
}

gboolean
vspCacheModeFromString(const char *word, vspCacheMode *mode)
{
    int i = wordIndex(word, cacheModes, G_N_ELEMENTS(cacheModes));

    if (i < 0)
        return FALSE;
    *mode = i;
    return TRUE;
}

const char *
vspTransportToString(vspTransport transport)
{
    return (gsize) transport < G_N_ELEMENTS(transports) ? transports[transport] : "unknown";
}

gboolean
vspTransportFromString(const char *word, vspTransport *transport)
{
    int i = wordIndex(word, transports, G_N_ELEMENTS(transports));

    if (i < 0)
        return FALSE;
    *transport = i;
    return TRUE;
}

vspFileWrapperOptions *
vspFileWrapperOptionsNew(void)
{
    vspFileWrapperOptions *options = g_new0(vspFileWrapperOptions, 1);

    options->length = G_MAXUINT64;
    return options;
}

vspFileWrapperOptions *
vspFileWrapperOptionsCopy(const vspFileWrapperOptions *options)
{
    vspFileWrapperOptions *copy = vspFileWrapperOptionsNew();

    if (options) {
        *copy = *options;
        copy->engine = g_strdup(options->engine);
        copy->helperPath = g_strdup(options->helperPath);
        copy->ioPriority = g_strdup(options->ioPriority);
        copy->compression = g_strdup(options->compression);
        copy->decompression = g_strdup(options->decompression);
    }
    return copy;
}

void
vspFileWrapperOptionsFree(vspFileWrapperOptions *options)
{
    if (!options)
        return;
    g_free(options->engine);
    g_free(options->helperPath);
    g_free(options->ioPriority);
    g_free(options->compression);
    g_free(options->decompression);
    g_free(options);
}

void
vspFileWrapperOptionsSetFlags(vspFileWrapperOptions *options, unsigned int flags)
{
    options->flags = flags;
}

void
vspFileWrapperOptionsSetTransport(vspFileWrapperOptions *options, vspTransport transport)
{
    options->transport = transport;
}

void
vspFileWrapperOptionsSetCacheMode(vspFileWrapperOptions *options, vspCacheMode mode)
{
    options->cacheMode = mode;
}

void
vspFileWrapperOptionsSetStrict(vspFileWrapperOptions *options, gboolean strict)
{
    options->strict = strict;
}

void
vspFileWrapperOptionsSetEngine(vspFileWrapperOptions *options, const char *engine)
{
    g_free(options->engine);
    options->engine = g_strdup(engine);
}

void
vspFileWrapperOptionsSetBuffers(vspFileWrapperOptions *options, unsigned int count, gsize size)
{
    options->buffers = count;
    options->bufferSize = size;
}

void
vspFileWrapperOptionsSetRateLimit(vspFileWrapperOptions *options, guint64 bytesPerSecond)
{
    options->rateLimit = bytesPerSecond;
}

void
vspFileWrapperOptionsSetIoPriority(vspFileWrapperOptions *options, const char *priority)
{
    g_free(options->ioPriority);
    options->ioPriority = g_strdup(priority);
}

void
vspFileWrapperOptionsSetHelperPath(vspFileWrapperOptions *options, const char *path)
{
    g_free(options->helperPath);
    options->helperPath = g_strdup(path);
}

void
vspFileWrapperOptionsSetLength(vspFileWrapperOptions *options, guint64 length)
{
    options->length = length;
}

void
vspFileWrapperOptionsSetCompression(vspFileWrapperOptions *options, const char *compression)
{
    g_free(options->compression);
    options->compression = g_strdup(compression);
}

void
vspFileWrapperOptionsSetDecompression(vspFileWrapperOptions *options, const char *format)
{
    g_free(options->decompression);
    options->decompression = g_strdup(format);
}

void
vspFileWrapperOptionsSetDigest(vspFileWrapperOptions *options, gboolean digest)
{
    options->digest = digest;
}

void
vspFileWrapperOptionsSetPlainLength(vspFileWrapperOptions *options, guint64 length)
{
    options->plainLength = length;
}

gboolean
vspIoPriorityParse(const char *priority, int *ioClass, int *ioLevel)
{
    static const char *const classes[] = { "realtime", "best-effort", "idle" };
    g_auto(GStrv) parts = g_strsplit(priority, ":", 2);
    int found = parts[0] ? wordIndex(parts[0], classes, G_N_ELEMENTS(classes)) : -1;
    guint64 level = 4; /* that of a process that was never given one */

    if (found < 0 || (parts[1] && !g_ascii_string_to_unsigned(parts[1], 10, 0, 7, &level, NULL)))
        return FALSE;
    *ioClass = found + 1;
    *ioLevel = level;
    return TRUE;
}

gboolean
vspIoPriorityIsValid(const char *priority)
{
    int ioClass, ioLevel;

    return priority && vspIoPriorityParse(priority, &ioClass, &ioLevel);
}

vspCacheMode
vspFileWrapperOptionsGetCacheMode(const vspFileWrapperOptions *options)
{
    if (!options)
        return VSP_CACHE_AUTO;
    if (options->cacheMode == VSP_CACHE_AUTO && (options->flags & VSP_FILE_WRAPPER_BYPASS_CACHE))
        return VSP_CACHE_DIRECT;
    return options->cacheMode;
}

int
vspFileWrapperOptionsCheck(const vspFileWrapperOptions *options, const char *name, GError **error)
{
    const vspError code = VSP_ERROR_INVALID_ARGUMENT;
    unsigned int unknown = options->flags & ~ALL_FLAGS;

    if ((options->compression && vspCompressionCheck(options->compression, error) < 0) ||
        (options->decompression && vspCompressionCheck(options->decompression, error) < 0)) {
        g_prefix_error(error, _("cannot wrap '%s': "), name);
        return -1;
    }
    if (options->compression && options->decompression)
        vspSetError(error, code, _("cannot wrap '%s': compressing and decompressing exclude each other"),
                    name);
    else if (unknown)
        vspSetError(error, code, _("cannot wrap '%s': unknown flags 0x%x"), name, unknown);
    else if ((gsize) options->cacheMode >= G_N_ELEMENTS(cacheModes))
        vspSetError(error, code, _("cannot wrap '%s': unknown cache mode %d"), name,
                    (int) options->cacheMode);
    else if ((gsize) options->transport >= G_N_ELEMENTS(transports))
        vspSetError(error, code, _("cannot wrap '%s': unknown transport %d"), name,
                    (int) options->transport);
    else if (options->buffers > BUFFERS_MAX)
        vspSetError(error, code, _("cannot wrap '%s': %u buffers are more than %d"), name,
                    options->buffers, BUFFERS_MAX);
    else if (options->bufferSize % BUFFER_SIZE_UNIT)
        vspSetError(error, code,
                    _("cannot wrap '%s': the buffer size %zu is not a multiple of 64 KiB"), name,
                    options->bufferSize);
    else if (options->bufferSize > BUFFER_SIZE_MAX)
        vspSetError(error, code, _("cannot wrap '%s': the buffer size %zu is more than 64 MiB"), name,
                    options->bufferSize);
    else if (options->length != G_MAXUINT64 && options->length > G_MAXINT64)
        vspSetError(error, code, _("cannot wrap '%s': the length is more than a file can have"), name);
    else if (options->plainLength > G_MAXINT64)
        vspSetError(error, code, _("cannot wrap '%s': the plain length is more than a file can have"),
                    name);
    else if (options->rateLimit > G_MAXINT64)
        vspSetError(error, code, _("cannot wrap '%s': the rate limit is more than any disk has"), name);
    else if (options->ioPriority && !vspIoPriorityIsValid(options->ioPriority))
        vspSetError(error, code, _("cannot wrap '%s': no such I/O priority: '%s'"), name,
                    options->ioPriority);
    else if (options->engine && wordIndex(options->engine, engines, G_N_ELEMENTS(engines)) < 0)
        vspSetError(error, code, _("cannot wrap '%s': no such engine: '%s'"), name, options->engine);
    else
        return 0;
    return -1;
}
