/*
 * main.c: the vmspool command
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <glib/gi18n.h>
#include <locale.h>
#include <signal.h>
#include <string.h>

#include "tool.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} commands[] = {
    { "save", vspCmdSave, N_("save a VM into an image, and end it") },
    { "restore", vspCmdRestore, N_("restore a VM from an image") },
    { "dump", vspCmdDump, N_("write a core dump of a VM's memory") },
    { "copy", vspCmdCopy, N_("move bytes between a file and a pipe, at the speed of the disk") },
    { "info", vspCmdInfo, N_("show what a save image is") },
    { "verify", vspCmdVerify, N_("read all of a save image and tell whether it is good") },
    { "seal", vspCmdSeal, N_("mark a save image complete that lacks only that") },
    { "extract", vspCmdExtract, N_("take the VM's state or the XML out of a save image") },
    { "convert", vspCmdConvert, N_("write a save image anew: aligned, sealed, with more room") },
    { "xml", vspCmdXml, N_("show, replace or edit the domain XML in a save image") },
};

static void
printHelp(void)
{
    g_print("%s\n  vmspool %s\n\n%s\n", _("Usage:"), _("COMMAND [OPTION…]"), _("Commands:"));
    for (gsize i = 0; i < G_N_ELEMENTS(commands); i++)
        g_print("  %-10s %s\n", commands[i].name, _(commands[i].summary));
    g_print("\n%s\n", _("vmspool COMMAND --help tells the options of each; so does vmspool-COMMAND(1)."));
}

int
main(int argc, char **argv)
{
    setlocale(LC_ALL, "");
    bindtextdomain(GETTEXT_PACKAGE, VSP_LOCALEDIR);
    bind_textdomain_codeset(GETTEXT_PACKAGE, "UTF-8");
    textdomain(GETTEXT_PACKAGE);
    /* A reader of our output that goes away is an error of writing, not a reason to die in a save. */
    signal(SIGPIPE, SIG_IGN);

    if (argc < 2) {
        printHelp();
        return VSP_EXIT_USAGE;
    }
    if (g_str_equal(argv[1], "--help") || g_str_equal(argv[1], "-h") || g_str_equal(argv[1], "help")) {
        printHelp();
        return VSP_EXIT_DONE;
    }
    if (g_str_equal(argv[1], "--version")) {
        g_print("vmspool %s\n", VSP_VERSION);
        return VSP_EXIT_DONE;
    }
    for (gsize i = 0; i < G_N_ELEMENTS(commands); i++) {
        if (g_str_equal(argv[1], commands[i].name)) {
            g_autofree char *program = g_strdup_printf("vmspool %s", argv[1]);

            g_set_prgname(program);
            return commands[i].run(argc - 1, argv + 1);
        }
    }
    return vspToolUsage(NULL, _("no such command: '%s'"), argv[1]);
}
