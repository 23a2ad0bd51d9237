/*
 * vspio.h: whole reads and writes
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_IO_H
#define VSP_IO_H

#include <glib.h>
#include <sys/types.h>

/* Read until @len bytes or the end. Returns the bytes read, less than @len only at the end; -1 with
 * errno. EINTR is retried; on a non-blocking descriptor EAGAIN is waited for. */
ssize_t vspReadFull(int fd, void *buf, gsize len);
ssize_t vspPreadFull(int fd, void *buf, gsize len, off_t offset);

/* Write all. 0, or -1 with errno. Whether a reader that is gone raises SIGPIPE is up to the process's
 * disposition. */
int vspWriteFull(int fd, const void *buf, gsize len);
int vspPwriteFull(int fd, const void *buf, gsize len, off_t offset);

/* Monotonic deadlines, in microseconds as g_get_monotonic_time(). -1 is "never". */
gint64 vspDeadline(guint milliseconds);

/* poll(2) for one descriptor until @deadline; EINTR retried. Returns revents, 0 at the deadline,
 * -1 with errno. */
int vspPollOne(int fd, short events, gint64 deadline);

#endif /* VSP_IO_H */
