/*
 * tool.h: what the commands of the tool share
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef TOOL_H
#define TOOL_H

#include <gio/gio.h>
#include <vmspool/vmspool.h>

/* Exit codes; vmspool(1) promises them. */
enum {
    VSP_EXIT_DONE = 0,
    VSP_EXIT_FAILED = 1,       /* nothing changed */
    VSP_EXIT_USAGE = 2,
    VSP_EXIT_IMAGE = 3,        /* the image is not valid */
    VSP_EXIT_NOT_RESTORED = 4, /* the VM could not be put back */
};

/* One per command; argv[0] is the command's name. They return an exit code. */
int vspCmdSave(int argc, char **argv);
int vspCmdRestore(int argc, char **argv);
int vspCmdDump(int argc, char **argv);
int vspCmdInfo(int argc, char **argv);
int vspCmdCopy(int argc, char **argv);
int vspCmdXml(int argc, char **argv);
int vspCmdExtract(int argc, char **argv);
int vspCmdVerify(int argc, char **argv);
int vspCmdSeal(int argc, char **argv);
int vspCmdConvert(int argc, char **argv);

/* The options that say how bytes move, the same in each command. */
typedef struct {
    gboolean bypassCache;
    gboolean strict;
    char *cache;
    char *transport;
    char *engine;
    char *limitRate;
    char *ioPriority;
    gboolean sparse;
} vspToolMove;

/* Options that not each command has. */
enum {
    VSP_TOOL_MOVE_TRANSPORT = (1 << 0), /* the data goes through one */
    VSP_TOOL_MOVE_WRITES = (1 << 1),    /* a file is written */
};

void vspToolMoveAddTo(vspToolMove *move, GOptionContext *context, unsigned int parts);
vspFileWrapperOptions *vspToolMoveToOptions(const vspToolMove *move, GError **error);
void vspToolMoveClear(vspToolMove *move);

/* "500M": bytes, more than none. FALSE if it is no such. */
gboolean vspToolParseSize(const char *text, guint64 *size);

/* A context with the command's summary; parses *argc and *argv (--help is answered and ends the
 * program). FALSE: the mistake is on stderr, exit with VSP_EXIT_USAGE. */
GOptionContext *vspToolContextNew(const char *parameters, const char *summary, const char *description);
gboolean vspToolParse(GOptionContext *context, const char *command, int *argc, char ***argv);

/* A mistake in the command line: the sentence and where to read more. Returns VSP_EXIT_USAGE. */
int vspToolUsage(const char *command, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* Text that may come from an image or from QEMU, as one line that does nothing to a terminal: what is
 * not printable is shown by its number. NULL is "". */
char *vspToolEscape(const char *text);

/* The failure as a sentence on stderr and, with @json, as an object on stdout. Returns the exit code
 * that fits. */
int vspToolFail(const GError *error, gboolean json);
int vspToolExitCode(const GError *error);

/* The same with --json, where there is a report in spite of the failure. */
int vspToolFailWithReport(const GError *error, GVariant *report);

/* A report as a line of JSON on stdout, with "ok": true added. */
void vspToolPrintReport(GVariant *report);

/* vspNoticeFunc: on stderr. */
void vspToolNotice(const char *notice, gpointer opaque);

/* Cancelled by SIGINT, SIGTERM and SIGHUP. Call it before anything that starts a thread; the result
 * is the same each time and belongs to the program. */
GCancellable *vspToolCancellable(void);

/* Progress on a terminal, nothing elsewhere. @verb: "Saving", translated. */
typedef struct _vspToolProgress vspToolProgress;
vspToolProgress *vspToolProgressNew(const char *verb, gboolean quiet);
void vspToolProgressUpdate(const vspProgress *progress, gpointer opaque); /* vspProgressFunc */
void vspToolProgressFree(vspToolProgress *progress); /* wipes the line */

/* "1.5 GiB (1610612736 bytes)"; "1.95 GiB/s"; "0.53 s" */
char *vspToolFormatSize(guint64 bytes);
char *vspToolFormatRate(guint64 bytes, guint64 nanoseconds);
char *vspToolFormatTime(guint64 nanoseconds);

/* A number out of a report, 0 if it is not there; @path is "transfer/sync-ns". */
guint64 vspToolReportNumber(GVariant *report, const char *path);
const char *vspToolReportText(GVariant *report, const char *path); /* owned by @report; NULL */

/* Opens what is read, or written; "-" is the standard stream. -1 with @error. The descriptor lives as
 * long as the program. *@created: the file is ours to remove if the command fails. */
int vspToolOpenEnd(
    const char *path, gboolean output, gboolean force, gboolean *created, GError **error);

/* A file that holds data is not written over unless the user says so. */
gboolean vspToolMayWrite(int fd, const char *path, gboolean force, GError **error);

/* Takes what the file held out of it; refuses if it is @source. */
gboolean vspToolEmpty(int fd, const char *source, const char *path, GError **error);

/* All of the file, "-" is stdin: at most 16 MiB, and no NUL in it. */
char *vspToolReadText(const char *path, GError **error);

/* A text in a file of mode 0600, in the user's editor; what comes back is the text afterwards. */
typedef struct _vspToolEditor vspToolEditor;
vspToolEditor *vspToolEditorNew(const char *text, GError **error);
char *vspToolEditorRun(vspToolEditor *editor, GError **error);
const char *vspToolEditorKeep(vspToolEditor *editor); /* leaves the file, which has this path */
void vspToolEditorFree(vspToolEditor *editor);        /* removes it */

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(vspToolMove, vspToolMoveClear)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(vspToolEditor, vspToolEditorFree)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(vspToolProgress, vspToolProgressFree)

#endif /* TOOL_H */
