/*
 * zeros.h: runs of zeros that are worth a hole
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef ZEROS_H
#define ZEROS_H

#include <glib.h>

/* Length of the run of zeros that @buf begins with, a multiple of @granule; 0 if it is too short for a
 * hole. */
gsize vspZerosAt(const char *buf, gsize len, gsize granule);

/* Bytes before the next run of zeros that is long enough, a multiple of @granule; @len if none is. */
gsize vspZerosBefore(const char *buf, gsize len, gsize granule);

#endif /* ZEROS_H */
