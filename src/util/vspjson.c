/*
 * vspjson.c: JSON text to GVariant and back
 *
 * json-glib does the work. It is laxer than the standard (it takes comments, and assignments as in
 * JavaScript), lets large integers wrap, and its parser calls itself once per level. So the text is
 * screened first: what comes from a socket or a file must not choose how deep our stack gets.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <glib/gi18n-lib.h>
#include <json-glib/json-glib.h>

#include "vsperrorpriv.h"
#include "vspjson.h"

/* Enough for the schema that QEMU prints about itself; each level costs some 200 bytes of stack. */
#define DEPTH_MAX 64

/* An integer that 64 signed bits can't hold: json-glib would let it wrap. */
static gboolean
isHugeInteger(const char *digits, gsize len)
{
    g_autofree char *number = NULL;

    if (len < strlen("9223372036854775808"))
        return FALSE;
    number = g_strndup(digits, len);
    errno = 0;
    g_ascii_strtoll(number, NULL, 10);
    return errno == ERANGE;
}

/* Takes the number at @text; returns its length. Adds it to @out, as a fraction if it is huge. */
static gsize
takeNumber(const char *text, gsize len, GString *out)
{
    gsize n = 0;
    gboolean integer = TRUE;

    while (n < len && (g_ascii_isalnum(text[n]) || (text[n] && strchr("+-.", text[n])))) {
        integer = integer && (g_ascii_isdigit(text[n]) || text[n] == '-');
        n++;
    }
    g_string_append_len(out, text, n);
    if (integer && isHugeInteger(text, n))
        g_string_append(out, ".0");
    return n;
}

/* @text as json-glib may have it: no deeper than the limit, one value only, and outside of strings
 * nothing but what JSON is made of. */
static GString *
screenText(const char *text, gsize len, GError **error)
{
    g_autoptr(GString) out = g_string_sized_new(len);
    gsize depth = 0;
    gboolean complete = FALSE;
    gsize i = 0;

    while (i < len) {
        char c = text[i];
        gsize start = i;

        if (c != '\0' && strchr(" \t\r\n", c)) {
            i++;
        } else if (complete) {
            vspSetError(error, VSP_ERROR_INVALID_ARGUMENT,
                        _("the JSON text goes on after its end, at byte %zu"), i);
            return NULL;
        } else if (c == '"') {
            for (i++; i < len && text[i] != '"'; i++) {
                if (text[i] == '\\')
                    i++;
            }
            i = MIN(i + 1, len);
        } else if (c == '{' || c == '[') {
            if (++depth > DEPTH_MAX) {
                vspSetError(error, VSP_ERROR_INVALID_ARGUMENT,
                            _("the JSON text is nested more than %d levels deep"), DEPTH_MAX);
                return NULL;
            }
            i++;
        } else if ((c == '}' || c == ']') && depth > 0) {
            complete = --depth == 0;
            i++;
        } else if (g_ascii_isdigit(c) || c == '-') {
            i += takeNumber(text + i, len - i, out);
            start = i;
        } else if (c == ',' || c == ':' || g_ascii_isalpha(c)) {
            i++;
        } else {
            vspSetError(error, VSP_ERROR_INVALID_ARGUMENT,
                        _("the JSON text has an unexpected byte 0x%02x at %zu"), (guchar)c, i);
            return NULL;
        }
        g_string_append_len(out, text + start, i - start);
    }
    return g_steal_pointer(&out);
}

static GVariant *nodeToVariant(JsonNode *node);

static GVariant *
valueToVariant(JsonNode *node)
{
    GType type = json_node_get_value_type(node);

    if (type == G_TYPE_STRING)
        return g_variant_new_string(json_node_get_string(node));
    if (type == G_TYPE_BOOLEAN)
        return g_variant_new_boolean(json_node_get_boolean(node));
    if (type == G_TYPE_DOUBLE)
        return g_variant_new_double(json_node_get_double(node));
    return g_variant_new_int64(json_node_get_int(node));
}

static GVariant *
objectToVariant(JsonObject *object)
{
    GVariantBuilder builder;
    JsonObjectIter iter;
    const char *key;
    JsonNode *member;

    g_variant_builder_init(&builder, G_VARIANT_TYPE_VARDICT);
    json_object_iter_init_ordered(&iter, object);
    while (json_object_iter_next_ordered(&iter, &key, &member))
        g_variant_builder_add(&builder, "{sv}", key, nodeToVariant(member));
    return g_variant_builder_end(&builder);
}

static GVariant *
arrayToVariant(JsonArray *array)
{
    GVariantBuilder builder;
    guint length = json_array_get_length(array);

    g_variant_builder_init(&builder, G_VARIANT_TYPE("av"));
    for (guint i = 0; i < length; i++)
        g_variant_builder_add(&builder, "v", nodeToVariant(json_array_get_element(array, i)));
    return g_variant_builder_end(&builder);
}

/* Floating. */
static GVariant *
nodeToVariant(JsonNode *node)
{
    switch (json_node_get_node_type(node)) {
    case JSON_NODE_OBJECT:
        return objectToVariant(json_node_get_object(node));
    case JSON_NODE_ARRAY:
        return arrayToVariant(json_node_get_array(node));
    case JSON_NODE_VALUE:
        return valueToVariant(node);
    case JSON_NODE_NULL:
    default:
        return g_variant_new_maybe(G_VARIANT_TYPE_VARIANT, NULL);
    }
}

GVariant *
vspJsonParse(const char *text, gsize len, GError **error)
{
    g_autoptr(JsonParser) parser = NULL;
    g_autoptr(GString) screened = NULL;
    g_autoptr(GError) parseError = NULL;
    JsonNode *root;

    screened = screenText(text, len, error);
    if (!screened)
        return NULL;
    parser = json_parser_new_immutable();
    if (!json_parser_load_from_data(parser, screened->str, (gssize)screened->len, &parseError)) {
        vspSetError(error, VSP_ERROR_INVALID_ARGUMENT, _("the JSON text can't be parsed: %s"),
                    parseError->message);
        return NULL;
    }
    root = json_parser_get_root(parser);
    if (!root) {
        vspSetError(error, VSP_ERROR_INVALID_ARGUMENT, _("the JSON text is empty"));
        return NULL;
    }
    return g_variant_ref_sink(nodeToVariant(root));
}

static JsonNode *variantToNode(GVariant *value);

static JsonNode *
newDouble(double number)
{
    JsonNode *node;

    /* JSON has no word for infinity. */
    if (!isfinite(number))
        return json_node_new(JSON_NODE_NULL);
    node = json_node_new(JSON_NODE_VALUE);
    json_node_set_double(node, number);
    return node;
}

static JsonNode *
newInteger(gint64 number)
{
    JsonNode *node = json_node_new(JSON_NODE_VALUE);

    json_node_set_int(node, number);
    return node;
}

static JsonNode *
newString(const char *text)
{
    JsonNode *node = json_node_new(JSON_NODE_VALUE);

    json_node_set_string(node, text);
    return node;
}

static JsonNode *
newBoolean(gboolean truth)
{
    JsonNode *node = json_node_new(JSON_NODE_VALUE);

    json_node_set_boolean(node, truth);
    return node;
}

/* A dictionary with text for keys. */
static JsonNode *
dictionaryToNode(GVariant *value)
{
    JsonNode *node = json_node_new(JSON_NODE_OBJECT);
    JsonObject *object = json_object_new();
    gsize count = g_variant_n_children(value);

    for (gsize i = 0; i < count; i++) {
        g_autoptr(GVariant) entry = g_variant_get_child_value(value, i);
        g_autoptr(GVariant) key = g_variant_get_child_value(entry, 0);
        g_autoptr(GVariant) member = g_variant_get_child_value(entry, 1);

        json_object_set_member(object, g_variant_get_string(key, NULL), variantToNode(member));
    }
    json_node_take_object(node, object);
    return node;
}

/* An array or a tuple. */
static JsonNode *
listToNode(GVariant *value)
{
    JsonNode *node = json_node_new(JSON_NODE_ARRAY);
    JsonArray *array = json_array_new();
    gsize count = g_variant_n_children(value);

    for (gsize i = 0; i < count; i++) {
        g_autoptr(GVariant) element = g_variant_get_child_value(value, i);

        json_array_add_element(array, variantToNode(element));
    }
    json_node_take_array(node, array);
    return node;
}

static JsonNode *
unsignedToNode(guint64 number)
{
    /* json-glib keeps signed numbers. Above their range a double is closer to the truth than what
     * the same bits say with a sign. */
    return number > G_MAXINT64 ? newDouble((double)number) : newInteger((gint64)number);
}

static JsonNode *
variantToNode(GVariant *value)
{
    g_autoptr(GVariant) inner = NULL;

    switch (g_variant_classify(value)) {
    case G_VARIANT_CLASS_BOOLEAN:
        return newBoolean(g_variant_get_boolean(value));
    case G_VARIANT_CLASS_BYTE:
        return newInteger(g_variant_get_byte(value));
    case G_VARIANT_CLASS_INT16:
        return newInteger(g_variant_get_int16(value));
    case G_VARIANT_CLASS_UINT16:
        return newInteger(g_variant_get_uint16(value));
    case G_VARIANT_CLASS_INT32:
        return newInteger(g_variant_get_int32(value));
    case G_VARIANT_CLASS_UINT32:
        return newInteger(g_variant_get_uint32(value));
    case G_VARIANT_CLASS_INT64:
        return newInteger(g_variant_get_int64(value));
    case G_VARIANT_CLASS_HANDLE:
        return newInteger(g_variant_get_handle(value));
    case G_VARIANT_CLASS_UINT64:
        return unsignedToNode(g_variant_get_uint64(value));
    case G_VARIANT_CLASS_DOUBLE:
        return newDouble(g_variant_get_double(value));
    case G_VARIANT_CLASS_STRING:
    case G_VARIANT_CLASS_OBJECT_PATH:
    case G_VARIANT_CLASS_SIGNATURE:
        return newString(g_variant_get_string(value, NULL));
    case G_VARIANT_CLASS_VARIANT:
        inner = g_variant_get_variant(value);
        return variantToNode(inner);
    case G_VARIANT_CLASS_MAYBE:
        inner = g_variant_get_maybe(value);
        return inner ? variantToNode(inner) : json_node_new(JSON_NODE_NULL);
    case G_VARIANT_CLASS_ARRAY:
        if (g_variant_is_of_type(value, G_VARIANT_TYPE("a{s*}")))
            return dictionaryToNode(value);
        return listToNode(value);
    case G_VARIANT_CLASS_TUPLE:
    case G_VARIANT_CLASS_DICT_ENTRY:
        return listToNode(value);
    }
    g_assert_not_reached();
}

/* json-glib escapes the control characters of ASCII. Those from U+0080 to U+009F are commands to
 * some terminals too. In UTF-8 they are C2 80 to C2 9F, which no other character contains. */
static char *
escapeControls(const char *json)
{
    GString *out = g_string_sized_new(strlen(json));

    for (const char *p = json; *p; p++) {
        guchar next = (guchar)p[1];

        if ((guchar)*p == 0xc2 && next >= 0x80 && next <= 0x9f) {
            g_string_append_printf(out, "\\u%04x", next);
            p++;
        } else {
            g_string_append_c(out, *p);
        }
    }
    return g_string_free(out, FALSE);
}

char *
vspJsonFormat(GVariant *value)
{
    g_autoptr(JsonGenerator) generator = json_generator_new();
    g_autoptr(JsonNode) root = variantToNode(value);
    g_autofree char *json = NULL;

    json_generator_set_root(generator, root);
    json = json_generator_to_data(generator, NULL);
    return escapeControls(json);
}
