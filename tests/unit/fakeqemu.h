/*
 * fakeqemu.h: a double of QEMU that fails in every way there is
 *
 * A thread listens on a monitor socket and plays a VM: run state, migration settings, descriptors
 * that were passed, a migration out or in, a dump. It does what the plan says, and keeps account of
 * what was asked of it. Data moves through the real helper.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_FAKEQEMU_H
#define VSP_FAKEQEMU_H

#include <gio/gio.h>

typedef struct _fakeQemu fakeQemu;

typedef struct {
    /* The VM at first. */
    const char *state;         /* "running" by default */
    const char *migrateStatus; /* of an earlier migration; none by default */
    const char *dumpStatus;    /* "none" by default */
    const char *blockedReason; /* what forbids a migration */
    guint64 memory;            /* bytes */

    /* Commands, by name. */
    const char *refuse;    /* answered by an error */
    const char *refuseToo; /* another */
    const char *ignore;    /* never answered, and not obeyed */
    const char *dieAt;     /* the connection ends, and the VM, instead of an answer */
    const char *dieAfter;  /* ... behind the answer */
    const char *cancelAt;  /* @cancellable is cancelled when it comes in, before it is obeyed */
    GCancellable *cancellable;

    /* The stream. */
    gsize streamLength;     /* bytes that a migration or a dump writes; or reads, of which it then
                               is content; 0 for all */
    gsize dieAtByte;        /* the VM dies when so many have gone, 0: it does not */
    gsize cancelAtByte;     /* the same for a cancel */
    gsize killHelperAtByte; /* the same for SIGKILL to the helper */
    gsize stallAtByte;      /* there it stops until it is cancelled (or for ever) */
    gboolean cancelAtEnd;   /* cancelled when all was written and "completed" reported */

    /* The end of it. */
    const char *const *detours; /* states reported in turn before the last one */
    const char *endStatus;      /* "completed" by default */
    const char *endReason;      /* for a failure */
    gboolean noEvents;          /* as if the capability were not there */
    gboolean dumpEventFirst;    /* DUMP_COMPLETED comes before the answer to the command */
    gboolean stayPaused;        /* a dump's clean-up forgets to let the VM go on */
} fakeQemuPlan;

/* @path: where its monitor will be. The plan is copied, not what it points to. */
fakeQemu *fakeQemuNew(const char *path, const fakeQemuPlan *plan);

/* Ends it, dead or alive. */
void fakeQemuFree(fakeQemu *qemu);

/* The account. */
gboolean fakeQemuIsAlive(fakeQemu *qemu);     /* neither quit nor dead */
gboolean fakeQemuHasQuit(fakeQemu *qemu);     /* by `quit` */
const char *fakeQemuGetState(fakeQemu *qemu); /* static string */
guint fakeQemuCount(fakeQemu *qemu, const char *command);
guint fakeQemuCountFds(fakeQemu *qemu);       /* passed, and not yet used or closed */
gboolean fakeQemuHasSettings(fakeQemu *qemu); /* those that it began with */
gboolean fakeQemuHadSettings(fakeQemu *qemu); /* when a migration began: those for a save */
GBytes *fakeQemuGetReceived(fakeQemu *qemu);  /* what came in by a migration */

/* The byte at @offset of what it writes. */
guint8 fakeQemuByte(gsize offset);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(fakeQemu, fakeQemuFree)

#endif /* VSP_FAKEQEMU_H */
