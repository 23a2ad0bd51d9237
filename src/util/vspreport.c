/*
 * vspreport.c: reports as JSON, for callers without a JSON library
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <vmspool/vsp-report.h>

#include "vspjson.h"

char *
vspReportToJson(GVariant *report)
{
    g_return_val_if_fail(report != NULL, NULL);

    return vspJsonFormat(report);
}
