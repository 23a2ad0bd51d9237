/*
 * vspjson.h: JSON text to GVariant and back; the only home of json-glib
 *
 * Objects are a{sv} in the order of the text, arrays av, numbers x (d with a fraction, an
 * exponent, or more than 64 bits), text s, booleans b, null mv. Of a key that comes twice, the last
 * value counts.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_JSON_H
#define VSP_JSON_H

#include <glib.h>

/* One whole JSON text, at most 64 levels deep. (transfer full), not floating.
 * VSP_ERROR_INVALID_ARGUMENT for anything else. */
GVariant *vspJsonParse(const char *text, gsize len, GError **error);

/* One line without a newline. @value is not consumed, floating or not. Any type is taken: tuples
 * become arrays, and numbers that are not finite null. */
char *vspJsonFormat(GVariant *value);

#endif /* VSP_JSON_H */
