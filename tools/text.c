/*
 * text.c: a whole text out of a file
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gi18n.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "tool.h"

/* No image has room for more. */
#define TEXT_MAX (16 * 1024 * 1024)
#define PIECE (64 * 1024)

static void
setError(GError **error, const char *path, int errnum)
{
    g_set_error(error, VSP_ERROR,
                errnum == ENOENT   ? VSP_ERROR_NOT_FOUND
                : errnum == EACCES ? VSP_ERROR_ACCESS
                                   : VSP_ERROR_IO,
                _("cannot read '%s': %s"), path, g_strerror(errnum));
}

char *
vspToolReadText(const char *path, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    gboolean isStdin = g_str_equal(path, "-");
    int fd = isStdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    ssize_t n;
    int errnum;

    if (fd < 0) {
        setError(error, path, errno);
        return NULL;
    }
    do {
        gsize len = text->len;

        g_string_set_size(text, len + PIECE);
        n = read(fd, text->str + len, PIECE);
        errnum = errno;
        g_string_set_size(text, len + MAX(n, 0));
    } while ((n > 0 && text->len <= TEXT_MAX) || (n < 0 && errnum == EINTR));
    if (!isStdin)
        g_close(fd, NULL);
    if (n < 0) {
        setError(error, path, errnum);
        return NULL;
    }
    if (text->len > TEXT_MAX) {
        g_set_error(error, VSP_ERROR, VSP_ERROR_INVALID_ARGUMENT,
                    _("'%s' is longer than the limit of %d bytes"), path, TEXT_MAX);
        return NULL;
    }
    if (memchr(text->str, '\0', text->len)) {
        g_set_error(error, VSP_ERROR, VSP_ERROR_INVALID_ARGUMENT, _("'%s' is not a text"), path);
        return NULL;
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}
