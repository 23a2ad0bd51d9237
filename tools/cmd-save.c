/*
 * cmd-save.c: vmspool save: a VM into an image
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <glib/gi18n.h>

#include "tool.h"

typedef struct {
    vspToolMove move;
    char *qmp;
    char *xml;
    gboolean running;
    gboolean paused;
    gboolean keepPaused;
    gboolean force;
    char *compress;
    gboolean noDigest;
    gboolean quiet;
    gboolean json;
} vspSaveArgs;

static void
saveArgsClear(vspSaveArgs *args)
{
    vspToolMoveClear(&args->move);
    g_free(args->qmp);
    g_free(args->xml);
    g_free(args->compress);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(vspSaveArgs, saveArgsClear)

static void
printSummary(GVariant *report)
{
    guint64 bytes = vspToolReportNumber(report, "transfer/bytes-out");
    guint64 time = vspToolReportNumber(report, "total-ns");
    g_autofree char *guest = vspToolEscape(vspToolReportText(report, "guest"));
    g_autofree char *file = vspToolEscape(vspToolReportText(report, "file"));
    g_autofree char *size = vspToolFormatSize(bytes);
    g_autofree char *took = vspToolFormatTime(time);
    g_autofree char *rate = vspToolFormatRate(bytes, time);

    g_print(_("Saved '%s' to '%s': %s in %s, %s (%s, %s)\n"), guest, file, size, took, rate,
            vspToolReportText(report, "transfer/engine"),
            vspToolReportText(report, "transfer/cache"));
}

static int
saveRun(vspSaveArgs *args, const char *path)
{
    g_autoptr(vspFileWrapperOptions) wrapper = NULL;
    g_autoptr(vspVmOptions) options = vspVmOptionsNew();
    g_autoptr(vspToolProgress) progress = NULL;
    g_autoptr(GVariant) report = NULL;
    g_autoptr(GError) error = NULL;
    g_autofree char *xml = NULL;
    GCancellable *cancellable = vspToolCancellable();

    wrapper = vspToolMoveToOptions(&args->move, &error);
    if (!wrapper)
        return vspToolUsage("save", "%s", error->message);
    if (args->compress && vspCompressionCheck(args->compress, &error) < 0)
        return vspToolUsage("save", "%s", error->message);
    vspFileWrapperOptionsSetCompression(wrapper, args->compress);
    if (args->xml && !g_file_get_contents(args->xml, &xml, NULL, &error))
        return vspToolFail(error, args->json);

    progress = vspToolProgressNew(_("Saving"), args->quiet || args->json);
    vspVmOptionsSetWrapper(options, wrapper);
    vspVmOptionsSetDigest(options, !args->noDigest);
    vspVmOptionsSetDomainXml(options, xml);
    vspVmOptionsSetKeepPaused(options, args->keepPaused);
    vspVmOptionsSetOverwrite(options, args->force);
    if (args->running || args->paused)
        vspVmOptionsSetRunState(options,
                                args->running ? VSP_RUN_STATE_RUNNING : VSP_RUN_STATE_PAUSED);
    vspVmOptionsSetProgress(options, vspToolProgressUpdate, progress);
    if (!args->quiet)
        vspVmOptionsSetNotice(options, vspToolNotice, NULL);

    if (vspVmSave(args->qmp, path, options, cancellable, &report, &error) < 0) {
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
vspCmdSave(int argc, char **argv)
{
    g_auto(vspSaveArgs) args = { 0 };
    const GOptionEntry entries[] = {
        { "qmp", 0, 0, G_OPTION_ARG_FILENAME, &args.qmp, N_("The VM's QMP monitor socket"),
          N_("SOCKET") },
        { "xml", 0, 0, G_OPTION_ARG_FILENAME, &args.xml,
          N_("The domain XML to store, as 'virsh dumpxml --migratable' prints it"), N_("XMLFILE") },
        { "running", 0, 0, G_OPTION_ARG_NONE, &args.running,
          N_("Let the VM run after a restore, also if it is paused now"), NULL },
        { "paused", 0, 0, G_OPTION_ARG_NONE, &args.paused,
          N_("Leave the VM paused after a restore"), NULL },
        { "keep-paused", 0, 0, G_OPTION_ARG_NONE, &args.keepPaused,
          N_("Leave QEMU paused instead of ending it"), NULL },
        { "force", 'f', 0, G_OPTION_ARG_NONE, &args.force, N_("Replace a file that holds data"),
          NULL },
        { "compress", 0, 0, G_OPTION_ARG_STRING, &args.compress,
          N_("Compress the VM's state: gzip, bzip2, xz, lzop or zstd, and a level: zstd:3"),
          N_("FORMAT") },
        { "no-digest", 0, 0, G_OPTION_ARG_NONE, &args.noDigest,
          N_("Do not put a digest of the VM's state into the image"), NULL },
        { "quiet", 'q', 0, G_OPTION_ARG_NONE, &args.quiet,
          N_("No progress, no notes and no summary"), NULL },
        { "json", 0, 0, G_OPTION_ARG_NONE, &args.json, N_("Print the statistics as JSON"), NULL },
        { NULL, 0, 0, 0, NULL, NULL, NULL },
    };
    g_autoptr(GOptionContext) context =
        vspToolContextNew(_("FILE"),
                          _("Saves a VM's memory and device state into FILE, a libvirt save image, "
                            "and ends QEMU. Done "
                            "means that FILE is complete and durable; anything else, Ctrl-C "
                            "included, leaves the VM as "
                            "it was."),
                          NULL);

    g_option_context_add_main_entries(context, entries, GETTEXT_PACKAGE);
    vspToolMoveAddTo(&args.move, context, VSP_TOOL_MOVE_TRANSPORT | VSP_TOOL_MOVE_WRITES);
    if (!vspToolParse(context, "save", &argc, &argv))
        return VSP_EXIT_USAGE;
    if (argc != 2)
        return vspToolUsage("save", _("expected: %s"), "FILE");
    if (!args.qmp)
        return vspToolUsage("save", _("--qmp is missing: which VM?"));
    if (args.running && args.paused)
        return vspToolUsage("save", _("--running and --paused exclude each other"));
    return saveRun(&args, argv[1]);
}
