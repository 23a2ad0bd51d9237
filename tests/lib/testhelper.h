/*
 * testhelper.h: runs an iohelper between a file and a stream that the test feeds or drains
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_TESTHELPER_H
#define VSP_TESTHELPER_H

#include <vmspool/vsp-filewrapper.h>

#include "vspstatus.h"

typedef struct {
    const char *program;        /* NULL: the helper of the build */
    const char *name;           /* of the file, for messages; NULL is "NAME" */
    const char *const *before;  /* words in front of it, up to a NULL; NULL for none */
    const char *const *options; /* the same, behind it */
    gboolean socket;            /* the stream is a socket pair and not a pipe */
    gboolean nonBlocking;       /* the helper's end of it */
    gboolean channel; /* with a status channel, as the library does; else as libvirtd does */
    gboolean saving;  /* into the file; else out of it */
    int file;         /* borrowed */
    guint64 length;   /* saving: bytes to feed */
    guint64 offset;   /* restoring: of testdata.h, that of the first byte to come */
} vspTestHelper;

typedef struct {
    int status;    /* exit status; 128 and more for a signal */
    char *errors;  /* what it wrote to stderr */
    guint64 moved; /* bytes that went in or came out */
    gboolean same; /* restoring: they were those of testdata.h */
    gboolean haveVerdict;
    vspStatusVerdict verdict;
} vspTestOutcome;

/* Runs it to its end. */
void vspTestHelperRun(const vspTestHelper *helper, vspTestOutcome *outcome);
void vspTestOutcomeClear(vspTestOutcome *outcome);

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(vspTestOutcome, vspTestOutcomeClear)

/* Is @word among the capabilities that the helper of the build prints? */
gboolean vspTestHelperHas(const char *word);

/* Paths of the build, from the environment that meson sets. */
const char *vspTestProgram(const char *variable);

#endif /* VSP_TESTHELPER_H */
