/*
 * test-filewrapperoptions.c: what options come down to, and the words for them
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "testutil.h"
#include "vspfilewrapperpriv.h"

static void
testCacheWords(void)
{
    vspCacheMode mode = VSP_CACHE_PACED;

    for (vspCacheMode m = VSP_CACHE_AUTO; m <= VSP_CACHE_CACHED; m++) {
        mode = VSP_CACHE_PACED;
        g_assert_true(vspCacheModeFromString(vspCacheModeToString(m), &mode));
        g_assert_true(mode == m);
    }
    mode = VSP_CACHE_PACED;
    g_assert_false(vspCacheModeFromString("", &mode));
    g_assert_false(vspCacheModeFromString("Direct", &mode));
    g_assert_false(vspCacheModeFromString("unknown", &mode));
    g_assert_false(vspCacheModeFromString(NULL, &mode));
    g_assert_true(mode == VSP_CACHE_PACED);
    g_assert_cmpstr(vspCacheModeToString(VSP_CACHE_CACHED + 1), ==, "unknown");
    g_assert_cmpstr(vspCacheModeToString((vspCacheMode)-1), ==, "unknown");
}

static void
testTransportWords(void)
{
    vspTransport transport = VSP_TRANSPORT_PIPE;

    for (vspTransport t = VSP_TRANSPORT_AUTO; t <= VSP_TRANSPORT_SOCKET; t++) {
        g_assert_true(vspTransportFromString(vspTransportToString(t), &transport));
        g_assert_true(transport == t);
    }
    g_assert_false(vspTransportFromString("tcp", &transport));
    g_assert_false(vspTransportFromString(NULL, &transport));
    g_assert_cmpstr(vspTransportToString(VSP_TRANSPORT_SOCKET + 1), ==, "unknown");
}

/* A cache mode wins over the flag; without one the flag counts. */
static void
testCacheMode(void)
{
    g_autoptr(vspFileWrapperOptions) options = vspFileWrapperOptionsNew();

    g_assert_true(vspFileWrapperOptionsGetCacheMode(NULL) == VSP_CACHE_AUTO);
    g_assert_true(vspFileWrapperOptionsGetCacheMode(options) == VSP_CACHE_AUTO);
    vspFileWrapperOptionsSetFlags(options, VSP_FILE_WRAPPER_BYPASS_CACHE);
    g_assert_true(vspFileWrapperOptionsGetCacheMode(options) == VSP_CACHE_DIRECT);
    vspFileWrapperOptionsSetCacheMode(options, VSP_CACHE_PACED);
    g_assert_true(vspFileWrapperOptionsGetCacheMode(options) == VSP_CACHE_PACED);
    vspFileWrapperOptionsSetFlags(options, 0);
    g_assert_true(vspFileWrapperOptionsGetCacheMode(options) == VSP_CACHE_PACED);
}

static void
testCopy(void)
{
    g_autoptr(vspFileWrapperOptions) options = vspFileWrapperOptionsNew();
    g_autoptr(vspFileWrapperOptions) copy = NULL;
    g_autoptr(vspFileWrapperOptions) fresh = vspFileWrapperOptionsCopy(NULL);

    g_assert_cmpuint(fresh->length, ==, G_MAXUINT64);
    vspFileWrapperOptionsSetFlags(options, 5);
    vspFileWrapperOptionsSetTransport(options, VSP_TRANSPORT_SOCKET);
    vspFileWrapperOptionsSetStrict(options, TRUE);
    vspFileWrapperOptionsSetEngine(options, "sync");
    vspFileWrapperOptionsSetBuffers(options, 3, 65536);
    vspFileWrapperOptionsSetHelperPath(options, "/bin/true");
    vspFileWrapperOptionsSetLength(options, 7);
    copy = vspFileWrapperOptionsCopy(options);

    /* Apart from the original. */
    vspFileWrapperOptionsSetEngine(options, "uring");
    vspFileWrapperOptionsSetHelperPath(options, NULL);
    g_assert_cmpuint(copy->flags, ==, 5);
    g_assert_true(copy->transport == VSP_TRANSPORT_SOCKET);
    g_assert_true(copy->strict);
    g_assert_cmpstr(copy->engine, ==, "sync");
    g_assert_cmpuint(copy->buffers, ==, 3);
    g_assert_cmpuint(copy->bufferSize, ==, 65536);
    g_assert_cmpstr(copy->helperPath, ==, "/bin/true");
    g_assert_cmpuint(copy->length, ==, 7);
    vspFileWrapperOptionsFree(NULL);
}

int
main(int argc, char **argv)
{
    vspTestInit(&argc, &argv);
    vspTestAdd("/options/cache-words", testCacheWords);
    vspTestAdd("/options/transport-words", testTransportWords);
    vspTestAdd("/options/cache-mode", testCacheMode);
    vspTestAdd("/options/copy", testCopy);
    return vspTestRun();
}
