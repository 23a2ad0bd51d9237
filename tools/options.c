/*
 * options.c: command lines
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <glib/gi18n.h>
#include <string.h>

#include "tool.h"

void
vspToolMoveAddTo(vspToolMove *move, GOptionContext *context, unsigned int parts)
{
    const GOptionEntry entries[] = {
        { "bypass-cache", 0, 0, G_OPTION_ARG_NONE, &move->bypassCache,
          N_("Keep the file out of the page cache"), NULL },
        { "cache", 0, 0, G_OPTION_ARG_STRING, &move->cache,
          N_("How to treat the page cache: auto, direct, dontcache, paced or cached"), N_("MODE") },
        { "strict", 0, 0, G_OPTION_ARG_NONE, &move->strict,
          N_("Fail if the cache mode asked for can't be had"), NULL },
        { "engine", 0, 0, G_OPTION_ARG_STRING, &move->engine,
          N_("How the helper does its I/O: auto, uring, threads, zerocopy or sync"), N_("ENGINE") },
        { "limit-rate", 0, 0, G_OPTION_ARG_STRING, &move->limitRate,
          N_("Move no more than so many bytes a second; k, M and G are understood"), N_("RATE") },
        { "io-priority", 0, 0, G_OPTION_ARG_STRING, &move->ioPriority,
          N_("The I/O priority: idle, best-effort or realtime, and a level: best-effort:7"), N_("CLASS") },
        { NULL, 0, 0, 0, NULL, NULL, NULL },
    };

    const GOptionEntry transports[] = {
        { "transport", 0, 0, G_OPTION_ARG_STRING, &move->transport,
          N_("What lies before the helper: auto, pipe or socket"), N_("KIND") },
        { NULL, 0, 0, 0, NULL, NULL, NULL },
    };

    const GOptionEntry writes[] = {
        { "sparse", 0, 0, G_OPTION_ARG_NONE, &move->sparse, N_("Leave runs of zeros out as holes"), NULL },
        { NULL, 0, 0, 0, NULL, NULL, NULL },
    };

    g_option_context_add_main_entries(context, entries, GETTEXT_PACKAGE);
    if (parts & VSP_TOOL_MOVE_TRANSPORT)
        g_option_context_add_main_entries(context, transports, GETTEXT_PACKAGE);
    if (parts & VSP_TOOL_MOVE_WRITES)
        g_option_context_add_main_entries(context, writes, GETTEXT_PACKAGE);
}

gboolean
vspToolParseSize(const char *text, guint64 *rate)
{
    static const char suffixes[] = "kMG";
    char *end;
    const char *suffix;
    guint64 unit = 1;

    if (!g_ascii_isdigit(*text))
        return FALSE;
    *rate = g_ascii_strtoull(text, &end, 10);
    if (*end) {
        suffix = strchr(suffixes, *end == 'K' ? 'k' : *end);
        if (!suffix || end[1])
            return FALSE;
        unit = (guint64) 1 << (10 * (suffix - suffixes + 1));
    }
    return *rate > 0 && g_uint64_checked_mul(rate, *rate, unit) && *rate <= G_MAXINT64;
}

vspFileWrapperOptions *
vspToolMoveToOptions(const vspToolMove *move, GError **error)
{
    g_autoptr(vspFileWrapperOptions) options = vspFileWrapperOptionsNew();
    vspCacheMode mode = VSP_CACHE_AUTO;
    vspTransport transport = VSP_TRANSPORT_AUTO;
    guint64 rate = 0;

    if (move->bypassCache && move->cache) {
        g_set_error(error, VSP_ERROR, VSP_ERROR_INVALID_ARGUMENT,
                    _("--bypass-cache and --cache exclude each other"));
        return NULL;
    }
    if (move->cache && !vspCacheModeFromString(move->cache, &mode)) {
        g_set_error(error, VSP_ERROR, VSP_ERROR_INVALID_ARGUMENT, _("no such cache mode: '%s'"),
                    move->cache);
        return NULL;
    }
    if (move->transport && !vspTransportFromString(move->transport, &transport)) {
        g_set_error(error, VSP_ERROR, VSP_ERROR_INVALID_ARGUMENT, _("no such transport: '%s'"),
                    move->transport);
        return NULL;
    }
    if (move->limitRate && !vspToolParseSize(move->limitRate, &rate)) {
        g_set_error(error, VSP_ERROR, VSP_ERROR_INVALID_ARGUMENT, _("not a rate: '%s'"), move->limitRate);
        return NULL;
    }
    if (move->ioPriority && !vspIoPriorityIsValid(move->ioPriority)) {
        g_set_error(error, VSP_ERROR, VSP_ERROR_INVALID_ARGUMENT, _("no such I/O priority: '%s'"),
                    move->ioPriority);
        return NULL;
    }
    vspFileWrapperOptionsSetFlags(options, (move->bypassCache ? VSP_FILE_WRAPPER_BYPASS_CACHE : 0) |
                                               (move->sparse ? VSP_FILE_WRAPPER_SPARSE : 0));
    vspFileWrapperOptionsSetRateLimit(options, rate);
    vspFileWrapperOptionsSetIoPriority(options, move->ioPriority);
    vspFileWrapperOptionsSetCacheMode(options, mode);
    vspFileWrapperOptionsSetTransport(options, transport);
    vspFileWrapperOptionsSetStrict(options, move->strict);
    if (move->engine && !g_str_equal(move->engine, "auto"))
        vspFileWrapperOptionsSetEngine(options, move->engine);
    return g_steal_pointer(&options);
}

void
vspToolMoveClear(vspToolMove *move)
{
    g_free(move->cache);
    g_free(move->transport);
    g_free(move->engine);
    g_free(move->limitRate);
    g_free(move->ioPriority);
}

GOptionContext *
vspToolContextNew(const char *parameters, const char *summary, const char *description)
{
    GOptionContext *context = g_option_context_new(parameters);

    g_option_context_set_translation_domain(context, GETTEXT_PACKAGE);
    g_option_context_set_summary(context, summary);
    g_option_context_set_description(context, description);
    return context;
}

gboolean
vspToolParse(GOptionContext *context, const char *command, int *argc, char ***argv)
{
    g_autoptr(GError) error = NULL;

    if (g_option_context_parse(context, argc, argv, &error))
        return TRUE;
    vspToolUsage(command, "%s", error->message);
    return FALSE;
}

int
vspToolUsage(const char *command, const char *format, ...)
{
    g_autofree char *text = NULL;
    g_autofree char *escaped = NULL;
    va_list args;

    va_start(args, format);
    text = g_strdup_vprintf(format, args);
    va_end(args);
    escaped = vspToolEscape(text);
    g_printerr("vmspool: %s\n", escaped);
    g_printerr(command ? _("See 'vmspool %s --help'.\n") : _("See 'vmspool --help'.\n"), command);
    return VSP_EXIT_USAGE;
}
