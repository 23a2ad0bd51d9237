/*
 * vspqmp.h: a synchronous client of QEMU's machine monitor
 *
 * One command at a time: send, then wait for the reply with its id. Events that come in between are
 * queued. Each wait ends at the reply, at its deadline, when the cancellable is cancelled, or as
 * soon as the connection is gone. A wait that was given up leaves the connection usable: a reply
 * that comes late is recognised by its id and dropped, and a command that went out in part is
 * completed first.
 *
 * Not thread-safe: one thread uses a client.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_QMP_H
#define VSP_QMP_H

#include <gio/gio.h>

typedef struct _vspQmp vspQmp;

/* How long a command may take that only asks or sets something. QEMU's main loop can be held up by
 * a slow disk for seconds; a larger value makes a hung QEMU harder to notice. Milliseconds. */
#define VSP_QMP_TIMEOUT 30000

/* The same for `stop` and `cont`, which wait for all guest I/O in flight. */
#define VSP_QMP_TIMEOUT_RUN 120000

/* Until the greeting of a monitor that listens. It stays silent while another client is connected.
 */
#define VSP_QMP_TIMEOUT_GREETING 10000

/*
 * Connects to the socket @path and takes the greeting. @cancellable (nullable) counts for
 * everything that follows too, until vspQmpSetCancellable().
 *
 * Errors: VSP_ERROR_NOT_FOUND, VSP_ERROR_ACCESS, VSP_ERROR_IO, VSP_ERROR_TIMED_OUT,
 * VSP_ERROR_QEMU_LOST, VSP_ERROR_QEMU (not QMP), VSP_ERROR_ABORTED
 */
vspQmp *vspQmpOpen(const char *path, GCancellable *cancellable, GError **error);

/* Adopts the connected socket *@fd (consumed, whatever happens) and takes the greeting within
 * @timeout milliseconds. @name is what messages call the peer. */
vspQmp *
vspQmpOpenFd(int *fd, const char *name, guint timeout, GCancellable *cancellable, GError **error);

void vspQmpFree(vspQmp *qmp);

/* Replaces the cancellable; NULL for the part of a job that must not be interrupted. */
void vspQmpSetCancellable(vspQmp *qmp, GCancellable *cancellable);

/* Called when the watched descriptor is readable; must take in what is there. Returns TRUE when
 * there is something the job must look at before it goes on waiting. */
typedef gboolean (*vspQmpWatchFunc)(gpointer opaque);

/* Also watches @fd (borrowed; -1 for none) in each wait. It never interrupts a command: it ends
 * vspQmpWait(), and is not polled again once @func has returned TRUE. */
void vspQmpSetWatch(vspQmp *qmp, int fd, vspQmpWatchFunc func, gpointer opaque);

/* TRUE once the connection has ended or the peer broke the protocol. */
gboolean vspQmpIsLost(const vspQmp *qmp);

/* The socket, to be polled together with others; borrowed. -1 when lost. */
int vspQmpGetFd(const vspQmp *qmp);

/* The process that listened on the socket, 0 if the kernel does not say. */
GPid vspQmpGetPeerPid(const vspQmp *qmp);

/* QEMU's version from the greeting, "7.2.22"; never NULL. */
const char *vspQmpGetVersion(const vspQmp *qmp);

/*
 * Runs @command with @arguments (nullable, a{sv}, consumed if floating) within VSP_QMP_TIMEOUT.
 *
 * Returns: (transfer full): the value of "return", most often a{sv}; NULL with @error:
 * VSP_ERROR_QEMU (QEMU's own words), VSP_ERROR_QEMU_LOST, VSP_ERROR_TIMED_OUT, VSP_ERROR_ABORTED
 */
GVariant *vspQmpExecute(vspQmp *qmp, const char *command, GVariant *arguments, GError **error);

/* The same with a descriptor (borrowed; -1 for none) that rides with the command's first byte, and
 * a time limit in milliseconds. */
GVariant *vspQmpExecuteFull(
    vspQmp *qmp, const char *command, GVariant *arguments, int fd, guint timeout, GError **error);

/* For commands of which only the success counts. 0, or -1 with @error. */
int vspQmpRun(vspQmp *qmp, const char *command, GVariant *arguments, GError **error);

/* The oldest event that was not yet taken, as a whole message (transfer full), or NULL. At most
 * VSP_QMP_EVENTS are kept; the oldest are dropped, because what is newer says more. */
GVariant *vspQmpTakeEvent(vspQmp *qmp);
#define VSP_QMP_EVENTS 256

/* Waits for an event, the watch, or @deadline (vspDeadline()). 1: there is something; 0: deadline;
 * -1 with @error: lost or cancelled. */
int vspQmpWait(vspQmp *qmp, gint64 deadline, GError **error);

/* Takes in what has arrived, without blocking. */
void vspQmpDrain(vspQmp *qmp);

/* Waits for the peer to end the connection. TRUE if it did. Not cancellable. */
gboolean vspQmpWaitEnd(vspQmp *qmp, gint64 deadline);

/* Members of a reply. Strings are valid as long as @dict. */
const char *vspQmpGetString(GVariant *dict, const char *key);
guint64 vspQmpGetNumber(GVariant *dict, const char *key);
gboolean vspQmpGetBoolean(GVariant *dict, const char *key);
GVariant *vspQmpGetDict(GVariant *dict, const char *key); /* (transfer full) (nullable) */
char **vspQmpGetStrings(GVariant *dict, const char *key); /* (transfer full) never NULL */

G_DEFINE_AUTOPTR_CLEANUP_FUNC(vspQmp, vspQmpFree)

#endif /* VSP_QMP_H */
