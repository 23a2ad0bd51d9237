/*
 * vsphelperpath.c: where the iohelper is
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <dlfcn.h>
#include <glib/gi18n-lib.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "vsperrorpriv.h"
#include "vsphelperpath.h"

#define HELPER_NAME "vmspool_iohelper"

/* The helper of the build tree that this very library was loaded from: it lies beside the library
 * in a folder of its own there, and nowhere else. */
static char *
besideLibrary(void)
{
    Dl_info info;
    g_autofree char *folder = NULL;

    if (!dladdr(besideLibrary, &info) || !info.dli_fname || !g_path_is_absolute(info.dli_fname))
        return NULL;
    folder = g_path_get_dirname(info.dli_fname);
    return g_build_filename(folder, "iohelper", HELPER_NAME, NULL);
}

/* Takes @path. */
static char *
tryPath(char *path, GString *tried)
{
    g_autofree char *owned = path;

    if (!path)
        return NULL;
    if (access(path, X_OK) == 0)
        return g_steal_pointer(&owned);
    g_string_append_printf(tried, "%s'%s'", tried->len ? ", " : "", path);
    return NULL;
}

char *
vspHelperPathFind(const char *override, GError **error)
{
    g_autoptr(GString) tried = g_string_new(NULL);
    const char *variable = getauxval(AT_SECURE) ? NULL : g_getenv("VMSPOOL_IOHELPER");
    char *found;

    if (override || variable) {
        const char *asked = override ? override : variable;

        /* A relative path would depend on where the daemon happens to stand. */
        if (!g_path_is_absolute(asked)) {
            vspSetError(error, VSP_ERROR_HELPER_MISSING,
                        _("the iohelper's path '%s' is not absolute"), asked);
            return NULL;
        }
        found = tryPath(g_strdup(asked), tried);
    } else {
        found = tryPath(besideLibrary(), tried);
        if (!found)
            found = tryPath(g_build_filename(VSP_LIBEXECDIR, HELPER_NAME, NULL), tried);
    }
    if (!found)
        vspSetError(error, VSP_ERROR_HELPER_MISSING,
                    _("no iohelper that can be run; tried %s"), tried->str);
    return found;
}
