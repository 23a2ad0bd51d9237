/*
 * testutil.h: what every unit test needs
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_TESTUTIL_H
#define VSP_TESTUTIL_H

#include <glib.h>

/* g_test_init(), for main() to begin with. */
void vspTestInit(int *argc, char ***argv);

/* g_test_run(), and the descriptors that are open afterwards must be those that were open at
 * vspTestInit(). */
int vspTestRun(void);

/* A new directory; vspTestRemove() removes it with what is in it. Both free nothing of the caller's
 * but what they return. */
char *vspTestDirectory(void);
void vspTestRemove(const char *directory);

#endif /* VSP_TESTUTIL_H */
