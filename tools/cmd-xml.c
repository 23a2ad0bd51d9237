/*
 * cmd-xml.c: vmspool xml: the domain XML in a save image
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <glib/gi18n.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tool.h"

typedef struct {
    gboolean securityInfo;
    gboolean running;
    gboolean paused;
    gboolean force;
    gboolean inPlace;
    gboolean quiet;
    gboolean json;
} xmlOptions;

static vspRunState
getState(const xmlOptions *options)
{
    if (options->running)
        return VSP_RUN_STATE_RUNNING;
    return options->paused ? VSP_RUN_STATE_PAUSED : VSP_RUN_STATE_SAME;
}

static GVariant *
makeShowReport(const char *path, const char *xml, guint hidden)
{
    g_autofree char *file = vspToolEscape(path);
    GVariantBuilder builder;

    g_variant_builder_init(&builder, G_VARIANT_TYPE_VARDICT);
    g_variant_builder_add(&builder, "{sv}", "file", g_variant_new_string(file));
    g_variant_builder_add(&builder, "{sv}", "xml", g_variant_new_string(xml));
    g_variant_builder_add(&builder, "{sv}", "hidden", g_variant_new_uint32(hidden));
    return g_variant_ref_sink(g_variant_builder_end(&builder));
}

/* What does something to a terminal is shown by its number, if it is one that we write to. */
static void
printXml(const char *xml)
{
    g_auto(GStrv) lines = NULL;

    if (!isatty(STDOUT_FILENO)) {
        fputs(xml, stdout);
        if (*xml && xml[strlen(xml) - 1] != '\n')
            putchar('\n');
        return;
    }
    lines = g_strsplit(xml, "\n", -1);
    for (gsize i = 0; lines[i]; i++) {
        g_autofree char *expanded = NULL;
        g_auto(GStrv) parts = g_strsplit(lines[i], "\t", -1);

        if (!lines[i + 1] && !*lines[i])
            break;
        expanded = g_strjoinv("        ", parts);
        g_free(lines[i]);
        lines[i] = vspToolEscape(expanded);
        g_print("%s\n", lines[i]);
    }
}

static int
show(const char *path, const xmlOptions *options)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(vspSaveImage) image = vspSaveImageOpen(path, &error);
    g_autoptr(GVariant) report = NULL;
    g_autofree char *xml = NULL;
    guint hidden = 0;

    if (!image)
        return vspToolFail(error, options->json);
    xml = options->securityInfo ? g_strdup(vspSaveImageGetXml(image))
                                : vspSaveImageGetPublicXml(image, &hidden);
    report = makeShowReport(path, xml, hidden);
    if (!options->json) {
        printXml(xml);
        if (fflush(stdout) != 0 || ferror(stdout)) {
            g_set_error(&error, VSP_ERROR, VSP_ERROR_IO, _("cannot write '%s': %s"), "-",
                        g_strerror(errno));
            return vspToolFail(error, FALSE);
        }
        if (hidden && !options->quiet)
            vspToolNotice(_("passwords are left out; --security-info shows them"), NULL);
    }
    if (vspSaveImageIsComplete(image)) {
        if (options->json)
            vspToolPrintReport(report);
        return VSP_EXIT_DONE;
    }
    /* Shown, and a failure all the same, as in `info`. */
    g_set_error(&error, VSP_ERROR, VSP_ERROR_IMAGE_PARTIAL,
                _("the save did not finish: %s is incomplete"), path);
    return options->json ? vspToolFailWithReport(error, report) : vspToolFail(error, FALSE);
}

static int
change(
    const char *path, const char *xml, const xmlOptions *options, GVariant **report, GError **error)
{
    g_autoptr(vspToolProgress) progress =
        vspToolProgressNew(_("Copying"), options->quiet || options->json);
    unsigned int flags = (options->force ? VSP_SAVE_IMAGE_EDIT_FORCE : 0) |
                         (options->inPlace ? VSP_SAVE_IMAGE_EDIT_IN_PLACE : 0);

    return vspSaveImageEdit(path, xml, getState(options), flags, vspToolProgressUpdate, progress,
                            vspToolCancellable(), report, error);
}

static int
tell(const char *path, GVariant *report, const xmlOptions *options)
{
    gboolean changed = FALSE;

    g_variant_lookup(report, "changed", "b", &changed);
    if (options->json) {
        vspToolPrintReport(report);
    } else if (!options->quiet) {
        g_autofree char *name = vspToolEscape(path);

        g_print(changed ? _("Changed %s\n") : _("Nothing to change in %s\n"), name);
    }
    return VSP_EXIT_DONE;
}

static int
replace(const char *path, const char *xmlPath, const xmlOptions *options)
{
    g_autoptr(GVariant) report = NULL;
    g_autoptr(GError) error = NULL;
    g_autofree char *xml = xmlPath ? vspToolReadText(xmlPath, &error) : NULL;

    if (error || change(path, xml, options, &report, &error) < 0)
        return vspToolFail(error, options->json);
    return tell(path, report, options);
}

/* Whether to start the editor again after @error. Nobody to ask: no. */
static gboolean
askAgain(const GError *error)
{
    char answer[16];

    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
        return FALSE;
    vspToolFail(error, FALSE);
    g_printerr("%s", _("Edit again? [Y/n] "));
    return fgets(answer, sizeof(answer), stdin) && !strchr("nN", answer[0]);
}

static int
edit(const char *path, const xmlOptions *options)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(vspSaveImage) image = vspSaveImageOpen(path, &error);
    g_autoptr(vspToolEditor) editor = NULL;
    g_autoptr(GVariant) report = NULL;
    gboolean edited = FALSE;

    if (!image)
        return vspToolFail(error, options->json);
    if (!vspSaveImageIsComplete(image)) {
        g_set_error(&error, VSP_ERROR, VSP_ERROR_IMAGE_PARTIAL,
                    _("the save did not finish: %s is incomplete"), path);
        return vspToolFail(error, options->json);
    }
    editor = vspToolEditorNew(vspSaveImageGetXml(image), &error);
    if (!editor)
        return vspToolFail(error, options->json);
    for (;;) {
        g_autofree char *xml = vspToolEditorRun(editor, &error);

        if (xml) {
            edited = edited || !g_str_equal(xml, vspSaveImageGetXml(image));
            /* An editor that ends the last line has changed nothing. */
            g_autofree char *ended = g_strconcat(vspSaveImageGetXml(image), "\n", NULL);

            if (g_str_equal(xml, ended))
                xml[strlen(xml) - 1] = '\0';
            if (change(path, xml, options, &report, &error) == 0)
                return tell(path, report, options);
        }
        if (!askAgain(error))
            break;
        g_clear_error(&error);
    }
    if (edited)
        g_prefix_error(&error, _("your text is kept in '%s': "), vspToolEditorKeep(editor));
    return vspToolFail(error, options->json);
}

int
vspCmdXml(int argc, char **argv)
{
    xmlOptions options = { 0 };
    const GOptionEntry entries[] = {
        { "security-info", 0, 0, G_OPTION_ARG_NONE, &options.securityInfo,
          N_("show: with passwords"), NULL },
        { "running", 0, 0, G_OPTION_ARG_NONE, &options.running,
          N_("replace, edit: the VM will run after a restore"), NULL },
        { "paused", 0, 0, G_OPTION_ARG_NONE, &options.paused,
          N_("replace, edit: the VM will be paused after a restore"), NULL },
        { "force", 'f', 0, G_OPTION_ARG_NONE, &options.force,
          N_("replace, edit: take another name, UUID or memory size"), NULL },
        { "in-place", 0, 0, G_OPTION_ARG_NONE, &options.inPlace,
          N_("replace, edit: write over the image and make no copy"), NULL },
        { "quiet", 'q', 0, G_OPTION_ARG_NONE, &options.quiet, N_("No progress and no summary"),
          NULL },
        { "json", 0, 0, G_OPTION_ARG_NONE, &options.json, N_("Print the result as JSON"), NULL },
        { NULL, 0, 0, 0, NULL, NULL, NULL },
    };
    g_autoptr(GOptionContext) context =
        vspToolContextNew(_("show|replace|edit FILE [XMLFILE]"),
                          _("Shows, replaces or edits the domain XML in the save image FILE."),
                          _("replace reads XMLFILE ('-' is stdin), or leaves the XML with "
                            "--running or --paused alone.\n"
                            "edit starts $VISUAL or $EDITOR."));
    const char *verb, *path;

    g_option_context_add_main_entries(context, entries, GETTEXT_PACKAGE);
    if (!vspToolParse(context, "xml", &argc, &argv))
        return VSP_EXIT_USAGE;
    if (argc > 1 && g_str_equal(argv[1], "--")) {
        argv++;
        argc--;
    }
    if (argc < 3)
        return vspToolUsage("xml", _("expected: show, replace or edit, and FILE"));
    verb = argv[1];
    path = argv[2];
    if (options.running && options.paused)
        return vspToolUsage("xml", _("--running and --paused exclude each other"));
    if (g_str_equal(verb, "show")) {
        if (argc != 3)
            return vspToolUsage("xml", _("expected: show FILE"));
        if (options.running || options.paused || options.force || options.inPlace)
            return vspToolUsage("xml", _("show takes no option that changes the image"));
        return show(path, &options);
    }
    if (options.securityInfo)
        return vspToolUsage("xml", _("--security-info is for show"));
    if (g_str_equal(verb, "replace")) {
        if (argc > 4 || (argc == 3 && !options.running && !options.paused))
            return vspToolUsage("xml", _("expected: replace FILE XMLFILE"));
        return replace(path, argv[3], &options);
    }
    if (g_str_equal(verb, "edit")) {
        if (argc != 3)
            return vspToolUsage("xml", _("expected: edit FILE"));
        return edit(path, &options);
    }
    return vspToolUsage("xml", _("xml can show, replace and edit, but not '%s'"), verb);
}
