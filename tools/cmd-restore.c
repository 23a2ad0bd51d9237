/*
 * cmd-restore.c: vmspool restore: a VM out of an image
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <glib/gi18n.h>
#include <inttypes.h>
#include <string.h>

#include "tool.h"

typedef struct {
    vspToolMove move;
    char *qmp;
    char **command; /* what stands behind "--"; borrowed, NULL without */
    gboolean useRecorded;
    gboolean running;
    gboolean paused;
    gboolean noDigest;
    gboolean quiet;
    gboolean json;
} vspRestoreArgs;

static void
restoreArgsClear(vspRestoreArgs *args)
{
    vspToolMoveClear(&args->move);
    g_free(args->qmp);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(vspRestoreArgs, restoreArgsClear)

/* An argument as a shell takes it. It may come from somebody else's image: what a terminal would
 * act on is shown in escaped form. */
static char *
quoteArgument(const char *arg)
{
    static const char plain[] = G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "_-+=./:,@%";
    gboolean printable = g_utf8_validate(arg, -1, NULL);
    GString *escaped;

    if (*arg && strspn(arg, plain) == strlen(arg))
        return g_strdup(arg);
    for (const char *p = arg; printable && *p; p = g_utf8_next_char(p))
        printable = g_unichar_isprint(g_utf8_get_char(p));
    if (printable)
        return g_shell_quote(arg);

    escaped = g_string_new("$'");
    for (const char *p = arg; *p; p++) {
        if (g_ascii_isprint(*p) && *p != '\'' && *p != '\\')
            g_string_append_c(escaped, *p);
        else
            g_string_append_printf(escaped, "\\%03o", (guchar)*p);
    }
    g_string_append_c(escaped, '\'');
    return g_string_free(escaped, FALSE);
}

static char *
quoteCommand(const char *const *command)
{
    GString *line = g_string_new(NULL);

    for (; *command; command++) {
        g_autofree char *arg = quoteArgument(*command);

        g_string_append_printf(line, "%s%s", line->len ? " " : "", arg);
    }
    return g_string_free(line, FALSE);
}

/* Neither a monitor nor a command: say how to go on, with the command that the image records. */
static int
explain(const char *path, const char *const *recorded)
{
    g_autofree char *file = quoteArgument(path);
    g_autofree char *line = recorded ? quoteCommand(recorded) : NULL;

    g_printerr(_("vmspool: restore into which QEMU? One of:\n"));
    g_printerr("  vmspool restore %s -- qemu-system-x86_64 ...\n", file);
    g_printerr("  vmspool restore %s --qmp SOCKET\n", file);
    if (!line) {
        g_printerr(_("The image records no command.\n"));
        return VSP_EXIT_USAGE;
    }
    g_printerr(
        _("The VM was saved from this command. It comes from the image: look at it before you "
          "run it, with the arguments of your own or as it stands with "
          "--use-recorded-command:\n"));
    g_printerr("  %s\n", line);
    return VSP_EXIT_USAGE;
}

static void
printSummary(GVariant *report)
{
    guint64 bytes = vspToolReportNumber(report, "transfer/bytes-out");
    guint64 time = vspToolReportNumber(report, "total-ns");
    guint64 pid = vspToolReportNumber(report, "pid");
    g_autofree char *guest = vspToolEscape(vspToolReportText(report, "guest"));
    g_autofree char *file = vspToolEscape(vspToolReportText(report, "file"));
    g_autofree char *size = vspToolFormatSize(bytes);
    g_autofree char *took = vspToolFormatTime(time);
    g_autofree char *rate = vspToolFormatRate(bytes, time);

    g_print(_("Restored '%s' from '%s': %s in %s, %s (%s, %s); the VM is %s\n"), guest, file, size,
            took, rate, vspToolReportText(report, "transfer/engine"),
            vspToolReportText(report, "transfer/cache"),
            g_strcmp0(vspToolReportText(report, "run-state"), "running") == 0 ? _("running")
                                                                              : _("paused"));
    if (pid)
        g_print(_("QEMU is process %" PRIu64 "\n"), pid);
}

static int
restoreInto(vspRestoreArgs *args, const char *path, const char *const *command)
{
    g_autoptr(vspFileWrapperOptions) wrapper = NULL;
    g_autoptr(vspVmOptions) options = vspVmOptionsNew();
    g_autoptr(vspToolProgress) progress = NULL;
    g_autoptr(GVariant) report = NULL;
    g_autoptr(GError) error = NULL;
    GCancellable *cancellable = vspToolCancellable();

    wrapper = vspToolMoveToOptions(&args->move, &error);
    if (!wrapper)
        return vspToolUsage("restore", "%s", error->message);

    progress = vspToolProgressNew(_("Restoring"), args->quiet || args->json);
    vspVmOptionsSetWrapper(options, wrapper);
    vspVmOptionsSetDigest(options, !args->noDigest);
    if (args->running || args->paused)
        vspVmOptionsSetRunState(options,
                                args->running ? VSP_RUN_STATE_RUNNING : VSP_RUN_STATE_PAUSED);
    vspVmOptionsSetProgress(options, vspToolProgressUpdate, progress);
    if (!args->quiet)
        vspVmOptionsSetNotice(options, vspToolNotice, NULL);

    if (vspVmRestore(path, args->qmp, command, options, cancellable, &report, &error) < 0) {
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

static int
restoreRun(vspRestoreArgs *args, const char *path)
{
    g_autoptr(vspSaveImage) image = NULL;
    g_autoptr(GError) error = NULL;
    const char *const *recorded;

    if (args->qmp || args->command)
        return restoreInto(args, path, (const char *const *)args->command);

    image = vspSaveImageOpen(path, &error);
    if (!image)
        return vspToolFail(error, args->json);
    recorded = vspSaveImageGetRecordedCommand(image);
    if (!args->useRecorded)
        return explain(path, recorded);
    if (!recorded || !recorded[0])
        return vspToolUsage("restore", _("'%s' records no command"), path);
    return restoreInto(args, path, recorded);
}

/* Cuts the QEMU command off, whose options are not ours. */
static void
splitCommand(vspRestoreArgs *args, int *argc, char **argv)
{
    for (int i = 1; i < *argc; i++) {
        if (g_str_equal(argv[i], "--")) {
            args->command = argv + i + 1;
            argv[i] = NULL;
            *argc = i;
            return;
        }
    }
}

int
vspCmdRestore(int argc, char **argv)
{
    g_auto(vspRestoreArgs) args = { 0 };
    const GOptionEntry entries[] = {
        { "qmp", 0, 0, G_OPTION_ARG_FILENAME, &args.qmp,
          N_("The monitor socket of a QEMU that waits with '-incoming defer'"), N_("SOCKET") },
        { "use-recorded-command", 0, 0, G_OPTION_ARG_NONE, &args.useRecorded,
          N_("Run the QEMU command that the image records"), NULL },
        { "running", 0, 0, G_OPTION_ARG_NONE, &args.running,
          N_("Let the VM run, whatever the image says"), NULL },
        { "paused", 0, 0, G_OPTION_ARG_NONE, &args.paused,
          N_("Leave the VM paused, whatever the image says"), NULL },
        { "no-digest", 0, 0, G_OPTION_ARG_NONE, &args.noDigest,
          N_("Do not check the image against its digest"), NULL },
        { "quiet", 'q', 0, G_OPTION_ARG_NONE, &args.quiet,
          N_("No progress, no notes and no summary"), NULL },
        { "json", 0, 0, G_OPTION_ARG_NONE, &args.json, N_("Print the statistics as JSON"), NULL },
        { NULL, 0, 0, 0, NULL, NULL, NULL },
    };
    g_autoptr(GOptionContext) context = vspToolContextNew(
        _("FILE [-- QEMU-COMMAND…]"),
        _("Restores a VM from FILE, a libvirt save image, into a QEMU that it starts, or into one "
          "that "
          "waits. FILE is only read. Without a QEMU it shows the command that FILE records."),
        NULL);

    splitCommand(&args, &argc, argv);
    g_option_context_add_main_entries(context, entries, GETTEXT_PACKAGE);
    vspToolMoveAddTo(&args.move, context, VSP_TOOL_MOVE_TRANSPORT);
    if (!vspToolParse(context, "restore", &argc, &argv))
        return VSP_EXIT_USAGE;
    if (argc != 2)
        return vspToolUsage("restore", _("expected: %s"), "FILE [-- QEMU-COMMAND…]");
    if (!!args.qmp + !!args.command + !!args.useRecorded > 1)
        return vspToolUsage("restore",
                            _("--qmp, --use-recorded-command and a command exclude each other"));
    if (args.command && !args.command[0])
        return vspToolUsage("restore", _("'--' has no command behind it"));
    if (args.running && args.paused)
        return vspToolUsage("restore", _("--running and --paused exclude each other"));
    return restoreRun(&args, argv[1]);
}
