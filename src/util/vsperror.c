/*
 * vsperror.c: the error domain, and errors from errno
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>

#include "vsperrorpriv.h"

GQuark
vsp_error_quark(void)
{
    /* Asked each time: the macro of GLib keeps the answer where two threads race for it. */
    return g_quark_from_static_string("vsp-error-quark");
}

static const char *const codeNames[] = {
    [VSP_ERROR_FAILED] = "failed",
    [VSP_ERROR_INVALID_ARGUMENT] = "invalid-argument",
    [VSP_ERROR_IO] = "io",
    [VSP_ERROR_NO_SPACE] = "no-space",
    [VSP_ERROR_NO_DIRECT_IO] = "no-direct-io",
    [VSP_ERROR_NOT_FOUND] = "not-found",
    [VSP_ERROR_ACCESS] = "access",
    [VSP_ERROR_EXISTS] = "exists",
    [VSP_ERROR_BUSY] = "busy",
    [VSP_ERROR_BLOCKED] = "blocked",
    [VSP_ERROR_ABORTED] = "aborted",
    [VSP_ERROR_TIMED_OUT] = "timed-out",
    [VSP_ERROR_HELPER_MISSING] = "helper-missing",
    [VSP_ERROR_HELPER_VERSION] = "helper-version",
    [VSP_ERROR_HELPER_DIED] = "helper-died",
    [VSP_ERROR_STILL_OPEN] = "still-open",
    [VSP_ERROR_IMAGE_EMPTY] = "image-empty",
    [VSP_ERROR_IMAGE_PARTIAL] = "image-partial",
    [VSP_ERROR_IMAGE_FOREIGN] = "image-foreign",
    [VSP_ERROR_IMAGE_CUT] = "image-cut",
    [VSP_ERROR_IMAGE_CORRUPT] = "image-corrupt",
    [VSP_ERROR_IMAGE_UNSUPPORTED] = "image-unsupported",
    [VSP_ERROR_QEMU] = "qemu",
    [VSP_ERROR_QEMU_LOST] = "qemu-lost",
    [VSP_ERROR_NOT_RESTORED] = "not-restored",
    [VSP_ERROR_READER_GONE] = "reader-gone",
};

const char *
vspErrorCodeName(int code)
{
    if (code < 0 || code >= (int) G_N_ELEMENTS(codeNames))
        return "failed";
    return codeNames[code];
}

vspError
vspErrorFromErrno(int errnum)
{
    switch (errnum) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return VSP_ERROR_NO_SPACE;
    case ENOENT:
    case ENOTDIR:
        return VSP_ERROR_NOT_FOUND;
    case EACCES:
    case EPERM:
    case EROFS:
        return VSP_ERROR_ACCESS;
    case EEXIST:
        return VSP_ERROR_EXISTS;
    case ETIMEDOUT:
        return VSP_ERROR_TIMED_OUT;
    case ECANCELED:
        return VSP_ERROR_ABORTED;
    default:
        return VSP_ERROR_IO;
    }
}

void
vspSetErrno(GError **error, int errnum, const char *format, ...)
{
    g_autofree char *what = NULL;
    va_list args;

    va_start(args, format);
    what = g_strdup_vprintf(format, args);
    va_end(args);
    g_set_error(error, VSP_ERROR, vspErrorFromErrno(errnum), "%s: %s", what, g_strerror(errnum));
}

void
vspSetError(GError **error, vspError code, const char *format, ...)
{
    g_autofree char *what = NULL;
    va_list args;

    va_start(args, format);
    what = g_strdup_vprintf(format, args);
    va_end(args);
    g_set_error_literal(error, VSP_ERROR, code, what);
}

const char *
vspErrnoText(int errnum)
{
    return g_strerror(errnum);
}

char *
vspNameEscape(const char *name)
{
    g_autofree char *valid = g_utf8_make_valid(name, -1);
    GString *out = g_string_new(NULL);

    for (const char *p = valid; *p; p = g_utf8_next_char(p)) {
        gunichar c = g_utf8_get_char(p);

        if (c == '\n')
            g_string_append(out, "\\n");
        else if (c == '\t')
            g_string_append(out, "\\t");
        else if (g_unichar_iscntrl(c))
            g_string_append_printf(out, "\\x%02x", (unsigned int) c);
        else
            g_string_append_unichar(out, c);
    }
    return g_string_free(out, FALSE);
}
