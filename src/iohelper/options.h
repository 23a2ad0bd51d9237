/*
 * options.h: the helper's command line
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <glib.h>
#include <vmspool/vsp-filewrapper.h>

#include "engine.h"

typedef struct {
    char *name;
    int fd;
    int statusFd; /* -1: none */
    vspCacheMode cache;
    gboolean strict;
    const vspEngine *engine; /* NULL: choose */
    int buffers;
    gint64 bufferSize;
    guint64 length;
    gboolean sparse;
    guint64 rateLimit; /* bytes per second, 0: none */
    int ioClass;       /* as ioprio_set(2), 0: leave it */
    int ioLevel;
    const vspCompression *compression; /* NULL: none */
    int level;
    gboolean decompress;
    gboolean digest;
    guint64 plainLength; /* bytes at the start that no stage touches */
    char *faultFile;
    char *faultStream;
    gboolean printCapabilities;
    gboolean printVersion;
} vspHelperOptions;

/* FALSE with @error: a sentence for stderr. --help is answered and exits, as GOption does. */
gboolean vspHelperOptionsParse(vspHelperOptions *options, int argc, char **argv, GError **error);

#endif /* OPTIONS_H */
