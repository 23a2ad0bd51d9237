/*
 * vspqmpmessage.c: QMP messages, made and taken apart
 *
 * A member that is missing, or of another type than asked for, is the same as one that is not
 * there: QEMU's answers grow and shrink with its version.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <glib/gi18n-lib.h>

#include "vsperrorpriv.h"
#include "vspjson.h"
#include "vspqmp.h"
#include "vspqmpmessage.h"

const char *
vspQmpGetString(GVariant *dict, const char *key)
{
    const char *value = NULL;

    g_variant_lookup(dict, key, "&s", &value);
    return value;
}

guint64
vspQmpGetNumber(GVariant *dict, const char *key)
{
    gint64 whole;
    double real;

    if (g_variant_lookup(dict, key, "x", &whole))
        return MAX(whole, 0);
    /* Beyond 2^63 JSON readers give a double. */
    if (g_variant_lookup(dict, key, "d", &real) && real > 0)
        return real >= (double)G_MAXUINT64 ? G_MAXUINT64 : (guint64)real;
    return 0;
}

gboolean
vspQmpGetBoolean(GVariant *dict, const char *key)
{
    gboolean value = FALSE;

    g_variant_lookup(dict, key, "b", &value);
    return value;
}

GVariant *
vspQmpGetDict(GVariant *dict, const char *key)
{
    return g_variant_lookup_value(dict, key, G_VARIANT_TYPE_VARDICT);
}

char **
vspQmpGetStrings(GVariant *dict, const char *key)
{
    g_autoptr(GVariant) array = g_variant_lookup_value(dict, key, G_VARIANT_TYPE("av"));
    GPtrArray *strings = g_ptr_array_new();
    gsize count = array ? g_variant_n_children(array) : 0;

    for (gsize i = 0; i < count; i++) {
        g_autoptr(GVariant) box = g_variant_get_child_value(array, i);
        g_autoptr(GVariant) value = g_variant_get_variant(box);

        if (g_variant_is_of_type(value, G_VARIANT_TYPE_STRING))
            g_ptr_array_add(strings, g_variant_dup_string(value, NULL));
    }
    g_ptr_array_add(strings, NULL);
    return (char **)g_ptr_array_free(strings, FALSE);
}

char *
vspQmpMessageFormat(const char *command, GVariant *arguments, const char *id)
{
    GVariantBuilder builder;
    g_autoptr(GVariant) message = NULL;
    g_autofree char *text = NULL;

    g_variant_builder_init(&builder, G_VARIANT_TYPE_VARDICT);
    g_variant_builder_add(&builder, "{sv}", "execute", g_variant_new_string(command));
    if (arguments)
        g_variant_builder_add(&builder, "{sv}", "arguments", arguments);
    g_variant_builder_add(&builder, "{sv}", "id", g_variant_new_string(id));
    message = g_variant_ref_sink(g_variant_builder_end(&builder));
    text = vspJsonFormat(message);
    return g_strconcat(text, "\n", NULL);
}

GVariant *
vspQmpMessageGetResult(const char *command, GVariant *reply, GError **error)
{
    g_autoptr(GVariant) failure = vspQmpGetDict(reply, "error");
    g_autoptr(GVariant) result = NULL;

    if (failure) {
        const char *text = vspQmpGetString(failure, "desc");

        vspSetError(error, VSP_ERROR_QEMU, _("QEMU refused '%s': %s"), command,
                    text ? text : _("it gives no reason"));
        return NULL;
    }
    result = g_variant_lookup_value(reply, "return", NULL);
    if (!result) {
        vspSetError(error, VSP_ERROR_QEMU, _("QEMU's answer to '%s' has no result"), command);
        return NULL;
    }
    return g_steal_pointer(&result);
}
