/*
 * cmd-copy.c: vmspool copy: the mover by itself
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
    guint64 bytes = vspToolReportNumber(report, "bytes-out");
    guint64 time = vspToolReportNumber(report, "transfer-ns") + vspToolReportNumber(report, "sync-ns");
    g_autofree char *size = vspToolFormatSize(bytes);
    g_autofree char *took = vspToolFormatTime(time);
    g_autofree char *rate = vspToolFormatRate(bytes, time);

    /* On stderr: stdout may be the copy. */
    g_printerr(_("Copied %s in %s, %s (%s, %s)\n"), size, took, rate,
               vspToolReportText(report, "engine"), vspToolReportText(report, "cache"));
    if (vspToolReportText(report, "digest"))
        g_printerr(_("XXH3-128: %s\n"), vspToolReportText(report, "digest"));
}

int
vspCmdCopy(int argc, char **argv)
{
    g_auto(vspToolMove) move = { 0 };
    gboolean json = FALSE;
    gboolean force = FALSE;
    gboolean digest = FALSE;
    g_autofree char *compress = NULL;
    g_autofree char *decompress = NULL;
    gboolean quiet = FALSE;
    const GOptionEntry entries[] = {
        { "force", 'f', 0, G_OPTION_ARG_NONE, &force, N_("Replace a file that holds data"), NULL },
        { "compress", 0, 0, G_OPTION_ARG_STRING, &compress,
          N_("Compress the file that is written: gzip, bzip2, xz, lzop or zstd, and a level: zstd:3"),
          N_("FORMAT") },
        { "decompress", 0, 0, G_OPTION_ARG_STRING, &decompress,
          N_("Decompress IN on the way: gzip, bzip2, xz, lzop or zstd"), N_("FORMAT") },
        { "digest", 0, 0, G_OPTION_ARG_NONE, &digest,
          N_("Tell the XXH3-128 of the file that is written, or of the one that is read"), NULL },
        { "quiet", 'q', 0, G_OPTION_ARG_NONE, &quiet, N_("No progress and no summary"), NULL },
        { "json", 0, 0, G_OPTION_ARG_NONE, &json, N_("Print the statistics as JSON"), NULL },
        { NULL, 0, 0, 0, NULL, NULL, NULL },
    };
    g_autoptr(GOptionContext) context = vspToolContextNew(
        _("IN OUT"), _("Copies IN to OUT; '-' is stdin or stdout. Done means that OUT is durable."), NULL);
    g_autoptr(vspFileWrapperOptions) options = NULL;
    g_autoptr(vspToolProgress) progress = NULL;
    g_autoptr(GVariant) report = NULL;
    g_autoptr(GError) error = NULL;
    gboolean created = FALSE;
    GCancellable *cancellable;
    int in, out;

    g_option_context_add_main_entries(context, entries, GETTEXT_PACKAGE);
    vspToolMoveAddTo(&move, context, VSP_TOOL_MOVE_WRITES);
    if (!vspToolParse(context, "copy", &argc, &argv))
        return VSP_EXIT_USAGE;
    if (argc != 3)
        return vspToolUsage("copy", _("expected: IN OUT"));
    options = vspToolMoveToOptions(&move, &error);
    if (!options)
        return vspToolUsage("copy", "%s", error->message);
    if (compress && decompress)
        return vspToolUsage("copy", _("--compress and --decompress exclude each other"));
    if ((compress || decompress) && vspCompressionCheck(compress ? compress : decompress, &error) < 0)
        return vspToolUsage("copy", "%s", error->message);
    vspFileWrapperOptionsSetCompression(options, compress);
    vspFileWrapperOptionsSetDecompression(options, decompress);
    vspFileWrapperOptionsSetDigest(options, digest);
    if (json && g_str_equal(argv[2], "-"))
        return vspToolUsage("copy", _("--json and a copy to stdout would mix"));

    cancellable = vspToolCancellable();
    in = vspToolOpenEnd(argv[1], FALSE, FALSE, NULL, &error);
    if (in < 0)
        return vspToolFail(error, json);
    out = vspToolOpenEnd(argv[2], TRUE, force, &created, &error);
    if (out < 0 || !vspToolMayWrite(out, argv[2], force, &error))
        return vspToolFail(error, json);

    progress = vspToolProgressNew(_("Copying"), quiet || json);
    if (vspCopy(in, argv[1], out, argv[2], options, vspToolProgressUpdate, progress, cancellable, &report,
                &error) < 0) {
        g_clear_pointer(&progress, vspToolProgressFree);
        if (created)
            unlink(argv[2]);
        return vspToolFail(error, json);
    }
    g_clear_pointer(&progress, vspToolProgressFree);
    if (vspToolReportText(report, "notice") && !quiet)
        vspToolNotice(_(vspToolReportText(report, "notice")), NULL);
    if (json)
        vspToolPrintReport(report);
    else if (!quiet)
        printSummary(report);
    return VSP_EXIT_DONE;
}
