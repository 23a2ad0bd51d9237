/*
 * vspspawn.h: child processes, through GLib
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_SPAWN_H
#define VSP_SPAWN_H

#include <glib.h>

typedef struct _vspChild vspChild;

typedef enum {
    /* Not a child of ours: in a session of its own, reaped by init, stdin and stdout /dev/null
     * unless mapped. Its exit status is not known. */
    VSP_SPAWN_DETACHED = (1 << 0),
} vspSpawnFlags;

/*
 * Starts @argv (argv[0] is a path, or a name looked up in PATH) with @environment (NULL: ours), and
 * for each i the descriptor sources[i] (borrowed) as targets[i]. Nothing else of ours is meant for
 * the child; descriptors that other code left open without close-on-exec are passed on, so a child
 * that matters closes what it does not know.
 *
 * The child's stderr goes to a pipe that never blocks it: what does not fit is dropped.
 *
 * An exec failure is an error here, with the path and errno's text.
 */
vspChild *vspChildSpawn(const char *const *argv,
                        const char *const *environment,
                        vspSpawnFlags flags,
                        const int *sources,
                        const int *targets,
                        gsize count,
                        GError **error);

GPid vspChildGetPid(const vspChild *child);

/* Sends @signum, by pidfd where the kernel has it. Quiet if it is gone. */
void vspChildKill(vspChild *child, int signum);

typedef enum {
    VSP_CHILD_RUNNING, /* still there at the deadline */
    VSP_CHILD_EXITED,  /* @status is as of waitpid(2) */
    VSP_CHILD_LOST,    /* gone, but somebody else took its status, or it was detached */
} vspChildState;

/* Waits until @deadline (vspDeadline(), 0: just look). */
vspChildState vspChildWait(vspChild *child, gint64 deadline, int *status);

/* What it wrote to stderr, at most 1 KiB, trimmed, printable; "" if nothing. Does not block. */
char *vspChildGetStderr(vspChild *child);

/* "exited with status 3", "was killed by signal 9 (Killed)" */
char *vspChildStatusText(int status);

/* Forgets the child. One that still runs and is not detached is reaped by a thread when it ends. */
void vspChildFree(vspChild *child);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(vspChild, vspChildFree)

#endif /* VSP_SPAWN_H */
