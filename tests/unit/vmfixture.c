/*
 * vmfixture.c: what the tests of save, restore and dump share
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <string.h>

#include "fakeqemu.h"
#include "testutil.h"
#include "vmfixture.h"

void
vmFixtureInit(vmFixture *f)
{
    *f = (vmFixture){ 0 };
    f->dir = vspTestDirectory();
    f->monitor = g_build_filename(f->dir, "monitor", NULL);
    f->file = g_build_filename(f->dir, "file", NULL);
    f->notices = g_ptr_array_new_with_free_func(g_free);
}

void
vmFixtureClear(vmFixture *f)
{
    vspTestRemove(f->dir);
    g_ptr_array_unref(f->notices);
    g_free(f->file);
    g_free(f->monitor);
    g_free(f->dir);
}

static void
takeNotice(const char *notice, gpointer opaque)
{
    vmFixture *f = opaque;

    g_ptr_array_add(f->notices, g_strdup(notice));
}

static void
takeProgress(const vspProgress *progress, gpointer opaque)
{
    vmFixture *f = opaque;

    /* The first of another job begins again. */
    if (progress->stage > VSP_STAGE_SETUP) {
        g_assert_cmpint(progress->stage, >=, f->last.stage);
        g_assert_cmpuint(progress->bytesIn, >=, f->last.bytesIn);
        g_assert_cmpuint(progress->bytesOut, >=, f->last.bytesOut);
    }
    if (progress->bytesTotal) {
        g_assert_cmpuint(progress->bytesIn, <=, progress->bytesTotal);
        g_assert_cmpuint(progress->bytesOut, <=, progress->bytesTotal);
    }
    f->last = *progress;
}

vspVmOptions *
vmFixtureOptions(vmFixture *f)
{
    vspVmOptions *options = vspVmOptionsNew();

    vspVmOptionsSetNotice(options, takeNotice, f);
    vspVmOptionsSetProgress(options, takeProgress, f);
    return options;
}

gboolean
vmFixtureWasTold(const vmFixture *f, const char *part)
{
    for (guint i = 0; i < f->notices->len; i++) {
        if (strstr(g_ptr_array_index(f->notices, i), part))
            return TRUE;
    }
    return FALSE;
}

void
vmFixtureAssertNoFile(vmFixture *f)
{
    g_autoptr(GDir) dir = g_dir_open(f->dir, 0, NULL);
    const char *name;

    while ((name = g_dir_read_name(dir)))
        g_assert_cmpstr(name, ==, "monitor");
}

void
vmFixtureAssertStream(const void *data, gsize len)
{
    const guint8 *bytes = data;

    for (gsize i = 0; i < len; i++) {
        if (bytes[i] != fakeQemuByte(i))
            g_error("byte %" G_GSIZE_FORMAT " of the stream differs", i);
    }
}
