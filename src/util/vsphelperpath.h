/*
 * vsphelperpath.h: where the iohelper is
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_HELPERPATH_H
#define VSP_HELPERPATH_H

#include <glib.h>

/* The first that can be run of: @override (nullable; if given, only that); $VMSPOOL_IOHELPER, unless
 * the program is set-uid; beside the library, if that is in a build tree; the installed one. NULL
 * with VSP_ERROR_HELPER_MISSING, which lists what was tried. */
char *vspHelperPathFind(const char *override, GError **error);

#endif /* VSP_HELPERPATH_H */
