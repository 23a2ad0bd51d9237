/*
 * vspjson.c: JSON text to GVariant and back
 *
 * json-glib does the parsing. It is laxer than the standard (it takes comments, assignments as in
 * JavaScript, half a surrogate pair), gets some numbers wrong, and calls itself once per level. So
 * the text is screened first: what comes from a socket or a file must not choose how deep our stack
 * gets, nor become text that is no UTF-8. Its generator is not used: what it makes of large numbers
 * with a fraction is no JSON.
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

static gsize
countDigits(const char *text, gsize len)
{
    gsize n = 0;

    while (n < len && g_ascii_isdigit(text[n]))
        n++;
    return n;
}

/* Takes the number at @text; returns its length, 0 if it is none. Adds it to @out in a way that
 * json-glib gets it right: it fails at an exponent without a fraction, takes a zero in front for
 * octal, and lets what is huge wrap. */
static gsize
takeNumber(const char *text, gsize len, GString *out)
{
    gsize sign = len > 0 && text[0] == '-' ? 1 : 0;
    gsize digits = countDigits(text + sign, len - sign);
    gsize whole = sign + digits;
    gsize end = whole;
    gboolean fraction = FALSE, exponent = FALSE;

    if (digits == 0 || (digits > 1 && text[sign] == '0'))
        return 0;
    if (end < len && text[end] == '.') {
        gsize n = countDigits(text + end + 1, len - end - 1);

        if (n == 0)
            return 0;
        fraction = TRUE;
        end += 1 + n;
    }
    if (end < len && (text[end] == 'e' || text[end] == 'E')) {
        gsize start = end + 1;
        gsize n;

        if (start < len && (text[start] == '+' || text[start] == '-'))
            start++;
        n = countDigits(text + start, len - start);
        if (n == 0)
            return 0;
        exponent = TRUE;
        end = start + n;
    }
    g_string_append_len(out, text, whole);
    if (!fraction && (exponent || isHugeInteger(text, whole)))
        g_string_append(out, ".0");
    g_string_append_len(out, text + whole, end - whole);
    return end;
}

/* The number of a \u escape at @text; 0 if there is none (nor can U+0000 be in a string of ours).
 */
static guint
escapedUnit(const char *text, gsize len)
{
    guint unit = 0;

    if (len < 6 || text[0] != '\\' || text[1] != 'u')
        return 0;
    for (gsize i = 2; i < 6; i++) {
        if (!g_ascii_isxdigit(text[i]))
            return 0;
        unit = unit << 4 | (guint)g_ascii_xdigit_value(text[i]);
    }
    return unit;
}

/* Length of the escape at @text, 0 for a bad one. json-glib takes octal numbers, and surrogates
 * whose second half is nonsense, and makes text of them that is no UTF-8. */
static gsize
escapeLength(const char *text, gsize len)
{
    guint first, second;

    if (len < 2)
        return 0;
    if (text[1] != 'u')
        return text[1] && strchr("\"\\/bfnrt", text[1]) ? 2 : 0;
    first = escapedUnit(text, len);
    if (first == 0 || (first >= 0xdc00 && first <= 0xdfff))
        return 0;
    if (first < 0xd800 || first > 0xdbff)
        return 6;
    second = escapedUnit(text + 6, len - 6);
    return second >= 0xdc00 && second <= 0xdfff ? 12 : 0;
}

/* Length of the string at @text, with its quotes; 0 for a bad one. */
static gsize
stringLength(const char *text, gsize len)
{
    gsize i = 1;

    while (i < len && text[i] != '"') {
        gsize n = text[i] == '\\' ? escapeLength(text + i, len - i) : 1;

        if (n == 0)
            return 0;
        i += n;
    }
    return i < len ? i + 1 : 0;
}

/* Length of the word at @text; 0 if JSON does not know it. */
static gsize
wordLength(const char *text, gsize len)
{
    static const char *const words[] = { "true", "false", "null" };

    for (gsize i = 0; i < G_N_ELEMENTS(words); i++) {
        gsize n = strlen(words[i]);

        if (len >= n && memcmp(text, words[i], n) == 0)
            return n;
    }
    return 0;
}

/* Takes one token, or one blank, and adds it to @out; returns its length, 0 for a bad one. */
static gsize
takeToken(const char *text, gsize len, GString *out)
{
    gsize n;

    if (g_ascii_isdigit(text[0]) || text[0] == '-') {
        n = takeNumber(text, len, out);
        /* So that "1" and what is wrong behind it stay two things. */
        g_string_append_c(out, ' ');
        return n;
    }
    if (text[0] == '"')
        n = stringLength(text, len);
    else if (text[0] && strchr("{}[],: \t\r\n", text[0]))
        n = 1;
    else
        n = wordLength(text, len);
    g_string_append_len(out, text, n);
    if (n > 1)
        g_string_append_c(out, ' ');
    return n;
}

/* @text as json-glib may have it: no deeper than the limit, and nothing but what JSON is made of.
 */
static GString *
screenText(const char *text, gsize len, GError **error)
{
    g_autoptr(GString) out = g_string_sized_new(len);
    gsize depth = 0;
    gboolean complete = FALSE;
    gsize i = 0;

    while (i < len) {
        gboolean blank = text[i] && strchr(" \t\r\n", text[i]);
        gboolean opens = text[i] == '{' || text[i] == '[';
        gboolean closes = text[i] == '}' || text[i] == ']';
        gsize n = takeToken(text + i, len - i, out);

        if (n == 0 || (complete && !blank) || (closes && depth == 0)) {
            vspSetError(error, VSP_ERROR_INVALID_ARGUMENT, _("the JSON text is wrong at byte %zu"),
                        i);
            return NULL;
        }
        if (opens && ++depth > DEPTH_MAX) {
            vspSetError(error, VSP_ERROR_INVALID_ARGUMENT,
                        _("the JSON text is nested more than %d levels deep"), DEPTH_MAX);
            return NULL;
        }
        if (closes)
            complete = --depth == 0;
        i += n;
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

static void addValue(GString *out, GVariant *value);

/* As a number with a fraction or an exponent, so that it is read as what it is. */
static void
addDouble(GString *out, double number)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];

    /* JSON has no word for infinity. */
    if (!isfinite(number)) {
        g_string_append(out, "null");
        return;
    }
    g_ascii_dtostr(text, sizeof(text), number);
    g_string_append(out, text);
    if (!strpbrk(text, ".e"))
        g_string_append(out, ".0");
}

/* The control characters from U+0080 on are escaped too, though JSON does not ask for it: some
 * terminals obey them. In UTF-8 they are C2 80 to C2 9F, which no other character contains. */
static void
addString(GString *out, const char *text)
{
    g_string_append_c(out, '"');
    for (const guchar *p = (const guchar *)text; *p; p++) {
        if (*p == '"' || *p == '\\')
            g_string_append_printf(out, "\\%c", *p);
        else if (*p == '\n')
            g_string_append(out, "\\n");
        else if (*p == '\t')
            g_string_append(out, "\\t");
        else if (*p < 0x20 || *p == 0x7f)
            g_string_append_printf(out, "\\u%04x", *p);
        else if (*p == 0xc2 && p[1] >= 0x80 && p[1] <= 0x9f)
            g_string_append_printf(out, "\\u%04x", *++p);
        else
            g_string_append_c(out, *p);
    }
    g_string_append_c(out, '"');
}

/* A dictionary with text for keys. */
static void
addDictionary(GString *out, GVariant *value)
{
    gsize count = g_variant_n_children(value);

    g_string_append_c(out, '{');
    for (gsize i = 0; i < count; i++) {
        g_autoptr(GVariant) entry = g_variant_get_child_value(value, i);
        g_autoptr(GVariant) key = g_variant_get_child_value(entry, 0);
        g_autoptr(GVariant) member = g_variant_get_child_value(entry, 1);

        if (i > 0)
            g_string_append_c(out, ',');
        addString(out, g_variant_get_string(key, NULL));
        g_string_append_c(out, ':');
        addValue(out, member);
    }
    g_string_append_c(out, '}');
}

/* An array or a tuple. */
static void
addList(GString *out, GVariant *value)
{
    gsize count = g_variant_n_children(value);

    g_string_append_c(out, '[');
    for (gsize i = 0; i < count; i++) {
        g_autoptr(GVariant) element = g_variant_get_child_value(value, i);

        if (i > 0)
            g_string_append_c(out, ',');
        addValue(out, element);
    }
    g_string_append_c(out, ']');
}

static void
addMaybe(GString *out, GVariant *value)
{
    g_autoptr(GVariant) inner = g_variant_get_maybe(value);

    if (inner)
        addValue(out, inner);
    else
        g_string_append(out, "null");
}

static void
addVariant(GString *out, GVariant *value)
{
    g_autoptr(GVariant) inner = g_variant_get_variant(value);

    addValue(out, inner);
}

static void
addValue(GString *out, GVariant *value)
{
    switch (g_variant_classify(value)) {
    case G_VARIANT_CLASS_BOOLEAN:
        g_string_append(out, g_variant_get_boolean(value) ? "true" : "false");
        break;
    case G_VARIANT_CLASS_BYTE:
        g_string_append_printf(out, "%u", g_variant_get_byte(value));
        break;
    case G_VARIANT_CLASS_INT16:
        g_string_append_printf(out, "%d", g_variant_get_int16(value));
        break;
    case G_VARIANT_CLASS_UINT16:
        g_string_append_printf(out, "%u", g_variant_get_uint16(value));
        break;
    case G_VARIANT_CLASS_INT32:
        g_string_append_printf(out, "%d", g_variant_get_int32(value));
        break;
    case G_VARIANT_CLASS_HANDLE:
        g_string_append_printf(out, "%d", g_variant_get_handle(value));
        break;
    case G_VARIANT_CLASS_UINT32:
        g_string_append_printf(out, "%u", g_variant_get_uint32(value));
        break;
    case G_VARIANT_CLASS_INT64:
        g_string_append_printf(out, "%" G_GINT64_FORMAT, g_variant_get_int64(value));
        break;
    case G_VARIANT_CLASS_UINT64:
        g_string_append_printf(out, "%" G_GUINT64_FORMAT, g_variant_get_uint64(value));
        break;
    case G_VARIANT_CLASS_DOUBLE:
        addDouble(out, g_variant_get_double(value));
        break;
    case G_VARIANT_CLASS_STRING:
    case G_VARIANT_CLASS_OBJECT_PATH:
    case G_VARIANT_CLASS_SIGNATURE:
        addString(out, g_variant_get_string(value, NULL));
        break;
    case G_VARIANT_CLASS_VARIANT:
        addVariant(out, value);
        break;
    case G_VARIANT_CLASS_MAYBE:
        addMaybe(out, value);
        break;
    case G_VARIANT_CLASS_ARRAY:
        if (g_variant_is_of_type(value, G_VARIANT_TYPE("a{s*}")))
            addDictionary(out, value);
        else
            addList(out, value);
        break;
    case G_VARIANT_CLASS_TUPLE:
    case G_VARIANT_CLASS_DICT_ENTRY:
        addList(out, value);
        break;
    }
}

char *
vspJsonFormat(GVariant *value)
{
    GString *out = g_string_new(NULL);

    addValue(out, value);
    return g_string_free(out, FALSE);
}
