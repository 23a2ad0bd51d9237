/*
 * replay.c: runs a fuzz target over files and folders of files, as an ordinary test
 *
 * Besides each file as it is, its beginnings are run: most of what is wrong with a parser shows
 * where the data ends too early.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

/* More of the beginnings of a file add time and find nothing new. */
#define PREFIXES_MAX 512
#define SIZE_MAX_BYTES (64 * 1024 * 1024)

/* A copy of exactly @size bytes, so that a sanitizer sees a read beyond. */
static void
runOne(const char *data, gsize size)
{
    g_autofree uint8_t *copy = g_memdup2(data, size);

    LLVMFuzzerTestOneInput(copy ? copy : (const uint8_t *)"", size);
}

static guint
runFile(const char *path)
{
    g_autofree char *data = NULL;
    g_autoptr(GError) error = NULL;
    GStatBuf st;
    gsize size;

    if (g_stat(path, &st) < 0 || st.st_size > SIZE_MAX_BYTES)
        return 0;
    if (!g_file_get_contents(path, &data, &size, &error)) {
        g_printerr("%s\n", error->message);
        exit(1);
    }
    for (gsize n = 0; n < MIN(size, PREFIXES_MAX); n++)
        runOne(data, n);
    runOne(data, size);
    return 1;
}

static guint
runPath(const char *path)
{
    g_autoptr(GDir) dir = NULL;
    const char *name;
    guint count = 0;

    if (!g_file_test(path, G_FILE_TEST_IS_DIR))
        return runFile(path);
    dir = g_dir_open(path, 0, NULL);
    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *inside = g_build_filename(path, name, NULL);

        count += runPath(inside);
    }
    return count;
}

int
main(int argc, char **argv)
{
    guint count = 0;

    for (int i = 1; i < argc; i++)
        count += runPath(argv[i]);
    g_print("%u files\n", count);
    /* A corpus that went missing must not pass for a test. */
    return count > 0 ? 0 : 1;
}
