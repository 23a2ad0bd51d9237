/*
 * cmd-extract.c: vmspool extract: one part of a save image
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <glib/gi18n.h>
#include <unistd.h>

#include "tool.h"

static void
printSummary(GVariant *report)
{
    g_autofree char *size = vspToolFormatSize(vspToolReportNumber(report, "bytes-out"));

    /* On stderr: stdout may be what was extracted. */
    g_printerr(_("Extracted %s\n"), size);
}

int
vspCmdExtract(int argc, char **argv)
{
    g_auto(vspToolMove) move = { 0 };
    gboolean payload = FALSE, xml = FALSE, cookie = FALSE;
    gboolean force = FALSE, quiet = FALSE, json = FALSE;
    const GOptionEntry entries[] = {
        { "payload", 0, 0, G_OPTION_ARG_NONE, &payload, N_("The VM's state, as it is stored"),
          NULL },
        { "xml", 0, 0, G_OPTION_ARG_NONE, &xml, N_("The domain XML, with passwords"), NULL },
        { "cookie", 0, 0, G_OPTION_ARG_NONE, &cookie, N_("The XML of libvirt's cookie"), NULL },
        { "force", 'f', 0, G_OPTION_ARG_NONE, &force, N_("Replace a file that holds data"), NULL },
        { "quiet", 'q', 0, G_OPTION_ARG_NONE, &quiet, N_("No progress and no summary"), NULL },
        { "json", 0, 0, G_OPTION_ARG_NONE, &json, N_("Print the statistics as JSON"), NULL },
        { NULL, 0, 0, 0, NULL, NULL, NULL },
    };
    g_autoptr(GOptionContext) context =
        vspToolContextNew(_("FILE OUT"),
                          _("Takes one part out of the save image FILE: --payload, --xml or "
                            "--cookie. '-' is stdout."),
                          NULL);
    g_autoptr(vspFileWrapperOptions) options = NULL;
    g_autoptr(vspToolProgress) progress = NULL;
    g_autoptr(vspSaveImage) image = NULL;
    g_autoptr(GVariant) report = NULL;
    g_autoptr(GError) error = NULL;
    GCancellable *cancellable;
    vspSaveImagePart part;
    gboolean created = FALSE;
    int out;

    g_option_context_add_main_entries(context, entries, GETTEXT_PACKAGE);
    vspToolMoveAddTo(&move, context, VSP_TOOL_MOVE_WRITES);
    if (!vspToolParse(context, "extract", &argc, &argv))
        return VSP_EXIT_USAGE;
    if (argc != 3)
        return vspToolUsage("extract", _("expected: FILE OUT"));
    if (payload + xml + cookie != 1)
        return vspToolUsage("extract", _("expected: one of --payload, --xml and --cookie"));
    options = vspToolMoveToOptions(&move, &error);
    if (!options)
        return vspToolUsage("extract", "%s", error->message);
    if (json && g_str_equal(argv[2], "-"))
        return vspToolUsage("extract", _("--json and a part on stdout would mix"));

    cancellable = vspToolCancellable();
    /* Before a file is made for it. */
    image = vspSaveImageOpen(argv[1], &error);
    if (!image)
        return vspToolFail(error, json);
    if (!vspSaveImageIsComplete(image)) {
        g_set_error(&error, VSP_ERROR, VSP_ERROR_IMAGE_PARTIAL,
                    _("the save did not finish: %s is incomplete"), argv[1]);
        return vspToolFail(error, json);
    }
    out = vspToolOpenEnd(argv[2], TRUE, FALSE, &created, &error);
    if (out < 0 || !vspToolMayWrite(out, argv[2], force, &error))
        return vspToolFail(error, json);
    if (force && !created && !vspToolEmpty(out, argv[1], argv[2], &error))
        return vspToolFail(error, json);

    if (payload)
        part = VSP_SAVE_IMAGE_PART_PAYLOAD;
    else
        part = xml ? VSP_SAVE_IMAGE_PART_XML : VSP_SAVE_IMAGE_PART_COOKIE;
    progress = vspToolProgressNew(_("Copying"), quiet || json);
    if (vspSaveImageExtract(argv[1], part, out, argv[2], options, vspToolProgressUpdate, progress,
                            cancellable, &report, &error) < 0) {
        g_clear_pointer(&progress, vspToolProgressFree);
        if (created)
            unlink(argv[2]);
        return vspToolFail(error, json);
    }
    g_clear_pointer(&progress, vspToolProgressFree);
    if (json)
        vspToolPrintReport(report);
    else if (!quiet && !g_str_equal(argv[2], "-"))
        printSummary(report);
    return VSP_EXIT_DONE;
}
