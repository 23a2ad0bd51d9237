/*
 * test-error.c: codes, their words, and messages that are one whole sentence
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <errno.h>
#include <string.h>

#include "testutil.h"
#include "vsperrorpriv.h"

/* Scripts rely on the words. */
static void
testCodeNames(void)
{
    static const char *const words[] = {
        "failed",
        "invalid-argument",
        "io",
        "no-space",
        "no-direct-io",
        "not-found",
        "access",
        "exists",
        "busy",
        "blocked",
        "aborted",
        "timed-out",
        "helper-missing",
        "helper-version",
        "helper-died",
        "still-open",
        "image-empty",
        "image-partial",
        "image-foreign",
        "image-cut",
        "image-corrupt",
        "image-unsupported",
        "qemu",
        "qemu-lost",
        "not-restored",
        "reader-gone",
    };

    g_assert_cmpuint(G_N_ELEMENTS(words), ==, VSP_ERROR_READER_GONE + 1);
    for (guint i = 0; i < G_N_ELEMENTS(words); i++)
        g_assert_cmpstr(vspErrorCodeName(i), ==, words[i]);
}

static void
testUnknownCodes(void)
{
    g_assert_cmpstr(vspErrorCodeName(-1), ==, "failed");
    g_assert_cmpstr(vspErrorCodeName(G_MININT), ==, "failed");
    g_assert_cmpstr(vspErrorCodeName(VSP_ERROR_READER_GONE + 1), ==, "failed");
    g_assert_cmpstr(vspErrorCodeName(G_MAXINT), ==, "failed");
}

static void
testCodeOfErrno(void)
{
    static const struct {
        int errnum;
        vspError code;
    } rows[] = {
        { ENOSPC, VSP_ERROR_NO_SPACE },   { EDQUOT, VSP_ERROR_NO_SPACE },
        { EFBIG, VSP_ERROR_NO_SPACE },    { ENOENT, VSP_ERROR_NOT_FOUND },
        { ENOTDIR, VSP_ERROR_NOT_FOUND }, { EACCES, VSP_ERROR_ACCESS },
        { EPERM, VSP_ERROR_ACCESS },      { EROFS, VSP_ERROR_ACCESS },
        { EEXIST, VSP_ERROR_EXISTS },     { ETIMEDOUT, VSP_ERROR_TIMED_OUT },
        { ECANCELED, VSP_ERROR_ABORTED }, { EIO, VSP_ERROR_IO },
        { EINVAL, VSP_ERROR_IO },         { 0, VSP_ERROR_IO },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++)
        g_assert_true(vspErrorFromErrno(rows[i].errnum) == rows[i].code);
}

static void
testSetErrno(void)
{
    g_autoptr(GError) error = NULL;

    vspSetErrno(&error, ENOSPC, "cannot write '%s' at offset %d", "a%sb", 7);
    g_assert_error(error, VSP_ERROR, VSP_ERROR_NO_SPACE);
    g_assert_cmpstr(error->message, ==, "cannot write 'a%sb' at offset 7: No space left on device");
    vspSetErrno(NULL, EIO, "nobody asks");
}

static void
testSetError(void)
{
    g_autoptr(GError) error = NULL;

    vspSetError(&error, VSP_ERROR_BUSY, "the VM '%s' is busy", "100%n");
    g_assert_error(error, VSP_ERROR, VSP_ERROR_BUSY);
    g_assert_cmpstr(error->message, ==, "the VM '100%n' is busy");
    vspSetError(NULL, VSP_ERROR_BUSY, "nobody asks");
}

static void
testErrnoText(void)
{
    g_assert_cmpstr(vspErrnoText(EIO), ==, "Input/output error");
    g_assert_nonnull(vspErrnoText(-5));
    g_assert_nonnull(vspErrnoText(99999));
}

static void
testNameEscape(void)
{
    static const char *const rows[][2] = {
        { "", "" },
        { "/plain/name", "/plain/name" },
        { "two\nlines", "two\\nlines" },
        { "a\tb\rc\x1b[31m\x7f", "a\\tb\\x0dc\\x1b[31m\\x7f" },
        { "Größe 名", "Größe 名" },
        { "C1 \xc2\x85 ends a line for some", "C1 \\x85 ends a line for some" },
        { "not UTF-8 \xff", "not UTF-8 \xef\xbf\xbd" },
        { "cut \xe5\x90", "cut \xef\xbf\xbd\xef\xbf\xbd" },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *once = vspNameEscape(rows[i][0]);
        g_autofree char *twice = vspNameEscape(once);

        g_assert_true(g_utf8_validate(once, -1, NULL));
        g_assert_null(strpbrk(once, "\n\r\t\x1b"));
        if (i < G_N_ELEMENTS(rows) - 1)
            g_assert_cmpstr(once, ==, rows[i][1]);
        /* Library and helper both do it. */
        g_assert_cmpstr(twice, ==, once);
    }
}

int
main(int argc, char **argv)
{
    vspTestInit(&argc, &argv);
    vspTestAdd("/error/code-names", testCodeNames);
    vspTestAdd("/error/unknown-codes", testUnknownCodes);
    vspTestAdd("/error/code-of-errno", testCodeOfErrno);
    vspTestAdd("/error/set-errno", testSetErrno);
    vspTestAdd("/error/set-error", testSetError);
    vspTestAdd("/error/errno-text", testErrnoText);
    vspTestAdd("/error/name-escape", testNameEscape);
    return vspTestRun();
}
