/*
 * cmd-convert.c: vmspool convert: a save image written anew
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <glib/gi18n.h>

#include "tool.h"

/* As in a new image. */
#define ROOM (64 * 1024)

static void
printSummary(const char *path, GVariant *report)
{
    guint64 bytes = vspToolReportNumber(report, "payload-size");
    guint64 time = vspToolReportNumber(report, "transfer/transfer-ns") +
                   vspToolReportNumber(report, "transfer/sync-ns");
    g_autofree char *name = vspToolEscape(path);
    g_autofree char *size = vspToolFormatSize(bytes);
    g_autofree char *rate = vspToolFormatRate(bytes, time);

    g_print(_("Wrote %s: %s at %s\n"), name, size, rate);
}

int
vspCmdConvert(int argc, char **argv)
{
    g_auto(vspToolMove) move = { 0 };
    g_autofree char *xmlRoom = NULL;
    g_autofree char *compress = NULL;
    gboolean raw = FALSE;
    gboolean force = FALSE, quiet = FALSE, json = FALSE;
    const GOptionEntry entries[] = {
        { "compress", 0, 0, G_OPTION_ARG_STRING, &compress,
          N_("Compress the VM's state: gzip, bzip2, xz, lzop or zstd, and a level: zstd:3"),
          N_("FORMAT") },
        { "raw", 0, 0, G_OPTION_ARG_NONE, &raw, N_("Store the VM's state uncompressed"), NULL },
        { "xml-room", 0, 0, G_OPTION_ARG_STRING, &xmlRoom,
          N_("Room behind the XML for later edits; k and M are understood"), N_("BYTES") },
        { "force", 'f', 0, G_OPTION_ARG_NONE, &force, N_("Replace a file that holds data"), NULL },
        { "quiet", 'q', 0, G_OPTION_ARG_NONE, &quiet, N_("No progress and no summary"), NULL },
        { "json", 0, 0, G_OPTION_ARG_NONE, &json, N_("Print the result as JSON"), NULL },
        { NULL, 0, 0, 0, NULL, NULL, NULL },
    };
    g_autoptr(GOptionContext) context = vspToolContextNew(
        _("IN OUT"),
        _("Writes the save image IN anew to OUT, aligned and sealed. OUT may be IN itself."), NULL);
    g_autoptr(vspFileWrapperOptions) options = NULL;
    g_autoptr(vspToolProgress) progress = NULL;
    g_autoptr(GVariant) report = NULL;
    g_autoptr(GError) error = NULL;
    GCancellable *cancellable;
    guint64 room = ROOM;
    int rc;

    g_option_context_add_main_entries(context, entries, GETTEXT_PACKAGE);
    vspToolMoveAddTo(&move, context, VSP_TOOL_MOVE_WRITES);
    if (!vspToolParse(context, "convert", &argc, &argv))
        return VSP_EXIT_USAGE;
    if (argc != 3)
        return vspToolUsage("convert", _("expected: IN OUT"));
    if (xmlRoom && !vspToolParseSize(xmlRoom, &room))
        return vspToolUsage("convert", _("not a size: '%s'"), xmlRoom);
    if (raw && compress)
        return vspToolUsage("convert", _("--raw and --compress exclude each other"));
    if (compress && vspCompressionCheck(compress, &error) < 0)
        return vspToolUsage("convert", "%s", error->message);
    options = vspToolMoveToOptions(&move, &error);
    if (!options)
        return vspToolUsage("convert", "%s", error->message);

    cancellable = vspToolCancellable();
    progress = vspToolProgressNew(_("Converting"), quiet || json);
    rc = vspSaveImageConvert(argv[1], argv[2], raw ? "raw" : compress, room, force, options, vspToolProgressUpdate,
                             progress, cancellable, &report, &error);
    g_clear_pointer(&progress, vspToolProgressFree);
    if (rc < 0)
        return vspToolFail(error, json);
    if (json)
        vspToolPrintReport(report);
    else if (!quiet)
        printSummary(argv[2], report);
    return VSP_EXIT_DONE;
}
