/*
 * cmd-dump.c: vmspool dump: a VM's memory into a core file
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <glib/gi18n.h>

#include "tool.h"

typedef struct {
    vspToolMove move;
    char *qmp;
    char *format;
    gboolean full; /* write zeros out */
    gboolean force;
    gboolean quiet;
    gboolean json;
} vspDumpArgs;

static void
dumpArgsClear(vspDumpArgs *args)
{
    vspToolMoveClear(&args->move);
    g_free(args->qmp);
    g_free(args->format);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(vspDumpArgs, dumpArgsClear)

static void
printSummary(GVariant *report)
{
    guint64 bytes = vspToolReportNumber(report, "transfer/bytes-out");
    guint64 holes = vspToolReportNumber(report, "transfer/hole-bytes");
    guint64 time = vspToolReportNumber(report, "total-ns");
    g_autofree char *guest = vspToolEscape(vspToolReportText(report, "guest"));
    g_autofree char *file = vspToolEscape(vspToolReportText(report, "file"));
    g_autofree char *size = vspToolFormatSize(bytes);
    g_autofree char *took = vspToolFormatTime(time);
    g_autofree char *rate = vspToolFormatRate(bytes, time);

    g_print(_("Dumped '%s' to '%s' (%s): %s in %s, %s (%s, %s)\n"), guest, file,
            vspToolReportText(report, "format"), size, took, rate,
            vspToolReportText(report, "transfer/engine"),
            vspToolReportText(report, "transfer/cache"));
    if (holes > 0) {
        g_autofree char *left = vspToolFormatSize(holes);

        g_print(_("%s of it are zeros that take no room on the disk\n"), left);
    }
}

static int
dumpRun(vspDumpArgs *args, const char *path)
{
    g_autoptr(vspFileWrapperOptions) wrapper = NULL;
    g_autoptr(vspVmOptions) options = vspVmOptionsNew();
    g_autoptr(vspToolProgress) progress = NULL;
    g_autoptr(GVariant) report = NULL;
    g_autoptr(GError) error = NULL;
    GCancellable *cancellable = vspToolCancellable();

    /* The compressed formats have no zeros to leave out, and need not be searched for any. */
    args->move.sparse = !args->full && (!args->format || g_str_equal(args->format, "elf"));
    wrapper = vspToolMoveToOptions(&args->move, &error);
    if (!wrapper)
        return vspToolUsage("dump", "%s", error->message);

    progress = vspToolProgressNew(_("Dumping"), args->quiet || args->json);
    vspVmOptionsSetWrapper(options, wrapper);
    vspVmOptionsSetDumpFormat(options, args->format);
    vspVmOptionsSetOverwrite(options, args->force);
    vspVmOptionsSetProgress(options, vspToolProgressUpdate, progress);
    if (!args->quiet)
        vspVmOptionsSetNotice(options, vspToolNotice, NULL);

    if (vspVmDump(args->qmp, path, options, cancellable, &report, &error) < 0) {
        g_clear_pointer(&progress, vspToolProgressFree);
        return vspToolFail(error, args->json);
    }
    g_clear_pointer(&progress, vspToolProgressFree);
    if (args->json)
        vspToolPrintReport(report);
    else if (!args->quiet)
        printSummary(report);
    return VSP_EXIT_DONE;
}

int
vspCmdDump(int argc, char **argv)
{
    g_auto(vspDumpArgs) args = { 0 };
    const GOptionEntry entries[] = {
        { "qmp", 0, 0, G_OPTION_ARG_FILENAME, &args.qmp, N_("The VM's QMP monitor socket"),
          N_("SOCKET") },
        { "format", 0, 0, G_OPTION_ARG_STRING, &args.format,
          N_("elf (the default), or one of the other formats that this QEMU has"), N_("FORMAT") },
        { "no-sparse", 0, 0, G_OPTION_ARG_NONE, &args.full,
          N_("Write the zeros of an elf dump too, instead of leaving holes"), NULL },
        { "force", 'f', 0, G_OPTION_ARG_NONE, &args.force, N_("Replace a file that holds data"),
          NULL },
        { "quiet", 'q', 0, G_OPTION_ARG_NONE, &args.quiet,
          N_("No progress, no notes and no summary"), NULL },
        { "json", 0, 0, G_OPTION_ARG_NONE, &args.json, N_("Print the statistics as JSON"), NULL },
        { NULL, 0, 0, 0, NULL, NULL, NULL },
    };
    g_autoptr(GOptionContext) context = vspToolContextNew(
        _("FILE"),
        _("Writes a core dump of a VM's memory to FILE. The VM is paused meanwhile, and goes on "
          "afterwards, whatever happens."),
        NULL);

    g_option_context_add_main_entries(context, entries, GETTEXT_PACKAGE);
    vspToolMoveAddTo(&args.move, context, VSP_TOOL_MOVE_TRANSPORT);
    if (!vspToolParse(context, "dump", &argc, &argv))
        return VSP_EXIT_USAGE;
    if (argc != 2)
        return vspToolUsage("dump", _("expected: %s"), "FILE");
    if (!args.qmp)
        return vspToolUsage("dump", _("--qmp is missing: which VM?"));
    return dumpRun(&args, argv[1]);
}
