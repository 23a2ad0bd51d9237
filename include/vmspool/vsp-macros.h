/*
 * vsp-macros.h: what every public header needs
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_MACROS_H
#define VSP_MACROS_H

#include <glib.h>

/* Symbols are exported by src/libvmspool.sym, not by attributes, so that one list is the truth. */
#define VSP_BEGIN_DECLS G_BEGIN_DECLS
#define VSP_END_DECLS G_END_DECLS

#endif /* VSP_MACROS_H */
