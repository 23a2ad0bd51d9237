/*
 * editor.c: a text in the user's editor
 *
 * The text may have secrets in it: it lies in a folder of its own that nobody else can enter, so
 * that also what the editor writes beside it is kept from others.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gi18n.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "tool.h"

struct _vspToolEditor {
    char *folder;
    char *path;
};

static gboolean
writeText(const char *path, const char *text, GError **error)
{
    gsize len = strlen(text);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    gboolean ok = file && fwrite(text, 1, len, file) == len;
    int errnum = errno;

    if (file && fclose(file) != 0) {
        errnum = errno;
        ok = FALSE;
    }
    if (!ok)
        g_set_error(error, VSP_ERROR, VSP_ERROR_IO, _("cannot write '%s': %s"), path,
                    g_strerror(errnum));
    return ok;
}

vspToolEditor *
vspToolEditorNew(const char *text, GError **error)
{
    g_autoptr(vspToolEditor) editor = g_new0(vspToolEditor, 1);
    g_autoptr(GError) failure = NULL;

    editor->folder = g_dir_make_tmp("vmspool-XXXXXX", &failure);
    if (!editor->folder) {
        g_set_error_literal(error, VSP_ERROR, VSP_ERROR_IO, failure->message);
        return NULL;
    }
    editor->path = g_build_filename(editor->folder, "domain.xml", NULL);
    return writeText(editor->path, text, error) ? g_steal_pointer(&editor) : NULL;
}

/* An editor that is started ignores nothing, whatever we do. */
static void
resetSignals(gpointer opaque G_GNUC_UNUSED)
{
    sigset_t none;

    signal(SIGINT, SIG_DFL);
    signal(SIGQUIT, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

char *
vspToolEditorRun(vspToolEditor *editor, GError **error)
{
    const char *visual = g_getenv("VISUAL");
    const char *other = g_getenv("EDITOR");
    const char *command = visual && *visual ? visual : other && *other ? other : "vi";
    /* It is a command line and not a name: "emacs -nw". */
    g_autofree char *line = g_strconcat(command, " \"$1\"", NULL);
    const char *argv[] = { "/bin/sh", "-c", line, "sh", editor->path, NULL };
    g_autoptr(GError) failure = NULL;
    void (*interrupt)(int), (*quit)(int);
    gboolean ok;
    int status;

    /* Ctrl-C in the editor is meant for the editor. */
    interrupt = signal(SIGINT, SIG_IGN);
    quit = signal(SIGQUIT, SIG_IGN);
    ok = g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_CHILD_INHERITS_STDIN, resetSignals, NULL,
                      NULL, NULL, &status, &failure) &&
         g_spawn_check_exit_status(status, &failure);
    signal(SIGINT, interrupt);
    signal(SIGQUIT, quit);
    if (!ok) {
        g_set_error(error, VSP_ERROR, VSP_ERROR_FAILED, _("the editor '%s' failed: %s"), command,
                    failure->message);
        return NULL;
    }
    return vspToolReadText(editor->path, error);
}

const char *
vspToolEditorKeep(vspToolEditor *editor)
{
    g_clear_pointer(&editor->folder, g_free);
    return editor->path;
}

void
vspToolEditorFree(vspToolEditor *editor)
{
    if (!editor)
        return;
    if (editor->folder) {
        g_autoptr(GDir) dir = g_dir_open(editor->folder, 0, NULL);
        const char *name;

        /* With backups and the like of the editor's. */
        while (dir && (name = g_dir_read_name(dir))) {
            g_autofree char *path = g_build_filename(editor->folder, name, NULL);

            g_unlink(path);
        }
        g_rmdir(editor->folder);
    }
    g_free(editor->folder);
    g_free(editor->path);
    g_free(editor);
}
