/*
 * testhelper.c: runs an iohelper between a file and a stream that the test feeds or drains
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testdata.h"
#include "testhelper.h"
#include "testutil.h"
#include "vspfd.h"
#include "vspio.h"
#include "vspspawn.h"

#define CHUNK (128 * 1024)

const char *
vspTestProgram(const char *variable)
{
    const char *path = g_getenv(variable);

    if (!path)
        g_error("%s is not set", variable);
    return path;
}

gboolean
vspTestHelperHas(const char *word)
{
    const char *argv[] = { vspTestProgram("VMSPOOL_IOHELPER"), "--print-capabilities", NULL };
    g_autofree char *out = NULL;
    g_auto(GStrv) lines = NULL;

    g_assert_true(g_spawn_sync(NULL, (char **)argv, NULL, 0, NULL, NULL, &out, NULL, NULL, NULL));
    lines = g_strsplit(out, "\n", -1);
    return g_strv_contains((const char *const *)lines, word);
}

static void
addWords(GPtrArray *argv, const char *const *words)
{
    for (gsize i = 0; words && words[i]; i++)
        g_ptr_array_add(argv, (gpointer)words[i]);
}

/* Starts it. The stream's other end goes to *@ours, that of the channel to *@channel. */
static vspChild *
start(const vspTestHelper *helper, int *ours, int *channel)
{
    g_autoptr(GPtrArray) argv = g_ptr_array_new();
    g_autoptr(GError) error = NULL;
    g_auto(vspFd) theirs = -1;
    g_auto(vspFd) theirChannel = -1;
    int targets[] = { STDIN_FILENO, STDOUT_FILENO, 3 };
    int sources[3];
    int fds[2];
    vspChild *child;

    if (helper->socket)
        g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), ==, 0);
    else
        g_assert_cmpint(pipe2(fds, O_CLOEXEC), ==, 0);
    theirs = fds[helper->saving ? 0 : 1];
    *ours = fds[helper->saving ? 1 : 0];
    if (helper->nonBlocking)
        g_assert_cmpint(vspFdSetNonBlocking(theirs, TRUE), ==, 0);

    addWords(argv, helper->before);
    g_ptr_array_add(
        argv, (gpointer)(helper->program ? helper->program : vspTestProgram("VMSPOOL_IOHELPER")));
    if (helper->channel) {
        g_assert_cmpint(vspStatusPair(channel, &theirChannel), ==, 0);
        g_ptr_array_add(argv, (gpointer) "--status-fd=3");
    }
    addWords(argv, helper->options);
    g_ptr_array_add(argv, (gpointer)(helper->name ? helper->name : "NAME"));
    g_ptr_array_add(argv, (gpointer)(helper->saving ? "1" : "0"));
    g_ptr_array_add(argv, NULL);

    sources[0] = helper->saving ? theirs : helper->file;
    sources[1] = helper->saving ? helper->file : theirs;
    sources[2] = theirChannel;
    child = vspChildSpawn((const char *const *)argv->pdata, NULL, 0, sources, targets,
                          helper->channel ? 3 : 2, &error);
    g_assert_no_error(error);
    return child;
}

/* Until all is in, or the helper does not take it. */
static void
feed(int fd, guint64 length, vspTestOutcome *outcome)
{
    g_autofree char *buf = g_malloc(CHUNK);

    while (outcome->moved < length) {
        gsize len = MIN(CHUNK, length - outcome->moved);
        ssize_t n;

        vspTestFill(buf, len, outcome->moved);
        n = write(fd, buf, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return;
        outcome->moved += n;
    }
}

static void
drain(int fd, guint64 offset, vspTestOutcome *outcome)
{
    g_autofree char *buf = g_malloc(CHUNK);
    ssize_t n;

    while ((n = read(fd, buf, CHUNK)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return;
        if (vspTestCompare(buf, n, offset + outcome->moved) < (gsize)n)
            outcome->same = FALSE;
        outcome->moved += n;
    }
}

static void
receiveVerdict(int channel, vspTestOutcome *outcome)
{
    vspStatusRecord record;
    int rc;

    while ((rc = vspStatusReceive(channel, &record, NULL)) >= 0) {
        if (rc == 0)
            g_assert_cmpint(vspPollOne(channel, POLLIN, vspTestDeadline()), >, 0);
        else if (record.header.type == VSP_STATUS_VERDICT) {
            outcome->verdict = record.verdict;
            outcome->haveVerdict = TRUE;
        }
    }
}

void
vspTestHelperRun(const vspTestHelper *helper, vspTestOutcome *outcome)
{
    g_auto(vspFd) ours = -1;
    g_auto(vspFd) channel = -1;
    g_autoptr(vspChild) child = NULL;
    int status = 0;

    *outcome = (vspTestOutcome){ .same = TRUE };
    child = start(helper, &ours, &channel);
    if (helper->saving)
        feed(ours, helper->length, outcome);
    else
        drain(ours, helper->offset, outcome);
    vspFdClose(&ours);
    if (channel >= 0)
        receiveVerdict(channel, outcome);
    if (vspChildWait(child, vspTestDeadline(), &status) != VSP_CHILD_EXITED)
        g_error("the helper did not end");
    outcome->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    outcome->errors = vspChildGetStderr(child);
}

void
vspTestOutcomeClear(vspTestOutcome *outcome)
{
    g_clear_pointer(&outcome->errors, g_free);
}
