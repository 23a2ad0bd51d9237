/*
 * fuzz-xml.c: any bytes as domain XML
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <string.h>

#include "fuzz.h"
#include "vspxml.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(vspDomainXml) domain = vspDomainXmlParse((const char *)data, size, &error);
    g_autoptr(vspDomainXml) again = NULL;
    g_autofree char *xml = NULL;

    g_assert_true((domain == NULL) == (error != NULL));
    if (!domain)
        return 0;
    /* Whatever was read can be written and read again. */
    xml = vspDomainXmlFormat(domain);
    again = vspDomainXmlParse(xml, strlen(xml), &error);
    g_assert_no_error(error);
    if (domain->recordedCommand)
        g_assert_cmpuint(g_strv_length(again->recordedCommand), ==,
                         g_strv_length(domain->recordedCommand));
    else
        g_assert_null(again->recordedCommand);
    return 0;
}
