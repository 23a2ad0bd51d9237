/*
 * cmd-info.c: vmspool info: what a save image is
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <glib/gi18n.h>
#include <inttypes.h>

#include "tool.h"

/* The name in front is padded to the same width in every language. */
static void
printLine(const char *key, const char *value)
{
    g_autofree char *name = g_strconcat(key, ":", NULL);
    g_autofree char *escaped = vspToolEscape(value);
    glong width = g_utf8_strlen(name, -1);

    g_print("%s%*s%s\n", name, width < 16 ? (int)(16 - width) : 1, "", escaped);
}

static gboolean
getBoolean(GVariant *report, const char *key)
{
    gboolean truth = FALSE;

    g_variant_lookup(report, key, "b", &truth);
    return truth;
}

static guint32
getNumber(GVariant *report, const char *key)
{
    guint32 number = 0;

    g_variant_lookup(report, key, "u", &number);
    return number;
}

static void
printText(GVariant *report, const char *key, const char *name)
{
    const char *text = vspToolReportText(report, key);

    if (text)
        printLine(name, text);
}

static void
printSize(GVariant *report, const char *key, const char *name)
{
    g_autofree char *size = vspToolFormatSize(vspToolReportNumber(report, key));

    printLine(name, size);
}

/* One of the parts that the file is made of. */
static void
printPart(GVariant *report, const char *part, const char *name)
{
    g_autofree char *sizeKey = g_strconcat(part, "-size", NULL);
    g_autofree char *offsetKey = g_strconcat(part, "-offset", NULL);
    guint64 size = vspToolReportNumber(report, sizeKey);
    g_autofree char *sizeText = vspToolFormatSize(size);
    g_autofree char *text = NULL;

    if (size == 0) {
        printLine(name, _("none"));
        return;
    }
    text = g_strdup_printf(_("%s at offset %" PRIu64), sizeText,
                           vspToolReportNumber(report, offsetKey));
    printLine(name, text);
}

static void
printSeal(GVariant *report)
{
    const char *seal = vspToolReportText(report, "seal");
    const char *digest = vspToolReportText(report, "payload-digest");

    if (g_str_equal(seal, "valid"))
        printLine(_("seal"), digest ? _("valid, with a digest") : _("valid, without a digest"));
    else
        printLine(_("seal"), g_str_equal(seal, "none") ? _("none") : _("ignored"));
    if (digest)
        printLine(_("digest"), digest);
}

/* The recorded command, quoted for a shell. */
static void
printCommand(GVariant *report)
{
    g_autofree const char **args = NULL;
    g_autoptr(GString) line = g_string_new(NULL);

    if (!g_variant_lookup(report, "recorded-command", "^a&s", &args))
        return;
    for (gsize i = 0; args[i]; i++) {
        g_autofree char *quoted = g_shell_quote(args[i]);

        g_string_append_printf(line, "%s%s", i ? " " : "", quoted);
    }
    printLine(_("command"), line->str);
}

static void
printImage(GVariant *report)
{
    g_autofree char *version = g_strdup_printf("%u", getNumber(report, "version"));
    g_autofree char *format = g_strdup_printf("%s (%u)", vspToolReportText(report, "format"),
                                              getNumber(report, "format-number"));
    g_autofree const char **notices = NULL;

    printText(report, "file", _("file"));
    printLine(_("state"), getBoolean(report, "complete") ? _("complete") : _("partial"));
    printText(report, "domain-name", _("domain"));
    printText(report, "domain-uuid", _("UUID"));
    if (vspToolReportNumber(report, "domain-memory"))
        printSize(report, "domain-memory", _("memory"));
    printLine(_("when restored"), getBoolean(report, "was-running") ? _("running") : _("paused"));
    printLine(_("version"), version);
    printText(report, "byte-order", _("byte order"));
    printLine(_("format"), format);
    printSize(report, "file-size", _("size"));
    printPart(report, "xml", _("XML"));
    printPart(report, "cookie", _("cookie"));
    printPart(report, "padding", _("padding"));
    printPart(report, "payload", _("payload"));
    printSeal(report);
    printCommand(report);
    g_variant_lookup(report, "notices", "^a&s", &notices);
    for (gsize i = 0; notices && notices[i]; i++)
        printLine(_("note"), notices[i]);
}

int
vspCmdInfo(int argc, char **argv)
{
    gboolean json = FALSE;
    const GOptionEntry entries[] = {
        { "json", 0, 0, G_OPTION_ARG_NONE, &json, N_("Print all of it as JSON"), NULL },
        { NULL, 0, 0, 0, NULL, NULL, NULL },
    };
    g_autoptr(GOptionContext) context = vspToolContextNew(
        _("FILE"), _("Shows what the save image FILE is, without changing it."), NULL);
    g_autoptr(vspSaveImage) image = NULL;
    g_autoptr(GVariant) report = NULL;
    g_autoptr(GError) error = NULL;

    g_option_context_add_main_entries(context, entries, GETTEXT_PACKAGE);
    if (!vspToolParse(context, "info", &argc, &argv))
        return VSP_EXIT_USAGE;
    /* GLib leaves it there if what follows looks like an option. */
    if (argc == 3 && g_str_equal(argv[1], "--")) {
        argv++;
        argc--;
    }
    if (argc != 2)
        return vspToolUsage("info", _("expected: FILE"));

    image = vspSaveImageOpen(argv[1], &error);
    if (!image)
        return vspToolFail(error, json);
    report = vspSaveImageGetReport(image);
    if (vspSaveImageIsComplete(image)) {
        if (json)
            vspToolPrintReport(report);
        else
            printImage(report);
        return VSP_EXIT_DONE;
    }
    /* Shown in full, and a failure all the same: it can't be restored. */
    g_set_error(&error, VSP_ERROR, VSP_ERROR_IMAGE_PARTIAL,
                _("the save did not finish: %s is incomplete"), vspToolReportText(report, "file"));
    if (json)
        return vspToolFailWithReport(error, report);
    printImage(report);
    return vspToolFail(error, FALSE);
}
