/*
 * wrapperutil.c: what the tests of the file wrapper do again and again
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "testdata.h"
#include "testutil.h"
#include "vspfd.h"
#include "vspio.h"
#include "wrapperutil.h"

#define CHUNK (256 * 1024)

vspFileWrapperFd *
wrapperNew(int *fd, const char *name, unsigned int flags)
{
    g_autoptr(GError) error = NULL;
    vspFileWrapperFd *wfd = vspFileWrapperFdNew(fd, name, flags, &error);

    g_assert_no_error(error);
    g_assert_nonnull(wfd);
    return wfd;
}

vspFileWrapperOptions *
wrapperOptionsWithHelper(const char *path)
{
    vspFileWrapperOptions *options = vspFileWrapperOptionsNew();

    vspFileWrapperOptionsSetHelperPath(options, path);
    return options;
}

guint64
wrapperFeed(int fd, guint64 length)
{
    g_autofree char *buf = g_malloc(CHUNK);
    guint64 done = 0;

    while (done < length) {
        gsize len = MIN(CHUNK, length - done);
        ssize_t n;

        vspTestFill(buf, len, done);
        n = write(fd, buf, len);
        if (n > 0)
            done += n;
        else if (n < 0 && errno == EAGAIN)
            g_assert_cmpint(vspPollOne(fd, POLLOUT, vspTestDeadline()), >, 0);
        else if (errno != EINTR)
            return done;
    }
    errno = 0;
    return done;
}

guint64
wrapperDrain(int fd, guint64 offset)
{
    g_autofree char *buf = g_malloc(CHUNK);
    guint64 done = 0;
    ssize_t n;

    while ((n = read(fd, buf, CHUNK)) != 0) {
        if (n < 0 && errno == EAGAIN) {
            g_assert_cmpint(vspPollOne(fd, POLLIN, vspTestDeadline()), >, 0);
            continue;
        }
        g_assert_cmpint(n, >, 0);
        vspTestAssertData(buf, n, offset + done);
        done += n;
    }
    return done;
}

void
wrapperMakeFile(const char *path, guint64 length)
{
    g_auto(vspFd) fd = vspTestOpen(path, O_WRONLY | O_CREAT | O_TRUNC);

    g_assert_cmpuint(wrapperFeed(fd, length), ==, length);
}

void
wrapperAssertFile(const char *path, guint64 length)
{
    g_auto(vspFd) fd = vspTestOpen(path, O_RDONLY);

    g_assert_cmpuint(wrapperDrain(fd, 0), ==, length);
}

void
wrapperAssertClosed(vspFileWrapperFd *wfd)
{
    g_autoptr(GError) error = NULL;
    int rc = vspFileWrapperFdClose(wfd, &error);

    g_assert_no_error(error);
    g_assert_cmpint(rc, ==, 0);
}

void
wrapperAssertFailed(vspFileWrapperFd *wfd, int code, ...)
{
    g_autoptr(GError) error = NULL;
    const char *word;
    va_list args;

    g_assert_cmpint(vspFileWrapperFdClose(wfd, &error), ==, -1);
    g_assert_error(error, VSP_ERROR, code);
    va_start(args, code);
    while ((word = va_arg(args, const char *))) {
        if (!strstr(error->message, word))
            g_error("no '%s' in: %s", word, error->message);
    }
    va_end(args);
}

pid_t
wrapperFindHelper(void)
{
    g_autoptr(GDir) dir = g_dir_open("/proc", 0, NULL);
    const char *name;
    pid_t found = -1;

    while ((name = g_dir_read_name(dir))) {
        g_autofree char *path = g_build_filename("/proc", name, "stat", NULL);
        g_autofree char *text = NULL;
        const char *end;
        int parent;

        if (!g_ascii_isdigit(*name) || !g_file_get_contents(path, &text, NULL, NULL) ||
            !(end = strrchr(text, ')')) || sscanf(end, ") %*c %d", &parent) != 1 ||
            parent != getpid())
            continue;
        g_assert_cmpint(found, ==, -1);
        found = g_ascii_strtoll(name, NULL, 10);
    }
    g_assert_cmpint(found, >, 0);
    return found;
}

char *
wrapperFakeHelper(const char *dir, const char *name)
{
    const char *program = g_getenv("VSPTEST_FAKE_HELPER");
    g_autofree char *path = vspTestPath(dir, name);

    g_assert_nonnull(program);
    g_assert_cmpint(symlink(program, path), ==, 0);
    return g_steal_pointer(&path);
}
