/*
 * progress.c: a line on the terminal that tells how far it has come
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <glib/gi18n.h>
#include <unistd.h>

#include "tool.h"

struct _vspToolProgress {
    const char *verb;
    gboolean shown; /* there is a terminal, and the user wants to see it */
    gboolean dirty; /* a line is on it */
    gint64 began;   /* when bytes began to move, microseconds */
};

vspToolProgress *
vspToolProgressNew(const char *verb, gboolean quiet)
{
    vspToolProgress *p = g_new0(vspToolProgress, 1);

    p->verb = verb;
    p->shown = !quiet && isatty(STDERR_FILENO);
    return p;
}

static char *
transferText(const vspToolProgress *p, const vspProgress *progress)
{
    guint64 done = MAX(progress->bytesIn, progress->bytesOut);
    guint64 total = progress->bytesTotal;
    double seconds = (g_get_monotonic_time() - p->began) / 1e6;
    double rate = seconds > 0 ? done / seconds : 0;
    g_autofree char *size = g_format_size_full(done, G_FORMAT_SIZE_IEC_UNITS);
    g_autofree char *speed = g_format_size_full(rate, G_FORMAT_SIZE_IEC_UNITS);
    g_autofree char *whole = NULL;
    int left;

    if (total == 0 || rate <= 0)
        return g_strdup_printf("%s  %s/s", size, speed);
    /* Total is an estimate that may turn out too small: 100 % is for what is durable. */
    whole = g_format_size_full(MAX(total, done), G_FORMAT_SIZE_IEC_UNITS);
    left = total > done ? (total - done) / rate : 0;
    return g_strdup_printf(_("%s of %s  %d %%  %s/s  %d:%02d left"), size, whole,
                           (int) MIN(done * 100.0 / total, 99), speed, left / 60, left % 60);
}

void
vspToolProgressUpdate(const vspProgress *progress, gpointer opaque)
{
    vspToolProgress *p = opaque;
    g_autofree char *text = NULL;

    if (!p->shown)
        return;
    if (p->began == 0 && progress->stage >= VSP_STAGE_TRANSFER)
        p->began = g_get_monotonic_time();

    switch (progress->stage) {
    case VSP_STAGE_SETUP:
        text = g_strdup(_("preparing"));
        break;
    case VSP_STAGE_TRANSFER:
        text = transferText(p, progress);
        break;
    case VSP_STAGE_SYNC:
        text = g_strdup(_("flushing to the disk"));
        break;
    case VSP_STAGE_DONE:
    default:
        return;
    }
    /* Back to the start of the line, and clear what is right of the text. */
    g_printerr("\r%s  %s\033[K", p->verb, text);
    p->dirty = TRUE;
}

void
vspToolProgressFree(vspToolProgress *p)
{
    if (!p)
        return;
    if (p->dirty)
        g_printerr("\r\033[K");
    g_free(p);
}
