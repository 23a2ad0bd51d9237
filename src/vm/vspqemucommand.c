/*
 * vspqemucommand.c: QEMU's command line: recorded when saving, completed when restoring
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <string.h>

#include "vspqemucommand.h"

/* QEMU takes its options with one dash or two. */
static gboolean
isOption(const char *arg, const char *name)
{
    if (arg[0] != '-')
        return FALSE;
    return g_str_equal(arg + (arg[1] == '-' ? 2 : 1), name);
}

/* How many of @argv, from its first, belong to one start only. */
static gsize
oneStartOnly(const char *const *argv)
{
    if (isOption(argv[0], "S") || isOption(argv[0], "daemonize"))
        return 1;
    if (!argv[1])
        return 0;
    if (isOption(argv[0], "incoming") || isOption(argv[0], "loadvm"))
        return 2;
    if (isOption(argv[0], "chardev") && strstr(argv[1], "id=" VSP_QEMU_COMMAND_MONITOR ","))
        return 2;
    if (isOption(argv[0], "mon") && strstr(argv[1], "chardev=" VSP_QEMU_COMMAND_MONITOR ","))
        return 2;
    return 0;
}

static GPtrArray *
commandClean(const char *const *argv)
{
    GPtrArray *clean = g_ptr_array_new();

    for (gsize i = 0; argv[i];) {
        /* Never the program itself. */
        gsize skip = i == 0 ? 0 : oneStartOnly(argv + i);

        if (skip == 0)
            g_ptr_array_add(clean, g_strdup(argv[i++]));
        i += skip;
    }
    return clean;
}

char **
vspQemuCommandClean(const char *const *argv)
{
    GPtrArray *clean = commandClean(argv);

    g_ptr_array_add(clean, NULL);
    return (char **)g_ptr_array_free(clean, FALSE);
}

char **
vspQemuCommandForRestore(const char *const *argv, int monitor)
{
    GPtrArray *args = commandClean(argv);

    g_ptr_array_add(args, g_strdup("-S"));
    g_ptr_array_add(args, g_strdup("-incoming"));
    g_ptr_array_add(args, g_strdup("defer"));
    g_ptr_array_add(args, g_strdup("-chardev"));
    g_ptr_array_add(args, g_strdup_printf("socket,id=" VSP_QEMU_COMMAND_MONITOR ",fd=%d", monitor));
    g_ptr_array_add(args, g_strdup("-mon"));
    g_ptr_array_add(args, g_strdup("chardev=" VSP_QEMU_COMMAND_MONITOR ",mode=control"));
    g_ptr_array_add(args, NULL);
    return (char **)g_ptr_array_free(args, FALSE);
}

gboolean
vspQemuCommandHasMonitor(const char *const *argv)
{
    for (gsize i = 1; argv[0] && argv[i]; i++) {
        if (oneStartOnly(argv + i) == 2) {
            i++;
            continue;
        }
        if (isOption(argv[i], "qmp") || isOption(argv[i], "qmp-pretty") ||
            isOption(argv[i], "monitor") || isOption(argv[i], "mon"))
            return !argv[i + 1] || !g_str_equal(argv[i + 1], "none");
    }
    return FALSE;
}
