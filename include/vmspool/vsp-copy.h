/*
 * vsp-copy.h: the mover by itself
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_COPY_H
#define VSP_COPY_H

#include <gio/gio.h>
#include <vmspool/vsp-macros.h>
#include <vmspool/vsp-filewrapper.h>

VSP_BEGIN_DECLS

/**
 * vspCopy:
 * @in: read from; borrowed
 * @inName: what messages call it
 * @out: written to; borrowed
 * @outName: what messages call it
 * @options: (nullable): how the bytes move; strictness and cache mode count for a file
 * @progress: (nullable): called from the calling thread
 * @opaque: for @progress
 * @cancellable: (nullable): cancel from any thread
 * @report: (out) (optional) (transfer full): statistics
 * @error: return location
 *
 * Copies from one descriptor to the other by one iohelper that holds both. At least one is a file
 * (or block device); the other a pipe, a socket or whatever can be read or written in order.
 * Success means that a file written to is durable.
 *
 * Returns: 0, or -1 with @error set
 *
 * Since: 0.1
 */
int vspCopy(int in,
            const char *inName,
            int out,
            const char *outName,
            const vspFileWrapperOptions *options,
            vspProgressFunc progress,
            gpointer opaque,
            GCancellable *cancellable,
            GVariant **report,
            GError **error);

VSP_END_DECLS

#endif /* VSP_COPY_H */
