/*
 * report.c: how a command tells what came of it
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <glib/gi18n.h>

#include "tool.h"

int
vspToolExitCode(const GError *error)
{
    if (error->domain != VSP_ERROR)
        return VSP_EXIT_FAILED;
    switch (error->code) {
    case VSP_ERROR_IMAGE_EMPTY:
    case VSP_ERROR_IMAGE_PARTIAL:
    case VSP_ERROR_IMAGE_FOREIGN:
    case VSP_ERROR_IMAGE_CUT:
    case VSP_ERROR_IMAGE_CORRUPT:
    case VSP_ERROR_IMAGE_UNSUPPORTED:
        return VSP_EXIT_IMAGE;
    case VSP_ERROR_NOT_RESTORED:
        return VSP_EXIT_NOT_RESTORED;
    default:
        return VSP_EXIT_FAILED;
    }
}

/* One line of JSON on stdout: what @report has, in its order, then "ok", and "error" if there is
 * one. Either may be NULL. */
static void
printJson(GVariant *report, const GError *error)
{
    gsize count = report ? g_variant_n_children(report) : 0;
    GVariantBuilder builder;
    g_autoptr(GVariant) whole = NULL;
    g_autofree char *text = NULL;

    g_variant_builder_init(&builder, G_VARIANT_TYPE_VARDICT);
    for (gsize i = 0; i < count; i++) {
        g_autoptr(GVariant) entry = g_variant_get_child_value(report, i);

        g_variant_builder_add_value(&builder, entry);
    }
    g_variant_builder_add(&builder, "{sv}", "ok", g_variant_new_boolean(!error));
    if (error) {
        const char *code = error->domain == VSP_ERROR ? vspErrorCodeName(error->code) : "failed";
        g_autofree char *message = g_utf8_make_valid(error->message, -1);
        GVariantBuilder inner;

        g_variant_builder_init(&inner, G_VARIANT_TYPE_VARDICT);
        g_variant_builder_add(&inner, "{sv}", "code", g_variant_new_string(code));
        g_variant_builder_add(&inner, "{sv}", "message", g_variant_new_string(message));
        g_variant_builder_add(&builder, "{sv}", "error", g_variant_builder_end(&inner));
    }
    whole = g_variant_ref_sink(g_variant_builder_end(&builder));
    text = vspReportToJson(whole);
    g_print("%s\n", text);
}

char *
vspToolEscape(const char *text)
{
    g_autofree char *valid = g_utf8_make_valid(text ? text : "", -1);
    GString *out = g_string_new(NULL);

    for (const char *p = valid; *p; p = g_utf8_next_char(p)) {
        gunichar c = g_utf8_get_char(p);

        if (g_unichar_isprint(c))
            g_string_append_unichar(out, c);
        else if (c < 0x100)
            g_string_append_printf(out, "\\x%02x", c);
        else
            g_string_append_printf(out, "\\u%04x", c);
    }
    return g_string_free(out, FALSE);
}

static void
printFailure(const GError *error)
{
    g_autofree char *message = vspToolEscape(error->message);

    g_printerr("vmspool: %s\n", message);
}

int
vspToolFail(const GError *error, gboolean json)
{
    printFailure(error);
    if (json)
        printJson(NULL, error);
    return vspToolExitCode(error);
}

int
vspToolFailWithReport(const GError *error, GVariant *report)
{
    printFailure(error);
    printJson(report, error);
    return vspToolExitCode(error);
}

void
vspToolPrintReport(GVariant *report)
{
    printJson(report, NULL);
}

void
vspToolNotice(const char *notice, gpointer opaque G_GNUC_UNUSED)
{
    g_autofree char *text = vspToolEscape(notice);

    g_printerr(_("vmspool: note: %s\n"), text);
}

char *
vspToolFormatSize(guint64 bytes)
{
    return g_format_size_full(bytes, G_FORMAT_SIZE_IEC_UNITS | G_FORMAT_SIZE_LONG_FORMAT);
}

char *
vspToolFormatRate(guint64 bytes, guint64 nanoseconds)
{
    double rate = nanoseconds ? bytes * 1e9 / nanoseconds : 0;
    g_autofree char *size = g_format_size_full(rate, G_FORMAT_SIZE_IEC_UNITS);

    return g_strdup_printf(_("%s/s"), size);
}

char *
vspToolFormatTime(guint64 nanoseconds)
{
    return g_strdup_printf(_("%.2f s"), nanoseconds / 1e9);
}

/* Not floating; NULL if there is nothing at @path. */
static GVariant *
lookUp(GVariant *report, const char *path)
{
    g_auto(GStrv) steps = g_strsplit(path, "/", -1);
    g_autoptr(GVariant) at = g_variant_ref(report);

    for (gsize i = 0; steps[i]; i++) {
        GVariant *next;

        if (!g_variant_is_of_type(at, G_VARIANT_TYPE_VARDICT))
            return NULL;
        next = g_variant_lookup_value(at, steps[i], NULL);
        if (!next)
            return NULL;
        g_variant_unref(at);
        at = next;
    }
    return g_steal_pointer(&at);
}

guint64
vspToolReportNumber(GVariant *report, const char *path)
{
    g_autoptr(GVariant) value = lookUp(report, path);

    if (value && g_variant_is_of_type(value, G_VARIANT_TYPE_UINT64))
        return g_variant_get_uint64(value);
    if (value && g_variant_is_of_type(value, G_VARIANT_TYPE_INT64))
        return g_variant_get_int64(value);
    return 0;
}

const char *
vspToolReportText(GVariant *report, const char *path)
{
    g_autoptr(GVariant) value = lookUp(report, path);

    /* The text lies in the memory of @report, which lives on. */
    if (value && g_variant_is_of_type(value, G_VARIANT_TYPE_STRING))
        return g_variant_get_string(value, NULL);
    return NULL;
}
