/*
 * vmfixture.h: what the tests of save, restore and dump share
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_VMFIXTURE_H
#define VSP_VMFIXTURE_H

#include <vmspool/vmspool.h>

typedef struct {
    char *dir;
    char *monitor; /* in @dir, a socket; for a double of QEMU */
    char *file;    /* in @dir, the image or the core; does not exist at first */
    GPtrArray *notices;
    vspProgress last; /* what was reported last */
} vmFixture;

void vmFixtureInit(vmFixture *f);
void vmFixtureClear(vmFixture *f);

/* Options that collect notices and check progress: it never goes back, and never beyond the whole.
 */
vspVmOptions *vmFixtureOptions(vmFixture *f);

/* Whether a notice has @part in it. */
gboolean vmFixtureWasTold(const vmFixture *f, const char *part);

/* Nothing but the monitor's socket is in the folder. */
void vmFixtureAssertNoFile(vmFixture *f);

/* @len bytes as a double of QEMU writes them. */
void vmFixtureAssertStream(const void *data, gsize len);

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(vmFixture, vmFixtureClear)

#endif /* VSP_VMFIXTURE_H */
