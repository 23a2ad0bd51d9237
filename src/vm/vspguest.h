/*
 * vspguest.h: the VM behind a monitor: its run state, and whether it is free for a job
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_GUEST_H
#define VSP_GUEST_H

#include "vspqmp.h"

/* QEMU's word for the run state ("running", "paused", "inmigrate", ...). (transfer full) */
char *vspGuestGetState(vspQmp *qmp, GError **error);

/* -1 with VSP_ERROR_BUSY or VSP_ERROR_BLOCKED if a migration or a dump is under way, or, with
 * @migrating, if a device forbids migration. */
int vspGuestCheckIdle(vspQmp *qmp, gboolean migrating, GError **error);

/* `stop` and `cont`; both wait until QEMU reports the new state. */
int vspGuestStop(vspQmp *qmp, GError **error);
int vspGuestContinue(vspQmp *qmp, GError **error);

/* Waits until the VM runs (@running) or does not. */
int vspGuestWaitState(vspQmp *qmp, gboolean running, guint timeout, GError **error);

/* Bytes of memory, plugged in modules included; 0 if QEMU does not say. */
guint64 vspGuestGetMemory(vspQmp *qmp);

/* The name the VM was started with; NULL without one. (transfer full) */
char *vspGuestGetName(vspQmp *qmp);

/* The UUID; NULL if it was started without one. (transfer full) */
char *vspGuestGetUuid(vspQmp *qmp);

/*
 * The error for a job that failed with @cause (consumed) and whose VM then could not be put back
 * (@why): VSP_ERROR_NOT_RESTORED, with a command that resumes the VM by its monitor's socket
 * @monitor; VSP_ERROR_QEMU_LOST if there is no VM any more.
 */
GError *vspGuestNotPutBack(vspQmp *qmp, const char *monitor, GError *cause, const GError *why);

#endif /* VSP_GUEST_H */
