/*
 * vspmigration.c: QEMU's migration, as a way to write or read its state
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "vsperrorpriv.h"
#include "vspio.h"
#include "vspmigration.h"

/* "No limit": 1 PiB/s. QEMU divides it by its time slices, so that the largest number of the type
 * is not the safest one. */
#define BANDWIDTH_UNLIMITED (G_GINT64_CONSTANT(1) << 50)

/* Between two looks at a migration whose events do not come. It starts short, for small VMs. */
#define POLL_MIN_MS 10
#define POLL_MAX_MS 100

/* A transfer in which nothing at all moves for this long is given up: the VM is paused meanwhile.
 * Longer bears longer outages of a network file system. */
#define STALL_MS (10 * 60 * 1000)

/* The stream has ended, yet QEMU does not say how: a restored VM's devices may wait for slow
 * storage. */
#define SETTLE_MS (5 * 60 * 1000)

void
vspMigrationInfoClear(vspMigrationInfo *info)
{
    g_clear_pointer(&info->status, g_free);
    g_clear_pointer(&info->reason, g_free);
    g_clear_pointer(&info->blockedReasons, g_strfreev);
}

static const struct {
    const char *word;
    vspMigrationPhase phase;
} migrationWords[] = {
    { "none", VSP_MIGRATION_NONE },
    { "setup", VSP_MIGRATION_ACTIVE },
    { "active", VSP_MIGRATION_ACTIVE },
    { "device", VSP_MIGRATION_ACTIVE },
    { "wait-unplug", VSP_MIGRATION_ACTIVE },
    { "pre-switchover", VSP_MIGRATION_ACTIVE },
    { "postcopy-active", VSP_MIGRATION_ACTIVE },
    { "postcopy-device", VSP_MIGRATION_ACTIVE },
    { "postcopy-paused", VSP_MIGRATION_ACTIVE },
    { "postcopy-recover", VSP_MIGRATION_ACTIVE },
    { "postcopy-recover-setup", VSP_MIGRATION_ACTIVE },
    { "colo", VSP_MIGRATION_ACTIVE },
    { "cancelling", VSP_MIGRATION_ACTIVE },
    { "cancelled", VSP_MIGRATION_CANCELLED },
    { "failed", VSP_MIGRATION_FAILED },
    { "failing", VSP_MIGRATION_ACTIVE },
    { "completed", VSP_MIGRATION_COMPLETED },
};

static void
migrationParseStatus(vspMigrationInfo *info, const char *word)
{
    info->status = g_strdup(word ? word : "none");
    info->phase = VSP_MIGRATION_ACTIVE;
    info->known = FALSE;
    for (gsize i = 0; i < G_N_ELEMENTS(migrationWords); i++) {
        if (g_str_equal(info->status, migrationWords[i].word)) {
            info->phase = migrationWords[i].phase;
            info->known = TRUE;
        }
    }
}

int
vspMigrationQuery(vspQmp *qmp, vspMigrationInfo *info, GError **error)
{
    g_autoptr(GVariant) reply = vspQmpExecute(qmp, "query-migrate", NULL, error);
    g_autoptr(GVariant) ram = NULL;

    if (!reply)
        return -1;
    vspMigrationInfoClear(info);
    migrationParseStatus(info, vspQmpGetString(reply, "status"));
    info->reason = g_strdup(vspQmpGetString(reply, "error-desc"));
    info->blockedReasons = vspQmpGetStrings(reply, "blocked-reasons");
    ram = vspQmpGetDict(reply, "ram");
    info->ramTotal = ram ? vspQmpGetNumber(ram, "total") : 0;
    info->ramRemaining = ram ? vspQmpGetNumber(ram, "remaining") : 0;
    return 0;
}

/* --- settings --- */

static int
migrationSetCapabilities(vspQmp *qmp, GVariant *list, GError **error)
{
    return vspQmpRun(qmp, "migrate-set-capabilities",
                     g_variant_new_parsed("{'capabilities': <%@aa{sv}>}", list), error);
}

static GVariant *
migrationCapability(const char *name, gboolean state)
{
    return g_variant_new_parsed("{'capability': <%s>, 'state': <%b>}", name, state);
}

/* Everything off, but for "events". On the receiving side only that: the rest is for QEMU's user,
 * who may have turned something on that the stream needs. */
static int
migrationPrepareCapabilities(vspQmp *qmp,
                             gboolean incoming,
                             vspMigrationSettings *saved,
                             GError **error)
{
    g_autoptr(GVariant) list = vspQmpExecute(qmp, "query-migrate-capabilities", NULL, error);
    GVariantBuilder wanted, before;
    gsize count;
    gsize changes = 0;

    if (!list)
        return -1;
    g_variant_builder_init(&wanted, G_VARIANT_TYPE("aa{sv}"));
    g_variant_builder_init(&before, G_VARIANT_TYPE("aa{sv}"));
    count = g_variant_is_of_type(list, G_VARIANT_TYPE("av")) ? g_variant_n_children(list) : 0;
    for (gsize i = 0; i < count; i++) {
        g_autoptr(GVariant) box = g_variant_get_child_value(list, i);
        g_autoptr(GVariant) entry = g_variant_get_variant(box);
        const char *name = NULL;
        gboolean state, want;

        if (g_variant_is_of_type(entry, G_VARIANT_TYPE_VARDICT))
            name = vspQmpGetString(entry, "capability");
        if (!name)
            continue;
        state = vspQmpGetBoolean(entry, "state");
        want = g_str_equal(name, "events") || (incoming && state);
        if (state == want)
            continue;
        g_variant_builder_add_value(&wanted, migrationCapability(name, want));
        g_variant_builder_add_value(&before, migrationCapability(name, state));
        changes++;
    }

    if (changes == 0) {
        g_variant_builder_clear(&wanted);
        g_variant_builder_clear(&before);
        return 0;
    }
    saved->capabilities = g_variant_ref_sink(g_variant_builder_end(&before));
    return migrationSetCapabilities(qmp, g_variant_builder_end(&wanted), error);
}

static int
migrationPrepareParameters(vspQmp *qmp, vspMigrationSettings *saved, GError **error)
{
    g_autoptr(GVariant) parameters = vspQmpExecute(qmp, "query-migrate-parameters", NULL, error);
    g_autoptr(GVariant) bandwidth = NULL;
    const char *tls;
    GVariantDict wanted, before;

    if (!parameters)
        return -1;
    g_variant_dict_init(&wanted, NULL);
    g_variant_dict_init(&before, NULL);

    g_variant_dict_insert(&wanted, "max-bandwidth", "x", BANDWIDTH_UNLIMITED);
    bandwidth = g_variant_lookup_value(parameters, "max-bandwidth", NULL);
    if (bandwidth)
        g_variant_dict_insert_value(&before, "max-bandwidth", bandwidth);

    tls = vspQmpGetString(parameters, "tls-creds");
    if (tls && *tls) {
        g_variant_dict_insert(&wanted, "tls-creds", "s", "");
        g_variant_dict_insert(&before, "tls-creds", "s", tls);
    }
    saved->parameters = g_variant_ref_sink(g_variant_dict_end(&before));
    return vspQmpRun(qmp, "migrate-set-parameters", g_variant_dict_end(&wanted), error);
}

int
vspMigrationPrepare(vspQmp *qmp, gboolean incoming, vspMigrationSettings *saved, GError **error)
{
    g_autoptr(GError) local = NULL;

    /* Refused: it is done with what there is, and polling takes the place of events. Lost,
     * cancelled or timed out: not. */
    if (migrationPrepareCapabilities(qmp, incoming, saved, &local) < 0 ||
        (!incoming && migrationPrepareParameters(qmp, saved, &local) < 0)) {
        if (!g_error_matches(local, VSP_ERROR, VSP_ERROR_QEMU)) {
            g_propagate_error(error, g_steal_pointer(&local));
            return -1;
        }
        g_debug("%s", local->message);
    }
    return 0;
}

void
vspMigrationRestore(vspQmp *qmp, vspMigrationSettings *saved)
{
    g_autoptr(GError) local = NULL;

    if (saved->parameters && g_variant_n_children(saved->parameters) > 0 &&
        vspQmpRun(qmp, "migrate-set-parameters", saved->parameters, &local) < 0)
        g_debug("%s", local->message);
    g_clear_error(&local);
    if (saved->capabilities && migrationSetCapabilities(qmp, saved->capabilities, &local) < 0)
        g_debug("%s", local->message);
    vspMigrationSettingsClear(saved);
}

void
vspMigrationSettingsClear(vspMigrationSettings *saved)
{
    g_clear_pointer(&saved->capabilities, g_variant_unref);
    g_clear_pointer(&saved->parameters, g_variant_unref);
}

/* --- waiting --- */

static int
migrationFail(const vspMigrationInfo *info, GError **error)
{
    if (info->phase == VSP_MIGRATION_CANCELLED)
        vspSetError(error, VSP_ERROR_QEMU, _("somebody else cancelled QEMU's migration"));
    else
        vspSetError(error, VSP_ERROR_QEMU, _("QEMU could not complete it: %s"),
                    info->reason ? info->reason : _("it gives no reason"));
    return -1;
}

/* The verdict, if it is a failure that ended the stream before QEMU was through. A reader that closed its
 * end is none yet: that is QEMU, which has what it wants or has failed, and is about to tell which. */
static int
migrationCheckTransfer(vspTransfer *transfer, GError **error)
{
    const GError *failure = vspTransferGetFailure(transfer);

    if (!failure || g_error_matches(failure, VSP_ERROR, VSP_ERROR_READER_GONE))
        return 0;
    g_propagate_error(error, g_error_copy(failure));
    return -1;
}

static void
migrationTell(vspFlow *flow, vspTransfer *transfer, const vspMigrationInfo *info, guint64 total)
{
    vspProgress progress;

    vspTransferGetProgress(transfer, &progress);
    /* What is still to come shrinks as QEMU finds empty pages; so this estimate gets better, and
     * the share that is done only grows. */
    if (total == 0)
        total = info->ramTotal ? progress.bytesIn + info->ramRemaining : 0;
    vspFlowProgress(flow, VSP_STAGE_TRANSFER, progress.bytesIn, progress.bytesOut, total);
}

int
vspMigrationWait(vspQmp *qmp, vspFlow *flow, vspTransfer *transfer, guint64 total, GError **error)
{
    g_auto(vspMigrationInfo) info = { 0 };
    guint poll = POLL_MIN_MS;
    gint64 stall = vspDeadline(STALL_MS);
    guint64 moved = 0;
    gboolean told = FALSE;
    gboolean ended = FALSE;

    for (;;) {
        g_autofree char *before = g_steal_pointer(&info.status);
        g_autoptr(GError) local = NULL;
        GVariant *event;

        if (vspMigrationQuery(qmp, &info, &local) < 0) {
            /* A main loop that is held up, by a disk or by the load itself, is no failure yet. */
            if (g_error_matches(local, VSP_ERROR, VSP_ERROR_TIMED_OUT) &&
                g_get_monotonic_time() < stall) {
                if (vspTransferProcess(transfer) && migrationCheckTransfer(transfer, error) < 0)
                    return -1;
                info.status = g_steal_pointer(&before);
                continue;
            }
            g_propagate_error(error, g_steal_pointer(&local));
            return -1;
        }
        migrationTell(flow, transfer, &info, total);
        if (info.phase == VSP_MIGRATION_COMPLETED)
            return 0;
        if (info.phase == VSP_MIGRATION_FAILED || info.phase == VSP_MIGRATION_CANCELLED)
            return migrationFail(&info, error);
        if (!info.known && !told) {
            vspFlowNotice(flow, _("QEMU reports a migration state that is not known here: '%s'"),
                          info.status);
            told = TRUE;
        }

        /* A verdict before QEMU's last word: it has ended the stream, and is about to tell. */
        if (vspTransferProcess(transfer) && !ended) {
            if (migrationCheckTransfer(transfer, error) < 0)
                return -1;
            ended = TRUE;
            stall = vspDeadline(SETTLE_MS);
        }
        if (!ended && (g_strcmp0(before, info.status) || moved != flow->progress.bytesOut))
            stall = vspDeadline(STALL_MS);
        moved = flow->progress.bytesOut;
        if (g_get_monotonic_time() >= stall) {
            const GError *failure = ended ? vspTransferGetFailure(transfer) : NULL;

            if (failure) {
                g_propagate_error(error, g_error_copy(failure));
                return -1;
            }
            vspSetError(
                error, VSP_ERROR_TIMED_OUT,
                _("nothing has moved for a long time; QEMU's migration is in the state '%s'"),
                info.status);
            return -1;
        }

        while ((event = vspQmpTakeEvent(qmp)))
            g_variant_unref(event);
        if (vspQmpWait(qmp, vspDeadline(poll), error) < 0)
            return -1;
        if (ended)
            vspQmpSetWatch(qmp, -1, NULL, NULL);
        poll = MIN(poll + POLL_MIN_MS, POLL_MAX_MS);
    }
}

int
vspMigrationCancel(vspQmp *qmp, vspTransfer *transfer, vspMigrationInfo *info, GError **error)
{
    gint64 deadline = vspDeadline(VSP_QMP_TIMEOUT);
    g_autoptr(GError) local = NULL;

    vspQmpSetCancellable(qmp, NULL);
    vspQmpSetWatch(qmp, -1, NULL, NULL);
    if (vspQmpRun(qmp, "migrate_cancel", NULL, &local) < 0)
        g_debug("%s", local->message);
    vspTransferSettle(transfer, 0);

    for (;;) {
        GVariant *event;

        if (vspMigrationQuery(qmp, info, error) < 0)
            return -1;
        if (info->phase != VSP_MIGRATION_ACTIVE)
            return 0;
        if (g_get_monotonic_time() >= deadline) {
            vspSetError(error, VSP_ERROR_TIMED_OUT, _("QEMU's migration stays in the state '%s'"),
                        info->status);
            return -1;
        }
        while ((event = vspQmpTakeEvent(qmp)))
            g_variant_unref(event);
        if (vspQmpWait(qmp, vspDeadline(POLL_MAX_MS / 2), error) < 0)
            return -1;
    }
}
