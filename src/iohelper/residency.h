/*
 * residency.h: how much of a file is in the page cache
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef RESIDENCY_H
#define RESIDENCY_H

#include <glib.h>
#include <sys/types.h>

/* Bytes of [@start, @end) that are in memory, whole pages; -1 where it can't be known. */
gint64 vspResidency(int fd, off_t start, off_t end);

#endif /* RESIDENCY_H */
