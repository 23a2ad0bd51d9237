/*
 * vspguest.c: the VM behind a monitor: its run state, and whether it is free for a job
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "vsperrorpriv.h"
#include "vspguest.h"
#include "vspio.h"
#include "vspmigration.h"

char *
vspGuestGetState(vspQmp *qmp, GError **error)
{
    g_autoptr(GVariant) status = vspQmpExecute(qmp, "query-status", NULL, error);
    const char *word;

    if (!status)
        return NULL;
    word = vspQmpGetString(status, "status");
    if (!word) {
        vspSetError(error, VSP_ERROR_QEMU, _("QEMU does not tell the VM's run state"));
        return NULL;
    }
    return g_strdup(word);
}

static int
guestCheckBlocked(const vspMigrationInfo *info, GError **error)
{
    g_autofree char *reasons = NULL;

    if (g_strv_length(info->blockedReasons) == 0)
        return 0;
    reasons = g_strjoinv("; ", info->blockedReasons);
    vspSetError(error, VSP_ERROR_BLOCKED, _("a device of this VM can't be saved: %s"), reasons);
    return -1;
}

int
vspGuestCheckIdle(vspQmp *qmp, gboolean migrating, GError **error)
{
    g_auto(vspMigrationInfo) info = { 0 };
    g_autoptr(GVariant) dump = NULL;
    g_autoptr(GError) local = NULL;

    if (vspMigrationQuery(qmp, &info, error) < 0)
        return -1;
    if (info.phase == VSP_MIGRATION_ACTIVE) {
        vspSetError(error, VSP_ERROR_BUSY, _("a migration of this VM is under way (%s)"),
                    info.status);
        return -1;
    }
    if (migrating && guestCheckBlocked(&info, error) < 0)
        return -1;

    /* A QEMU built without dump support does not know the command. */
    dump = vspQmpExecute(qmp, "query-dump", NULL, &local);
    if (!dump) {
        if (g_error_matches(local, VSP_ERROR, VSP_ERROR_QEMU))
            return 0;
        g_propagate_error(error, g_steal_pointer(&local));
        return -1;
    }
    if (g_strcmp0(vspQmpGetString(dump, "status"), "active") == 0) {
        vspSetError(error, VSP_ERROR_BUSY, _("a memory dump of this VM is under way"));
        return -1;
    }
    return 0;
}

/* Looks again at every event, and every 50 ms without one. */
int
vspGuestWaitState(vspQmp *qmp, gboolean running, guint timeout, GError **error)
{
    gint64 deadline = vspDeadline(timeout);

    for (;;) {
        g_autoptr(GVariant) status = vspQmpExecute(qmp, "query-status", NULL, error);
        GVariant *event;

        if (!status)
            return -1;
        if (vspQmpGetBoolean(status, "running") == running)
            return 0;
        if (g_get_monotonic_time() >= deadline) {
            vspSetError(error, VSP_ERROR_TIMED_OUT, _("the VM is still in the state '%s'"),
                        vspQmpGetString(status, "status"));
            return -1;
        }
        while ((event = vspQmpTakeEvent(qmp)))
            g_variant_unref(event);
        if (vspQmpWait(qmp, MIN(deadline, vspDeadline(50)), error) < 0)
            return -1;
    }
}

static int
guestRun(vspQmp *qmp, const char *command, gboolean running, GError **error)
{
    g_autoptr(GVariant) result =
        vspQmpExecuteFull(qmp, command, NULL, -1, VSP_QMP_TIMEOUT_RUN, error);

    if (!result)
        return -1;
    return vspGuestWaitState(qmp, running, VSP_QMP_TIMEOUT, error);
}

int
vspGuestStop(vspQmp *qmp, GError **error)
{
    return guestRun(qmp, "stop", FALSE, error);
}

int
vspGuestContinue(vspQmp *qmp, GError **error)
{
    return guestRun(qmp, "cont", TRUE, error);
}

guint64
vspGuestGetMemory(vspQmp *qmp)
{
    g_autoptr(GVariant) size = vspQmpExecute(qmp, "query-memory-size-summary", NULL, NULL);

    if (!size)
        return 0;
    return vspQmpGetNumber(size, "base-memory") + vspQmpGetNumber(size, "plugged-memory");
}

char *
vspGuestGetName(vspQmp *qmp)
{
    g_autoptr(GVariant) reply = vspQmpExecute(qmp, "query-name", NULL, NULL);
    const char *name = reply ? vspQmpGetString(reply, "name") : NULL;

    return name && *name ? g_strdup(name) : NULL;
}

char *
vspGuestGetUuid(vspQmp *qmp)
{
    g_autoptr(GVariant) reply = vspQmpExecute(qmp, "query-uuid", NULL, NULL);
    const char *uuid = reply ? vspQmpGetString(reply, "UUID") : NULL;

    if (!uuid || strspn(uuid, "0-") == strlen(uuid) || !g_uuid_string_is_valid(uuid))
        return NULL;
    return g_ascii_strdown(uuid, -1);
}

GError *
vspGuestNotPutBack(vspQmp *qmp, const char *monitor, GError *cause, const GError *why)
{
    g_autoptr(GError) first = cause;
    g_autofree char *address = NULL;
    g_autofree char *quoted = NULL;

    if (vspQmpIsLost(qmp)) {
        if (g_error_matches(first, VSP_ERROR, VSP_ERROR_QEMU_LOST))
            return g_steal_pointer(&first);
        return g_error_new(VSP_ERROR, VSP_ERROR_QEMU_LOST, _("%s; and then: %s"), first->message,
                           why->message);
    }
    address = g_strconcat("UNIX-CONNECT:", monitor, NULL);
    quoted = g_shell_quote(address);
    return g_error_new(VSP_ERROR, VSP_ERROR_NOT_RESTORED,
                       _("%s; and the VM could not be put back: %s; to resume it, try: %s%s"),
                       first->message, why->message,
                       "printf '{\"execute\":\"qmp_capabilities\"}{\"execute\":\"cont\"}' | "
                       "socat -t 5 - ",
                       quoted);
}
