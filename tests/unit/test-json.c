/*
 * test-json.c: JSON to GVariant and back
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <string.h>

#include <vmspool/vsp-error.h>
#include "testutil.h"
#include "vspjson.h"

/* Text, what it becomes as GVariant prints it (with types), and as JSON again. */
static void
testValues(void)
{
    static const struct {
        const char *text;
        const char *variant;
        const char *back;
    } rows[] = {
        { "{}", "@a{sv} {}", "{}" },
        { " [ ] ", "@av []", "[]" },
        { "null", "@mv nothing", "null" },
        { "true", "true", "true" },
        { "-5", "int64 -5", "-5" },
        { "1.5", "1.5", "1.5" },
        { "1e3", "1000.0", "1000.0" },
        { "[1E+2,125e-3,0,-0.5e1]", "[<100.0>, <0.125>, <int64 0>, <-5.0>]", NULL },
        { "9223372036854775807", "int64 9223372036854775807", "9223372036854775807" },
        { "-9223372036854775808", "int64 -9223372036854775808", "-9223372036854775808" },
        { "\"a\\n\\\"\\u00e4\"", "'a\\n\"\303\244'", "\"a\\n\\\"\303\244\"" },
        { "\"\\ud83d\\ude00 { [ // \"", "'\360\237\230\200 { [ // '", NULL },
        { "{\"b\":1,\"a\":[true,null,{\"x\":\"y\"}]}\r\n",
          "{'b': <int64 1>, 'a': <[<true>, <@mv nothing>, <{'x': <'y'>}>]>}",
          "{\"b\":1,\"a\":[true,null,{\"x\":\"y\"}]}" },
        { "{\"a\":1,\"a\":2}", "{'a': <int64 2>}", "{\"a\":2}" },
    };

    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(GVariant) value = vspJsonParse(rows[i].text, strlen(rows[i].text), &error);
        g_autofree char *variant = NULL;
        g_autofree char *back = NULL;

        g_assert_no_error(error);
        g_assert_false(g_variant_is_floating(value));
        variant = g_variant_print(value, TRUE);
        g_assert_cmpstr(variant, ==, rows[i].variant);
        back = vspJsonFormat(value);
        if (rows[i].back)
            g_assert_cmpstr(back, ==, rows[i].back);
    }
}

/* An integer of more than 64 signed bits must not come out as another integer. */
static void
testHugeIntegers(void)
{
    static const char *const texts[] = { "9223372036854775808", "18446744073709551615",
                                         "[99999999999999999999999]" };

    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GVariant) value = vspJsonParse(texts[i], strlen(texts[i]), NULL);
        g_autoptr(GVariant) element = NULL;

        g_assert_nonnull(value);
        if (g_variant_is_of_type(value, G_VARIANT_TYPE("av")))
            g_variant_get_child(value, 0, "v", &element);
        else
            element = g_variant_ref(value);
        g_assert_true(g_variant_is_of_type(element, G_VARIANT_TYPE_DOUBLE));
        g_assert_cmpfloat(g_variant_get_double(element), >=, 9223372036854775807.0);
    }
}

static void
assertRefused(const char *text, gsize len)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GVariant) value = vspJsonParse(text, len, &error);

    g_assert_null(value);
    g_assert_error(error, VSP_ERROR, VSP_ERROR_INVALID_ARGUMENT);
}

static void
testRefused(void)
{
    static const char *const texts[] = {
        "",
        "  \n",
        "{",
        "}",
        "[1",
        "{\"a\":",
        "{\"a\" 1}",
        "{\"a\":1,}",
        "[1,]",
        "[,]",
        "[1 2]",
        "1 2",
        "{} {}",
        "[]]",
        "\"abc",
        "\"abc\\",
        "abc",
        "tru",
        "{a:1}",
        "// x\n{}",
        "/* x */ {}",
        "var x={}",
        "var x={};",
        "-",
        "+1",
        "01",
        "010",
        "0x10",
        "1.",
        ".5",
        "1e",
        "1e+",
        "--1",
        "1.e3",
        "12abc",
        "\"\377\"",
        "\"\\ud83d\"",
        "'a'",
        "\"\\ud83d\\u0041\"",
        "\"\\ude00\"",
        "\"\\u0000\"",
        "\"\\u00e\"",
        "\"\\ud8sd\\udeu0\"",
        "{}\001",
        "\303\244",
    };

    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++)
        assertRefused(texts[i], strlen(texts[i]));
    assertRefused("{}\0", 3);
    assertRefused("\0", 1);
    assertRefused("1\0", 2);
}

/* 64 levels are read, 65 refused; and however many there are, the stack does not feel them. */
static void
testDepth(void)
{
    static const gsize depths[] = { 64, 65, 1000000 };

    for (gsize i = 0; i < G_N_ELEMENTS(depths); i++) {
        g_autofree char *text = g_malloc(2 * depths[i]);
        g_autoptr(GVariant) value = NULL;
        g_autoptr(GError) error = NULL;

        memset(text, '[', depths[i]);
        memset(text + depths[i], ']', depths[i]);
        value = vspJsonParse(text, 2 * depths[i], &error);
        if (depths[i] <= 64) {
            g_assert_no_error(error);
            g_assert_nonnull(value);
        } else {
            g_assert_error(error, VSP_ERROR, VSP_ERROR_INVALID_ARGUMENT);
        }
    }
}

/* Every type that a report may hold, and those it should not. */
static void
testFormat(void)
{
    static const struct {
        const char *variant;
        const char *json;
    } rows[] = {
        { "byte 0xff", "255" },
        { "uint32 4294967295", "4294967295" },
        { "uint64 9223372036854775807", "9223372036854775807" },
        { "uint64 18446744073709551615", "18446744073709551615" },
        { "1e27", "1e+27" },
        { "1e3", "1000.0" },
        { "-0.5", "-0.5" },
        { "(int16 -1, uint16 1, handle 3, int32 -4)", "[-1,1,3,-4]" },
        { "['a', 'b']", "[\"a\",\"b\"]" },
        { "{'a': 1, 'b': 2}", "{\"a\":1,\"b\":2}" },
        { "{1: 'x'}", "[[1,\"x\"]]" },
        { "{'a': <@mi nothing>, 'b': <@mi 4>, 'c': <<'v'>>}", "{\"a\":null,\"b\":4,\"c\":\"v\"}" },
        { "objectpath '/a'", "\"/a\"" },
        { "inf", "null" },
        { "'\\u001b[0m'", "\"\\u001b[0m\"" },
        { "'\\u007f\\u0080\\u009b2J\\u00a0'", "\"\\u007f\\u0080\\u009b2J\302\240\"" },
    };

    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(GVariant) value = g_variant_parse(NULL, rows[i].variant, NULL, NULL, &error);
        g_autofree char *json = NULL;

        g_assert_no_error(error);
        json = vspJsonFormat(value);
        g_assert_cmpstr(json, ==, rows[i].json);
    }
}

/* A floating value stays the caller's, and floating. */
static void
testFormatFloating(void)
{
    GVariant *value = g_variant_new("(i)", 1);
    g_autofree char *json = vspJsonFormat(value);

    g_assert_cmpstr(json, ==, "[1]");
    g_assert_true(g_variant_is_floating(value));
    g_variant_unref(value);
}

int
main(int argc, char **argv)
{
    vspTestInit(&argc, &argv);
    g_test_add_func("/json/values", testValues);
    g_test_add_func("/json/huge-integers", testHugeIntegers);
    g_test_add_func("/json/refused", testRefused);
    g_test_add_func("/json/depth", testDepth);
    g_test_add_func("/json/format", testFormat);
    g_test_add_func("/json/format-floating", testFormatFloating);
    return vspTestRun();
}
