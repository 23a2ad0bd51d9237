/*
 * vspmigration.h: QEMU's migration, as a way to write or read its state
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_MIGRATION_H
#define VSP_MIGRATION_H

#include "vspflow.h"
#include "vspqmp.h"
#include "vsptransfer.h"

typedef enum {
    VSP_MIGRATION_NONE,      /* none was ever started */
    VSP_MIGRATION_ACTIVE,    /* under way, in whatever way; also a word that we do not know */
    VSP_MIGRATION_COMPLETED, /* the only success */
    VSP_MIGRATION_FAILED,
    VSP_MIGRATION_CANCELLED,
} vspMigrationPhase;

typedef struct {
    vspMigrationPhase phase;
    gboolean known;        /* @status is a word that we know */
    char *status;          /* QEMU's word, "none" if it says none */
    char *reason;          /* for a failure, nullable */
    char **blockedReasons; /* never NULL after a query */
    guint64 ramTotal;      /* bytes */
    guint64 ramRemaining;
} vspMigrationInfo;

int vspMigrationQuery(vspQmp *qmp, vspMigrationInfo *info, GError **error);
void vspMigrationInfoClear(vspMigrationInfo *info);

/* What vspMigrationPrepare() changed, to be put back. */
typedef struct {
    GVariant *capabilities;
    GVariant *parameters;
} vspMigrationSettings;

/*
 * Makes QEMU ready for one plain stream to a descriptor: capabilities that would make it another
 * kind of stream off, events on, no TLS, and no bandwidth limit. @saved has what to put back,
 * whether this succeeds or not. An old QEMU that can't set something is left as it is.
 */
int
vspMigrationPrepare(vspQmp *qmp, gboolean incoming, vspMigrationSettings *saved, GError **error);

/* Puts them back. Quiet: what can't be put back is no reason to fail what else is put back. */
void vspMigrationRestore(vspQmp *qmp, vspMigrationSettings *saved);
void vspMigrationSettingsClear(vspMigrationSettings *saved);

/*
 * Waits until the migration that was started has completed, reports progress, and takes in the
 * verdict of
 * @transfer if it comes first: a failed one ends the wait.
 *
 * @total: bytes of the whole stream, 0 to estimate them from what QEMU says remains
 *
 * 0: completed. -1 with @error: the root cause, so far as it is known without waiting for the
 * helper.
 */
int
vspMigrationWait(vspQmp *qmp, vspFlow *flow, vspTransfer *transfer, guint64 total, GError **error);

/* Cancels and waits until it is over. Not cancellable. 0: over (@info has how); -1: unknown.
 * Between the cancel and the wait it aborts @transfer, so that QEMU is not stuck in a write. */
int vspMigrationCancel(vspQmp *qmp, vspTransfer *transfer, vspMigrationInfo *info, GError **error);

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(vspMigrationInfo, vspMigrationInfoClear)
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(vspMigrationSettings, vspMigrationSettingsClear)

#endif /* VSP_MIGRATION_H */
