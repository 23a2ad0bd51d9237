/*
 * options.c: the helper's command line
 *
 * `NAME FD` alone is what libvirtd says. Everything else is from our library, or from a person who
 * tries things out.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "cache.h"
#include "options.h"
#include "vsperrorpriv.h"
#include "vspfilewrapperpriv.h"

/* By measurement: see docs/architecture.md. More buffers hide longer pauses of the disk, larger ones
 * mean fewer and longer requests; both are memory. */
#define BUFFERS_DEFAULT 4
#define BUFFER_SIZE_DEFAULT (4 * 1024 * 1024)
#define BUFFERS_MAX 64
#define BUFFER_SIZE_MAX (64 * 1024 * 1024)

static gboolean fail(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);

static gboolean
fail(GError **error, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    g_propagate_error(error,
                      g_error_new_valist(VSP_ERROR, VSP_ERROR_INVALID_ARGUMENT, format, args));
    va_end(args);
    return FALSE;
}

gboolean
vspHelperOptionsParse(vspHelperOptions *options, int argc, char **argv, GError **error)
{
    g_autofree char *cache = NULL;
    g_autofree char *engine = NULL;
    g_autofree char *compress = NULL;
    g_autofree char *decompress = NULL;
    gint64 length = -1;
    gint64 rateLimit = 0;
    gint64 plainLength = 0;
    g_autofree char *ioPriority = NULL;
    g_auto(GStrv) rest = NULL;
    g_autoptr(GOptionContext) context = NULL;
    char *end;
    long fd;
    GOptionEntry entries[] = {
        { "status-fd", 0, 0, G_OPTION_ARG_INT, &options->statusFd,
          "Report to this descriptor and not to stderr", "FD" },
        { "cache", 0, 0, G_OPTION_ARG_STRING, &cache,
          "auto, direct, dontcache, paced or cached", "MODE" },
        { "strict", 0, 0, G_OPTION_ARG_NONE, &options->strict,
          "Fail where the cache mode is refused", NULL },
        { "engine", 0, 0, G_OPTION_ARG_STRING, &engine, "How to do the I/O", "ENGINE" },
        { "buffers", 0, 0, G_OPTION_ARG_INT, &options->buffers, "Number of buffers", "N" },
        { "buffer-size", 0, 0, G_OPTION_ARG_INT64, &options->bufferSize,
          "Bytes in each, a multiple of 65536", "BYTES" },
        { "length", 0, 0, G_OPTION_ARG_INT64, &length, "Read so many bytes of the file", "BYTES" },
        { "sparse", 0, 0, G_OPTION_ARG_NONE, &options->sparse, "Leave runs of zeros out as holes", NULL },
        { "rate-limit", 0, 0, G_OPTION_ARG_INT64, &rateLimit, "Move no more per second", "BYTES" },
        { "io-priority", 0, 0, G_OPTION_ARG_STRING, &ioPriority,
          "idle, best-effort or realtime, with an optional level 0 to 7", "CLASS[:LEVEL]" },
        { "compress", 0, 0, G_OPTION_ARG_STRING, &compress,
          "Compress what is written: gzip, bzip2, xz, lzop or zstd, and a level: zstd:3", "FORMAT" },
        { "decompress", 0, 0, G_OPTION_ARG_STRING, &decompress, "Decompress it on the way", "FORMAT" },
        { "digest", 0, 0, G_OPTION_ARG_NONE, &options->digest, "Tell the XXH3-128 of what is in the file",
          NULL },
        { "plain-length", 0, 0, G_OPTION_ARG_INT64, &plainLength,
          "So many bytes at the start are neither digested nor compressed", "BYTES" },
#ifdef VSP_FAULT_INJECTION
        { "fault-file", 0, 0, G_OPTION_ARG_STRING, &options->faultFile, "Make the file fail", "SPEC" },
        { "fault-stream", 0, 0, G_OPTION_ARG_STRING, &options->faultStream, "Make the stream fail",
          "SPEC" },
#endif
        { "print-capabilities", 0, 0, G_OPTION_ARG_NONE, &options->printCapabilities,
          "List what this helper can do, a word a line", NULL },
        { "version", 0, 0, G_OPTION_ARG_NONE, &options->printVersion, "Print the version", NULL },
        { G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &rest, NULL, "NAME FD" },
        { NULL, 0, 0, 0, NULL, NULL, NULL },
    };

    *options = (vspHelperOptions){ .fd = -1, .statusFd = -1, .length = G_MAXUINT64 };
    context = g_option_context_new(NULL);
    g_option_context_set_summary(context, "Moves data between the file open as descriptor FD and stdin "
                                          "(FD is open for writing)\nor stdout (FD is open for reading). "
                                          "NAME is what messages call the file.");
    g_option_context_add_main_entries(context, entries, NULL);
    if (!g_option_context_parse(context, &argc, &argv, error))
        return FALSE;
    if (options->printCapabilities || options->printVersion)
        return TRUE;

    if (!rest || g_strv_length(rest) != 2)
        return fail(error, "%s", "expected: [OPTIONS] NAME FD; see --help");
    fd = strtol(rest[1], &end, 10);
    if (*rest[1] == '\0' || *end != '\0' || fd < 0 || fd > G_MAXINT)
        return fail(error, "not a descriptor: '%s'", rest[1]);
    options->name = g_strdup(rest[0]);
    options->fd = fd;

    if (cache && !vspCacheModeFromString(cache, &options->cache))
        return fail(error, "no such cache mode: '%s'", cache);
    if (engine && !g_str_equal(engine, "auto")) {
        options->engine = vspEngineFind(engine);
        if (!options->engine)
            return fail(error, "no such engine in this build: '%s'", engine);
    }
    if (options->buffers == 0)
        options->buffers = BUFFERS_DEFAULT;
    if (options->bufferSize == 0)
        options->bufferSize = BUFFER_SIZE_DEFAULT;
    if (options->buffers < 1 || options->buffers > BUFFERS_MAX)
        return fail(error, "%s", "--buffers takes a number from 1 to 64");
    if (options->bufferSize < VSP_CACHE_MAX_ALIGNMENT || options->bufferSize > BUFFER_SIZE_MAX ||
        options->bufferSize % VSP_CACHE_MAX_ALIGNMENT)
        return fail(error, "%s", "--buffer-size takes a multiple of 65536 up to 67108864");
    if (ioPriority && !vspIoPriorityParse(ioPriority, &options->ioClass, &options->ioLevel))
        return fail(error, "no such I/O priority: '%s'", ioPriority);
    if (rateLimit < 0)
        return fail(error, "--rate-limit takes a number from 0 up");
    options->rateLimit = rateLimit;
    if (compress && decompress)
        return fail(error, "%s", "--compress and --decompress exclude each other");
    options->decompress = decompress != NULL;
    if ((compress || decompress) && vspCompressionParse(compress ? compress : decompress,
                                                        &options->compression, &options->level, error) < 0)
        return FALSE;
    if (plainLength < 0)
        return fail(error, "--plain-length takes a number from 0 up");
    options->plainLength = plainLength;
    if (length >= 0)
        options->length = length;
    else if (length != -1)
        return fail(error, "%s", "--length takes a number from 0 up");
    return TRUE;
}
