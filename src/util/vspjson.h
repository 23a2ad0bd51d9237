/*
 * vspjson.h: JSON text to GVariant and back; the only home of json-glib
 *
 * Objects are a{sv}, arrays av, numbers x or d, text s, booleans b, null mv.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_JSON_H
#define VSP_JSON_H

#include <glib.h>

/* One whole JSON text, at most 64 levels deep. (transfer full), not floating. */
GVariant *vspJsonParse(const char *text, gsize len, GError **error);

/* One line without a newline. @value is not consumed, floating or not. */
char *vspJsonFormat(GVariant *value);

#endif /* VSP_JSON_H */
