/*
 * testutil.c: what every unit test needs
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <glib/gstdio.h>

#include "testutil.h"

static GHashTable *descriptorsAtStart;

/* Number of each open descriptor, to what it is. */
static GHashTable *
listDescriptors(void)
{
    GHashTable *table = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_autoptr(GDir) dir = g_dir_open("/proc/self/fd", 0, NULL);
    const char *name;

    g_assert_nonnull(dir);
    while ((name = g_dir_read_name(dir))) {
        g_autofree char *link = g_build_filename("/proc/self/fd", name, NULL);
        char *target = g_file_read_link(link, NULL);

        /* The one that lists them. */
        if (target && g_str_has_suffix(target, "/fd") && g_str_has_prefix(target, "/proc/")) {
            g_free(target);
            continue;
        }
        g_hash_table_insert(table, g_strdup(name), target ? target : g_strdup("?"));
    }
    return table;
}

void
vspTestInit(int *argc, char ***argv)
{
    g_test_init(argc, argv, NULL);
    descriptorsAtStart = listDescriptors();
}

int
vspTestRun(void)
{
    int rc = g_test_run();
    g_autoptr(GHashTable) now = listDescriptors();
    GHashTableIter iter;
    gpointer number, target;

    g_hash_table_iter_init(&iter, now);
    while (g_hash_table_iter_next(&iter, &number, &target)) {
        if (g_hash_table_contains(descriptorsAtStart, number))
            continue;
        g_printerr("descriptor %s was left open: %s\n", (char *)number, (char *)target);
        rc = 1;
    }
    g_hash_table_unref(descriptorsAtStart);
    return rc;
}

char *
vspTestDirectory(void)
{
    g_autoptr(GError) error = NULL;
    char *path = g_dir_make_tmp("vsptest-XXXXXX", &error);

    g_assert_no_error(error);
    return path;
}

void
vspTestRemove(const char *directory)
{
    g_autoptr(GDir) dir = g_dir_open(directory, 0, NULL);
    const char *name;

    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *path = g_build_filename(directory, name, NULL);

        if (g_file_test(path, G_FILE_TEST_IS_DIR) && !g_file_test(path, G_FILE_TEST_IS_SYMLINK))
            vspTestRemove(path);
        else
            g_unlink(path);
    }
    g_assert_cmpint(g_rmdir(directory), ==, 0);
}
