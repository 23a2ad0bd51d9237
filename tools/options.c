/*
 * options.c: command lines
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <glib/gi18n.h>

#include "tool.h"

void
vspToolMoveAddTo(vspToolMove *move, GOptionContext *context, gboolean transport)
{
    const GOptionEntry entries[] = {
        { "bypass-cache", 0, 0, G_OPTION_ARG_NONE, &move->bypassCache,
          N_("Keep the file out of the page cache"), NULL },
        { "cache", 0, 0, G_OPTION_ARG_STRING, &move->cache,
          N_("How to treat the page cache: auto, direct, dontcache, paced or cached"), N_("MODE") },
        { "strict", 0, 0, G_OPTION_ARG_NONE, &move->strict,
          N_("Fail if the cache mode asked for can't be had"), NULL },
        { "engine", 0, 0, G_OPTION_ARG_STRING, &move->engine,
          N_("How the helper does its I/O: auto, uring or sync"), N_("ENGINE") },
        { NULL, 0, 0, 0, NULL, NULL, NULL },
    };

    const GOptionEntry transports[] = {
        { "transport", 0, 0, G_OPTION_ARG_STRING, &move->transport,
          N_("What lies before the helper: auto, pipe or socket"), N_("KIND") },
        { NULL, 0, 0, 0, NULL, NULL, NULL },
    };

    g_option_context_add_main_entries(context, entries, GETTEXT_PACKAGE);
    if (transport)
        g_option_context_add_main_entries(context, transports, GETTEXT_PACKAGE);
}

vspFileWrapperOptions *
vspToolMoveToOptions(const vspToolMove *move, GError **error)
{
    g_autoptr(vspFileWrapperOptions) options = vspFileWrapperOptionsNew();
    vspCacheMode mode = VSP_CACHE_AUTO;
    vspTransport transport = VSP_TRANSPORT_AUTO;

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
    vspFileWrapperOptionsSetFlags(options, move->bypassCache ? VSP_FILE_WRAPPER_BYPASS_CACHE : 0);
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
