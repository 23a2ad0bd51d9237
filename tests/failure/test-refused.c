/*
 * test-refused.c: hosts and sandboxes that refuse a system call: the work is done all the same, and
 * the statistics say how
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <glib/gstdio.h>

#include "testdata.h"
#include "testdeny.h"
#include "testhelper.h"
#include "testutil.h"
#include "vspfd.h"
#include "vspio.h"

#define BUFFER 65536
#define LENGTH (10 * BUFFER + 777)

#ifndef RWF_DONTCACHE
#define RWF_DONTCACHE 0x80
#endif
#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif

typedef struct {
    long number;
    vspTestCondition condition;
    int errnum;
    vspTestCondition another;
} Denial;

typedef struct {
    const char *name;
    Denial denials[3];
    gboolean nobody; /* as a user without rights, who may lock no memory */
    const char *options[3];
    gboolean saving;
    /* What comes of it. */
    const char *sentence; /* NULL: it works */
    const char *engine;   /* NULL: any */
    int cacheMode;        /* -1: any */
    const char *notice;   /* NULL: any */
    guint32 flagsSet, flagsClear;
} Row;

/* clang-format off */
#define ALWAYS { 0, 0, 0 }
#define ANY_CACHE (-1)

#define REGISTERED VSP_STATISTICS_REGISTERED_BUFFERS
#define NO_URING VSP_STATISTICS_NO_URING
#define NO_DONTCACHE "kernel or file system lack RWF_DONTCACHE"
#define NO_DIRECT "the file system refuses direct I/O"

/* Asking for flags leaves anything in the argument that is one of flags to set. */
#define SET_DIRECT { SYS_fcntl, { 2, O_DIRECT, O_DIRECT }, EINVAL, { 1, G_MAXUINT32, F_SETFL } }
#define WRITE_DONTCACHE { SYS_pwritev2, { 5, RWF_DONTCACHE, RWF_DONTCACHE }, EOPNOTSUPP }
#define READ_DONTCACHE { SYS_preadv2, { 5, RWF_DONTCACHE, RWF_DONTCACHE }, EOPNOTSUPP }

#define DENY_URING { { SYS_io_uring_setup, ALWAYS, EPERM } }
#define DENY_DIRECT { SET_DIRECT }
#define DENY_DONTCACHE { WRITE_DONTCACHE, READ_DONTCACHE }
#define DENY_VECTORS { { SYS_pwritev2, ALWAYS, ENOSYS }, { SYS_preadv2, ALWAYS, ENOSYS } }
#define DENY_THREADS { { SYS_clone3, ALWAYS, ENOSYS }, { SYS_clone, ALWAYS, EAGAIN } }

static const Row rows[] = {
    /* Nothing is refused: what the others are compared with. */
    { "nothing/save", { { 0 } }, FALSE, { "--cache=direct" }, TRUE,
      NULL, "uring", VSP_CACHE_DIRECT, "", REGISTERED, NO_URING },
    { "nothing/restore", { { 0 } }, FALSE, { "--cache=direct" }, FALSE,
      NULL, "uring", VSP_CACHE_DIRECT, "", REGISTERED, NO_URING },

    { "io_uring/save", DENY_URING, FALSE, { "--cache=direct" }, TRUE,
      NULL, "threads", VSP_CACHE_DIRECT, NULL, NO_URING, REGISTERED },
    { "io_uring/restore", DENY_URING, FALSE, { "--cache=direct" }, FALSE,
      NULL, "threads", VSP_CACHE_DIRECT, NULL, NO_URING, REGISTERED },
    { "io_uring/no-such-call", { { SYS_io_uring_setup, ALWAYS, ENOSYS } }, FALSE, { "--cache=direct" }, TRUE,
      NULL, "threads", VSP_CACHE_DIRECT, NULL, NO_URING, REGISTERED },
    { "io_uring/no-memory", { { SYS_io_uring_setup, ALWAYS, ENOMEM } }, FALSE, { "--cache=direct" }, TRUE,
      NULL, "threads", VSP_CACHE_DIRECT, NULL, NO_URING, REGISTERED },
    { "io_uring/asked-for", DENY_URING, FALSE, { "--cache=direct", "--engine=uring" }, TRUE,
      "cannot set up the transfer of 'NAME' (uring): Operation not permitted", NULL, ANY_CACHE, NULL, 0, 0 },
    { "io_uring/registration", { { SYS_io_uring_register, ALWAYS, ENOMEM } }, FALSE, { "--cache=direct" },
      TRUE, NULL, "uring", VSP_CACHE_DIRECT, NULL, 0, NO_URING | REGISTERED },

    { "memlock/save", { { 0 } }, TRUE, { "--cache=direct" }, TRUE,
      NULL, NULL, VSP_CACHE_DIRECT, NULL, 0, REGISTERED },
    { "memlock/restore", { { 0 } }, TRUE, { "--cache=direct" }, FALSE,
      NULL, NULL, VSP_CACHE_DIRECT, NULL, 0, REGISTERED },

    { "dontcache/save", DENY_DONTCACHE, FALSE, { "--cache=dontcache" }, TRUE,
      NULL, "sync", VSP_CACHE_PACED, NO_DONTCACHE, 0, 0 },
    { "dontcache/restore", DENY_DONTCACHE, FALSE, { "--cache=dontcache", "--engine=sync" }, FALSE,
      NULL, NULL, VSP_CACHE_PACED, NO_DONTCACHE, 0, 0 },
    { "dontcache/save-by-threads", DENY_DONTCACHE, FALSE, { "--cache=dontcache", "--engine=threads" }, TRUE,
      NULL, "threads", VSP_CACHE_PACED, NO_DONTCACHE, 0, 0 },
    { "dontcache/strict", DENY_DONTCACHE, FALSE, { "--cache=dontcache", "--strict" }, TRUE,
      "cache mode refused for 'NAME': " NO_DONTCACHE ": Operation not supported", NULL, ANY_CACHE, NULL, 0, 0 },
    { "dontcache/strict-restore", DENY_DONTCACHE, FALSE, { "--cache=dontcache", "--engine=sync", "--strict" }, FALSE,
      "cache mode refused for 'NAME': " NO_DONTCACHE ": Operation not supported", NULL, ANY_CACHE, NULL, 0, 0 },

    { "direct/save", DENY_DIRECT, FALSE, { "--cache=direct" }, TRUE,
      NULL, NULL, ANY_CACHE, NO_DIRECT, 0, 0 },
    { "direct/restore", DENY_DIRECT, FALSE, { "--cache=direct" }, FALSE,
      NULL, NULL, ANY_CACHE, NO_DIRECT, 0, 0 },
    { "direct/strict", DENY_DIRECT, FALSE,
      { "--cache=direct", "--strict" }, TRUE,
      "cache mode refused for 'NAME': " NO_DIRECT ": Invalid argument", NULL, ANY_CACHE, NULL, 0, 0 },
    { "direct/and-dontcache",
      { SET_DIRECT, WRITE_DONTCACHE }, FALSE, { "--cache=direct" }, TRUE, NULL, "sync", VSP_CACHE_PACED, NO_DIRECT, 0, 0 },
    { "alignment-unknown", { { SYS_statx, ALWAYS, ENOSYS } }, FALSE, { "--cache=direct" }, TRUE,
      NULL, "uring", VSP_CACHE_DIRECT, "", 0, 0 },

    /* Before Linux 4.6, or in a sandbox that does not know them. */
    { "preadv2/save", DENY_VECTORS, FALSE, { "--engine=sync" }, TRUE, NULL, "sync", ANY_CACHE, NULL, 0, 0 },
    { "preadv2/save-dontcache", DENY_VECTORS, FALSE, { "--engine=sync", "--cache=dontcache" }, TRUE,
      NULL, "sync", VSP_CACHE_PACED, NO_DONTCACHE, 0, 0 },
    { "preadv2/restore", DENY_VECTORS, FALSE, { "--engine=threads" }, FALSE,
      NULL, "threads", ANY_CACHE, NULL, 0, 0 },

    { "threads/save", DENY_THREADS, FALSE, { "--engine=threads" }, TRUE,
      "cannot set up the transfer of 'NAME' (a thread): Resource temporarily unavailable",
      NULL, ANY_CACHE, NULL, 0, 0 },

    { "pacing/range", { { SYS_sync_file_range, ALWAYS, ENOSYS } }, FALSE, { "--cache=paced" }, TRUE,
      NULL, "sync", VSP_CACHE_PACED, NULL, 0, 0 },
    { "pacing/advice", { { SYS_fadvise64, ALWAYS, ENOSYS } }, FALSE, { "--cache=paced" }, FALSE,
      NULL, NULL, VSP_CACHE_PACED, NULL, 0, 0 },
    { "cachestat", { { SYS_cachestat, ALWAYS, ENOSYS } }, FALSE, { "--cache=cached" }, FALSE,
      NULL, NULL, VSP_CACHE_CACHED, NULL, 0, 0 },
    { "sendfile", { { SYS_sendfile, ALWAYS, EINVAL }, { SYS_splice, ALWAYS, EINVAL } }, FALSE,
      { "--cache=cached", "--engine=zerocopy" }, FALSE, NULL, NULL, VSP_CACHE_CACHED, NULL, 0, 0 },
    { "close_range", { { SYS_close_range, ALWAYS, ENOSYS } }, FALSE, { NULL }, TRUE,
      NULL, NULL, ANY_CACHE, NULL, 0, 0 },
    { "huge-pages", { { SYS_madvise, { 2, G_MAXUINT32, MADV_HUGEPAGE }, EINVAL } }, FALSE, { NULL }, TRUE,
      NULL, NULL, ANY_CACHE, NULL, 0, 0 },
};
/* clang-format on */

/* What this program does as the row's --refuse: goes on as the helper, with less allowed. */
static int
refuse(const Row *row, char **argv)
{
    if (row->nobody) {
        struct rlimit none = { 0, 0 };

        if (setrlimit(RLIMIT_MEMLOCK, &none) < 0)
            return 125;
        vspTestBecomeNobody();
    }
    for (guint i = 0; i < G_N_ELEMENTS(row->denials) && row->denials[i].errnum; i++) {
        const Denial *d = &row->denials[i];

        if (!vspTestDenyIf(d->number, (vspTestCondition[]){ d->condition, d->another }, 2,
                           d->errnum))
            return 125;
    }
    /* To look for leaks takes system calls too. */
    g_setenv("ASAN_OPTIONS", "detect_leaks=0", TRUE);
    execv(argv[0], argv);
    return 126;
}

/* Where any user can run it: the build may be in a folder that others can't enter. */
static char *
copyHelper(const char *dir)
{
    g_autofree char *path = vspTestPath(dir, "helper");
    g_autofree char *bytes = NULL;
    gsize len;
    g_autoptr(GError) error = NULL;

    g_file_get_contents(vspTestProgram("VMSPOOL_IOHELPER"), &bytes, &len, &error);
    g_assert_no_error(error);
    g_file_set_contents(path, bytes, len, &error);
    g_assert_no_error(error);
    g_assert_cmpint(g_chmod(path, 0755), ==, 0);
    return g_steal_pointer(&path);
}

static void
assertStatistics(const Row *row, const vspStatusStatistics *s)
{
    if (row->engine)
        g_assert_cmpstr(s->engine, ==, row->engine);
    if (row->cacheMode >= 0)
        g_assert_cmpint(s->cacheMode, ==, row->cacheMode);
    if (row->notice)
        g_assert_cmpstr(s->notice, ==, row->notice);
    g_assert_cmphex(s->flags & row->flagsSet, ==, row->flagsSet);
    g_assert_cmphex(s->flags & row->flagsClear, ==, 0);
}

static void
run(gconstpointer opaque)
{
    const Row *row = opaque;
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autofree char *path = vspTestPath(dir, "file");
    g_autofree char *program = copyHelper(dir);
    g_autofree char *index = g_strdup_printf("%d", (int)(row - rows));
    const char *before[] = { "/proc/self/exe", "--refuse", index, NULL };
    const char *options[] = { "--buffers=3",   "--buffer-size=65536", row->options[0],
                              row->options[1], row->options[2],       NULL };
    vspTestHelper helper = { .program = program,
                             .before = before,
                             .options = options,
                             .channel = TRUE,
                             .socket = TRUE,
                             .saving = row->saving,
                             .length = LENGTH };
    g_auto(vspTestOutcome) outcome = { 0 };
    g_autofree char *data = g_malloc(LENGTH + 1);
    g_auto(vspFd) fd = -1;

    if (row->nobody && geteuid() != 0) {
        vspTestSkip("needs root, to give it up");
        return;
    }
    vspTestFill(data, LENGTH, 0);
    if (!row->saving)
        g_assert_true(g_file_set_contents(path, data, LENGTH, NULL));
    fd = vspTestOpen(path, row->saving ? O_WRONLY | O_CREAT : O_RDONLY);
    helper.file = fd;
    vspTestHelperRun(&helper, &outcome);
    g_assert_cmpstr(outcome.errors, ==, "");
    g_assert_true(outcome.haveVerdict);

    if (row->sentence) {
        g_autoptr(GError) error = NULL;

        g_assert_false(outcome.verdict.ok);
        vspStatusVerdictToError(&outcome.verdict, "NAME", &error);
        g_assert_cmpstr(error->message, ==, row->sentence);
        g_assert_cmpint(outcome.status, ==, 1);
        return;
    }
    if (!outcome.verdict.ok) {
        g_autoptr(GError) error = NULL;

        vspStatusVerdictToError(&outcome.verdict, "NAME", &error);
        g_error("%s", error->message);
    }
    g_assert_cmpint(outcome.status, ==, 0);
    g_assert_cmpuint(outcome.moved, ==, LENGTH);
    g_assert_true(outcome.same);
    if (row->saving) {
        g_auto(vspFd) in = vspTestOpen(path, O_RDONLY);

        g_assert_cmpint(vspReadFull(in, data, LENGTH + 1), ==, LENGTH);
        vspTestAssertData(data, LENGTH, 0);
    }
    assertStatistics(row, &outcome.verdict.statistics);
}

int
main(int argc, char **argv)
{
    if (argc > 3 && g_str_equal(argv[1], "--refuse"))
        return refuse(&rows[atoi(argv[2])], argv + 3);
    vspTestInit(&argc, &argv);
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *path = NULL;

        /* A build without io_uring has nothing to be refused. */
        if (!vspTestHelperHas("engine-uring") &&
            (g_strcmp0(rows[i].engine, "uring") == 0 || g_str_has_prefix(rows[i].name, "io_uring")))
            continue;
        path = g_strdup_printf("/refused/%s", rows[i].name);
        vspTestAddData(path, &rows[i], run);
    }
    return vspTestRun();
}
