/*
 * test-faults.c: the failure table: what goes wrong at either end, for each engine, cache mode and
 * direction
 *
 * A row either recovers, and then every byte is where it belongs, or it fails with exactly that
 * sentence. None may end well with other bytes. The table is printed as it is gone through.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "testdata.h"
#include "testhelper.h"
#include "testutil.h"
#include "vspfd.h"
#include "vspio.h"

#define BUFFER 65536
/* Several times round the ring, and a tail that is not aligned. */
#define LENGTH (10 * BUFFER + 777)

#define RECOVERS NULL

typedef struct {
    const char *option; /* --fault-file or --fault-stream */
    const char *fault;
    /* In direct mode and in cached mode: RECOVERS, or the sentence, * for a number that depends on
     * what was under way. */
    const char *direct;
    const char *cached;
} Row;

#define FILE_FAULT "--fault-file="
#define STREAM_FAULT "--fault-stream="

#define SAME(text) text, text
#define WRITE_FAILS(text) SAME("cannot write 'NAME' at offset *: " text)
#define READ_FAILS(text) SAME("cannot read 'NAME' at offset *: " text)
#define EVERYWHERE SAME(RECOVERS)

static const Row saving[] = {
    { FILE_FAULT, "write@3=short", EVERYWHERE },
    { FILE_FAULT, "write@1=short,write@4=short,write@5=short", EVERYWHERE },
    /* Less than a block each time: no way to go on with direct I/O. */
    { FILE_FAULT, "write@3+=short", "cannot write 'NAME' at offset *: Input/output error",
      RECOVERS },
    { FILE_FAULT, "write@3=ENOSPC", WRITE_FAILS("No space left on device") },
    { FILE_FAULT, "write@3=EDQUOT", WRITE_FAILS("Disk quota exceeded") },
    { FILE_FAULT, "write@3=EFBIG", WRITE_FAILS("File too large") },
    { FILE_FAULT, "write@3=EIO", WRITE_FAILS("Input/output error") },
    { FILE_FAULT, "write@3=ENOMEM", WRITE_FAILS("Cannot allocate memory") },
    { FILE_FAULT, "write@3=EROFS", WRITE_FAILS("Read-only file system") },
    { FILE_FAULT, "write@3=EBADF", WRITE_FAILS("Bad file descriptor") },
    { FILE_FAULT, "write@3=EPIPE", WRITE_FAILS("Broken pipe") },
    { FILE_FAULT, "write@1=EIO", WRITE_FAILS("Input/output error") },
    { FILE_FAULT, "write@11=EIO", WRITE_FAILS("Input/output error") },
    { FILE_FAULT, "write@3=EINTR", EVERYWHERE },
    { FILE_FAULT, "write@3=EAGAIN", EVERYWHERE },
    { FILE_FAULT, "write@3+=EINTR", WRITE_FAILS("Interrupted system call") },
    { FILE_FAULT, "write@3+=EAGAIN", WRITE_FAILS("Resource temporarily unavailable") },
    /* A file system that took O_DIRECT and refuses the I/O: the cache takes over. */
    { FILE_FAULT, "write@1=EINVAL", RECOVERS, "cannot write 'NAME' at offset *: Invalid argument" },
    { FILE_FAULT, "write@3=EINVAL", RECOVERS, "cannot write 'NAME' at offset *: Invalid argument" },
    { FILE_FAULT, "write@3=EOPNOTSUPP", RECOVERS,
      "cannot write 'NAME' at offset *: Operation not supported" },
    { FILE_FAULT, "write@3=EINVAL,write@5=ENOSPC",
      "cannot write 'NAME' at offset *: No space left on device",
      "cannot write 'NAME' at offset *: Invalid argument" },
    { FILE_FAULT, "write@3+=EINVAL", WRITE_FAILS("Invalid argument") },
    { FILE_FAULT, "truncate@1=EIO",
      SAME("cannot set the length of 'NAME' to 656137: Input/output error") },
    { FILE_FAULT, "truncate@1=ENOSPC",
      SAME("cannot set the length of 'NAME' to 656137: No space left on device") },
    { FILE_FAULT, "sync@1=EIO", SAME("cannot sync 'NAME' to the disk: Input/output error") },
    { FILE_FAULT, "sync@1=ENOSPC",
      SAME("cannot sync 'NAME' to the disk: No space left on device") },
    { FILE_FAULT, "sync@1=EDQUOT", SAME("cannot sync 'NAME' to the disk: Disk quota exceeded") },
    { FILE_FAULT, "sync@1=EROFS", SAME("cannot sync 'NAME' to the disk: Read-only file system") },
    { FILE_FAULT, "close@1=EIO", SAME("cannot close 'NAME': Input/output error") },
    { FILE_FAULT, "close@1=EDQUOT", SAME("cannot close 'NAME': Disk quota exceeded") },
    /* The first failure counts, and not what comes of it. */
    { FILE_FAULT, "write@3=ENOSPC,sync@1=EIO,close@1=EIO", WRITE_FAILS("No space left on device") },
    { FILE_FAULT, "sync@1=ENOSPC,close@1=EIO",
      SAME("cannot sync 'NAME' to the disk: No space left on device") },
    { STREAM_FAULT, "read@3=short", EVERYWHERE },
    { STREAM_FAULT, "read@1+=short", EVERYWHERE },
    { STREAM_FAULT, "read@3=EINTR", EVERYWHERE },
    { STREAM_FAULT, "read@3=EAGAIN", EVERYWHERE },
    { STREAM_FAULT, "read@3=EIO",
      SAME("cannot read the stream for 'NAME' at offset *: Input/output error") },
    { STREAM_FAULT, "read@1=EIO",
      SAME("cannot read the stream for 'NAME' at offset 0: Input/output error") },
    { STREAM_FAULT, "read@3=ENOMEM",
      SAME("cannot read the stream for 'NAME' at offset *: Cannot allocate memory") },
    { STREAM_FAULT, "close@1=EIO", EVERYWHERE },
};

static const Row restoring[] = {
    { FILE_FAULT, "read@3=short", EVERYWHERE },
    { FILE_FAULT, "read@1=short,read@4=short,read@5=short", EVERYWHERE },
    { FILE_FAULT, "read@3+=short", EVERYWHERE },
    { FILE_FAULT, "read@3=EIO", READ_FAILS("Input/output error") },
    { FILE_FAULT, "read@1=EIO", SAME("cannot read 'NAME' at offset *: Input/output error") },
    { FILE_FAULT, "read@3=ENOMEM", READ_FAILS("Cannot allocate memory") },
    { FILE_FAULT, "read@3=EROFS", READ_FAILS("Read-only file system") },
    { FILE_FAULT, "read@3=EINTR", EVERYWHERE },
    { FILE_FAULT, "read@3=EAGAIN", EVERYWHERE },
    { FILE_FAULT, "read@3+=EINTR", READ_FAILS("Interrupted system call") },
    { FILE_FAULT, "read@3=EINVAL", RECOVERS, "cannot read 'NAME' at offset *: Invalid argument" },
    { FILE_FAULT, "read@3=EOPNOTSUPP", RECOVERS,
      "cannot read 'NAME' at offset *: Operation not supported" },
    { FILE_FAULT, "read@3+=EINVAL", READ_FAILS("Invalid argument") },
    /* What was read is read. */
    { FILE_FAULT, "close@1=EIO", EVERYWHERE },
    { STREAM_FAULT, "write@3=short", EVERYWHERE },
    { STREAM_FAULT, "write@1+=short", EVERYWHERE },
    { STREAM_FAULT, "write@3=EINTR", EVERYWHERE },
    { STREAM_FAULT, "write@3=EAGAIN", EVERYWHERE },
    { STREAM_FAULT, "write@3=EIO",
      SAME("cannot write the stream from 'NAME' at offset *: Input/output error") },
    { STREAM_FAULT, "write@3=EPIPE", SAME("the reader of 'NAME' closed its end after * bytes") },
};

typedef struct {
    const Row *row;
    const char *engine;
    gboolean saving;
    gboolean isDirect;
    gboolean strict;
    const char *expected;
} Case;

/* The numbers of @text replaced by *, where @pattern has one. */
static gboolean
matches(const char *text, const char *pattern)
{
    return g_pattern_match_simple(pattern, text) && !strchr(text, '\n');
}

/* Not the end of the program: one wants to see the whole table. */
static void fail(const char *format, ...) G_GNUC_PRINTF(1, 2);

static void
fail(const char *format, ...)
{
    g_autofree char *text = NULL;
    va_list args;

    va_start(args, format);
    text = g_strdup_vprintf(format, args);
    va_end(args);
    g_test_message("WRONG: %s", text);
    g_test_fail();
}

static void
assertOutcome(const Case *test, const vspTestOutcome *outcome)
{
    g_autofree char *sentence = NULL;

    /* What came out until then was right. */
    if (!outcome->same)
        fail("other bytes came out");
    if (!test->expected) {
        if (outcome->status != 0 || *outcome->errors || outcome->moved != LENGTH)
            fail("should recover");
        return;
    }
    sentence = g_strdup_printf("vmspool_iohelper: %s", test->expected);
    if (outcome->status != 1 || !matches(outcome->errors, sentence))
        fail("status %d; should be '%s'", outcome->status, sentence);
}

static void
run(gconstpointer opaque)
{
    const Case *test = opaque;
    g_auto(vspTestDir) dir = vspTestDirectory();
    g_autofree char *path = vspTestPath(dir, "file");
    g_auto(vspFd) fd = -1;
    g_autofree char *engine = g_strdup_printf("--engine=%s", test->engine);
    g_autofree char *fault = g_strconcat(test->row->option, test->row->fault, NULL);
    const char *options[] = { "--buffers=3", "--buffer-size=65536",
                              engine,        test->isDirect ? "--cache=direct" : "--cache=cached",
                              fault,         test->strict ? "--strict" : NULL,
                              NULL };
    vspTestHelper helper = { .program = vspTestProgram("VSPTEST_FAULT_HELPER"),
                             .options = options,
                             .saving = test->saving,
                             .length = LENGTH };
    g_auto(vspTestOutcome) outcome = { 0 };
    g_autofree char *data = g_malloc(LENGTH + 1);

    vspTestFill(data, LENGTH, 0);
    if (!test->saving) {
        g_autoptr(GError) error = NULL;

        g_file_set_contents(path, data, LENGTH, &error);
        g_assert_no_error(error);
    }
    fd = vspTestOpen(path, test->saving ? O_WRONLY | O_CREAT : O_RDONLY);
    helper.file = fd;
    vspTestHelperRun(&helper, &outcome);
    g_test_message("%-7s %-8s %-6s %s%-40s %s", test->saving ? "save" : "restore", test->engine,
                   test->isDirect ? "direct" : "cached", test->row->option + 8, test->row->fault,
                   outcome.status == 0 ? "recovers"
                                       : outcome.errors + strlen("vmspool_iohelper: "));
    assertOutcome(test, &outcome);

    /* Exit 0 is a promise: on the disk is what went in. */
    if (outcome.status == 0 && test->saving) {
        g_auto(vspFd) in = vspTestOpen(path, O_RDONLY);

        if (vspReadFull(in, data, LENGTH + 1) != LENGTH || vspTestCompare(data, LENGTH, 0) < LENGTH)
            fail("other bytes are in the file");
    }
}

static void
addCase(const Row *row, const char *engine, gboolean saving_, gboolean isDirect)
{
    Case *test = g_new0(Case, 1);
    g_autofree char *path = g_strdup_printf(
        "/faults/%s/%s/%s%s%s", saving_ ? "save" : "restore", engine,
        isDirect ? "direct" : "cached", row->option[8] == 'f' ? "/file/" : "/stream/", row->fault);

    test->row = row;
    test->engine = engine;
    test->saving = saving_;
    test->isDirect = isDirect;
    test->expected = isDirect ? row->direct : row->cached;
    vspTestAddOwned(path, test, run);
}

/* Without copying, the file's pages go into the stream past its endpoint, and what can't be done
 * that way is done another way. */
static const Row zerocopy[] = {
    { FILE_FAULT, "read@1=short", EVERYWHERE },
    { FILE_FAULT, "read@1+=short", EVERYWHERE },
    { FILE_FAULT, "read@1=EIO", READ_FAILS("Input/output error") },
    { FILE_FAULT, "read@1=ENOMEM", READ_FAILS("Cannot allocate memory") },
    { FILE_FAULT, "read@1=EINTR", EVERYWHERE },
    { FILE_FAULT, "read@1=EAGAIN", EVERYWHERE },
    { FILE_FAULT, "read@1=EINVAL", EVERYWHERE },
    { FILE_FAULT, "read@1=EOPNOTSUPP,read@4=EIO", READ_FAILS("Input/output error") },
    { FILE_FAULT, "close@1=EIO", EVERYWHERE },
};

/* In strict mode there is no other way. */
static const Row strictly[] = {
    { FILE_FAULT, "write@3=EINVAL",
      SAME("cache mode refused for 'NAME': the file system took O_DIRECT and refused direct I/O: "
           "Invalid "
           "argument") },
    { FILE_FAULT, "write@3=EIO", WRITE_FAILS("Input/output error") },
};

/* A name of any bytes makes one line of text. */
static void
testNames(void)
{
    g_auto(vspFd) full = vspTestOpen("/dev/full", O_WRONLY);
    vspTestHelper helper = {
        .saving = TRUE, .file = full, .length = 5, .name = "two\nlines\x1b \xff"
    };
    g_auto(vspTestOutcome) outcome = { 0 };

    vspTestHelperRun(&helper, &outcome);
    g_assert_cmpint(outcome.status, ==, 1);
    g_assert_cmpstr(outcome.errors, ==,
                    "vmspool_iohelper: cannot write 'two\\nlines\\x1b \xef\xbf\xbd' at offset 0: "
                    "No space left on device");
}

static gboolean
hasEngine(const char *name)
{
    g_autofree char *word = g_strdup_printf("engine-%s", name);

    return vspTestHelperHas(word);
}

int
main(int argc, char **argv)
{
    static const char *const engines[] = { "sync", "threads", "uring" };

    vspTestInit(&argc, &argv);
    for (guint e = 0; e < G_N_ELEMENTS(engines); e++) {
        if (!hasEngine(engines[e]))
            continue;
        for (gboolean isDirect = FALSE; isDirect <= TRUE; isDirect++) {
            for (guint i = 0; i < G_N_ELEMENTS(saving); i++)
                addCase(&saving[i], engines[e], TRUE, isDirect);
            for (guint i = 0; i < G_N_ELEMENTS(restoring); i++)
                addCase(&restoring[i], engines[e], FALSE, isDirect);
        }
        for (guint i = 0; i < G_N_ELEMENTS(strictly); i++) {
            Case *test = g_new0(Case, 1);
            g_autofree char *path =
                g_strdup_printf("/faults/strict/%s/%s", engines[e], strictly[i].fault);

            *test = (Case){ &strictly[i], engines[e], TRUE, TRUE, TRUE, strictly[i].direct };
            vspTestAddOwned(path, test, run);
        }
    }
    for (guint i = 0; i < G_N_ELEMENTS(zerocopy); i++)
        addCase(&zerocopy[i], "zerocopy", FALSE, FALSE);
    vspTestAdd("/faults/names", testNames);
    return vspTestRun();
}
