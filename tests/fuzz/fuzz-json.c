/*
 * fuzz-json.c: any bytes as JSON
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <string.h>

#include "fuzz.h"
#include "vspjson.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GVariant) value = vspJsonParse((const char *)data, size, &error);
    g_autoptr(GVariant) again = NULL;
    g_autofree char *json = NULL;

    g_assert_true((value == NULL) == (error != NULL));
    if (!value)
        return 0;
    json = vspJsonFormat(value);
    again = vspJsonParse(json, strlen(json), &error);
    g_assert_no_error(error);
    g_assert_nonnull(again);
    return 0;
}
