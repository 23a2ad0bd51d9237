/*
 * cmd-verify.c: vmspool verify, and vmspool seal, which marks what was verified
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <glib/gi18n.h>

#include "tool.h"

typedef struct {
    const char *command;
    const char *summary;
    const char *verb; /* of the progress */
    gboolean marks;
    int (*run)(const char *path,
               const vspFileWrapperOptions *options,
               vspProgressFunc progress,
               gpointer opaque,
               GCancellable *cancellable,
               GVariant **report,
               GError **error);
} verifyCommand;

static void
printSummary(gboolean marks, const char *path, GVariant *report)
{
    guint64 bytes = vspToolReportNumber(report, "payload-size");
    g_autofree char *name = vspToolEscape(path);
    g_autofree char *size = vspToolFormatSize(bytes);
    g_autofree char *rate =
        vspToolFormatRate(bytes, vspToolReportNumber(report, "transfer/transfer-ns"));
    g_autofree const char **checked = NULL;
    g_autofree const char **notices = NULL;
    g_autofree char *words = NULL;

    g_variant_lookup(report, "checked", "^a&s", &checked);
    g_variant_lookup(report, "notices", "^a&s", &notices);
    for (gsize i = 0; notices && notices[i]; i++)
        vspToolNotice(notices[i], NULL);
    words = g_strjoinv(", ", (char **)checked);
    if (marks)
        g_print(_("%s is marked complete: %s at %s (%s)\n"), name, size, rate, words);
    else
        g_print(_("%s is good: %s at %s (%s)\n"), name, size, rate, words);
}

static int
runCommand(const verifyCommand *self, int argc, char **argv)
{
    g_auto(vspToolMove) move = { 0 };
    gboolean quiet = FALSE, json = FALSE;
    const GOptionEntry entries[] = {
        { "quiet", 'q', 0, G_OPTION_ARG_NONE, &quiet, N_("No progress and no summary"), NULL },
        { "json", 0, 0, G_OPTION_ARG_NONE, &json, N_("Print the result as JSON"), NULL },
        { NULL, 0, 0, 0, NULL, NULL, NULL },
    };
    g_autoptr(GOptionContext) context = vspToolContextNew(_("FILE"), self->summary, NULL);
    g_autoptr(vspFileWrapperOptions) options = NULL;
    g_autoptr(vspToolProgress) progress = NULL;
    g_autoptr(GVariant) report = NULL;
    g_autoptr(GError) error = NULL;
    GCancellable *cancellable;
    int rc;

    g_option_context_add_main_entries(context, entries, GETTEXT_PACKAGE);
    vspToolMoveAddTo(&move, context, 0);
    if (!vspToolParse(context, self->command, &argc, &argv))
        return VSP_EXIT_USAGE;
    if (argc != 2)
        return vspToolUsage(self->command, _("expected: FILE"));
    options = vspToolMoveToOptions(&move, &error);
    if (!options)
        return vspToolUsage(self->command, "%s", error->message);

    cancellable = vspToolCancellable();
    progress = vspToolProgressNew(self->verb, quiet || json);
    rc = self->run(argv[1], options, vspToolProgressUpdate, progress, cancellable, &report, &error);
    g_clear_pointer(&progress, vspToolProgressFree);
    if (rc < 0)
        return vspToolFail(error, json);
    if (json)
        vspToolPrintReport(report);
    else if (!quiet)
        printSummary(self->marks, argv[1], report);
    return VSP_EXIT_DONE;
}

int
vspCmdVerify(int argc, char **argv)
{
    const verifyCommand self = {
        .command = "verify",
        .summary = _("Reads all of the save image FILE, and tells whether it is good."),
        .verb = _("Verifying"),
        .run = vspSaveImageVerify,
    };

    return runCommand(&self, argc, argv);
}

int
vspCmdSeal(int argc, char **argv)
{
    const verifyCommand self = {
        .command = "seal",
        .summary = _("Marks the save image FILE complete, if it lacks only that."),
        .verb = _("Verifying"),
        .marks = TRUE,
        .run = vspSaveImageMarkComplete,
    };

    return runCommand(&self, argc, argv);
}
