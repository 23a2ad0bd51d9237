/*
 * vspspawn.c: child processes, through GLib
 *
 * A child of a threaded daemon that may reap with waitpid(-1), ignore SIGCHLD, or fork in another
 * thread at any moment. So: nothing global, no signal handler; a pidfd is taken at once and used for
 * signals and for waiting, and an exit status that somebody else took is "lost", not an error.
 *
 * With all descriptors close-on-exec and no set-up function GLib uses posix_spawn(), which does not
 * copy the page tables of a large daemon. A detached child needs setsid() and goes through fork.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gi18n-lib.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vsperrorpriv.h"
#include "vspfd.h"
#include "vspio.h"
#include "vspspawn.h"

/* Enough for a reason, too little for a flood. */
#define STDERR_KEPT 1024

struct _vspChild {
    GPid pid;
    int pidfd; /* -1 before Linux 5.3 */
    int stderrFd;
    gboolean detached;
    vspChildState state;
    int status;
    GString *text;
};

/* Runs between fork and exec: async-signal-safe calls only. */
static void
detachChild(gpointer opaque G_GNUC_UNUSED)
{
    sigset_t none;

    setsid();
    /* A tool that waits for signals in a thread has them blocked: not its child. */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The descriptor among @sources that becomes @target, or -1. */
static int
sourceFor(int target, const int *sources, const int *targets, gsize count)
{
    for (gsize i = 0; i < count; i++) {
        if (targets[i] == target)
            return sources[i];
    }
    return -1;
}

/* GLib closes the descriptors it was given for stdin, stdout and stderr after the others have taken
 * their places: one whose own number is somebody's target would take that down. (It happens: the
 * first descriptor that a program opens is 3, and so is our status channel.) And where it forks,
 * what stands at 0 to 2 is overwritten before it is looked at as a source of others. So whatever is
 * not above all targets becomes a duplicate that is, owned by @moved. */
static int
moveUp(int *fd, GArray *moved, int above)
{
    int copy;

    if (*fd < 0 || *fd > above)
        return 0;
    copy = fcntl(*fd, F_DUPFD_CLOEXEC, above + 1);
    if (copy < 0)
        return -1;
    g_array_append_val(moved, copy);
    *fd = copy;
    return 0;
}

/* posix_spawn() leaves GLib with errno's text alone, in words that say "spawn" and name the program
 * once more. So the usual reasons are looked up; for the others its words have to do. */
static void
setSpawnError(GError **error, const char *program, const GError *local)
{
    g_autofree char *found = g_find_program_in_path(program);
    vspError code = VSP_ERROR_FAILED;

    if (!found && !strchr(program, '/')) {
        vspSetErrno(error, ENOENT, _("cannot start '%s'"), program);
        return;
    }
    if (!found) {
        /* There and allowed, but not to be run: a directory. */
        vspSetErrno(error, access(program, X_OK) < 0 ? errno : EACCES, _("cannot start '%s'"),
                    program);
        return;
    }
    if (g_error_matches(local, G_SPAWN_ERROR, G_SPAWN_ERROR_NOENT))
        code = VSP_ERROR_NOT_FOUND;
    else if (g_error_matches(local, G_SPAWN_ERROR, G_SPAWN_ERROR_ACCES))
        code = VSP_ERROR_ACCESS;
    vspSetError(error, code, _("cannot start '%s': %s"), program, local->message);
}

vspChild *
vspChildSpawn(const char *const *argv,
              const char *const *environment,
              vspSpawnFlags flags,
              const int *sources,
              const int *targets,
              gsize count,
              GError **error)
{
    g_autoptr(vspChild) child = g_new0(vspChild, 1);
    gboolean detached = !!(flags & VSP_SPAWN_DETACHED);
    GSpawnFlags gflags = G_SPAWN_SEARCH_PATH;
    g_autofree int *otherSources = g_new(int, count + 1);
    g_autofree int *otherTargets = g_new(int, count + 1);
    gsize others = 0;
    int in = sourceFor(STDIN_FILENO, sources, targets, count);
    int out = sourceFor(STDOUT_FILENO, sources, targets, count);
    g_auto(vspFd) stderrWrite = -1;
    g_autoptr(GArray) moved = g_array_new(FALSE, FALSE, sizeof(int));
    int err, rc;
    int highest = STDERR_FILENO;
    g_autoptr(GError) local = NULL;
    int fds[2];

    child->stderrFd = child->pidfd = -1;
    child->detached = detached;
    child->text = g_string_new(NULL);

    for (gsize i = 0; i < count; i++) {
        highest = MAX(highest, targets[i]);
        if (targets[i] > STDERR_FILENO) {
            otherSources[others] = sources[i];
            otherTargets[others++] = targets[i];
        }
    }
    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0) {
        vspSetErrno(error, errno, _("cannot create a pipe for '%s'"), argv[0]);
        return NULL;
    }
    child->stderrFd = fds[0];
    err = stderrWrite = fds[1];
    g_array_set_clear_func(moved, (GDestroyNotify)vspFdClose);
    rc = moveUp(&in, moved, highest) < 0 || moveUp(&out, moved, highest) < 0 ||
                 moveUp(&err, moved, highest) < 0
             ? -1
             : 0;
    for (gsize i = 0; i < others && rc == 0; i++)
        rc = moveUp(&otherSources[i], moved, highest);
    if (rc < 0) {
        vspSetErrno(error, errno, _("cannot pass descriptors to '%s'"), argv[0]);
        return NULL;
    }

    if (!detached)
        gflags |= G_SPAWN_DO_NOT_REAP_CHILD | G_SPAWN_LEAVE_DESCRIPTORS_OPEN;
    if (out < 0)
        gflags |= G_SPAWN_STDOUT_TO_DEV_NULL;

    /* GLib declares argv and environment without const and does not change them. */
    if (!g_spawn_async_with_pipes_and_fds(NULL, argv, environment, gflags,
                                          detached ? detachChild : NULL, NULL, in, out, err,
                                          otherSources, otherTargets, others, &child->pid, NULL,
                                          NULL, NULL, &local)) {
        setSpawnError(error, argv[0], local);
        return NULL;
    }
    /* Seen of GLib 2.74: where it has no descriptor left for its own duplicates it reports success,
     * and a process number of 0. To kill that, or to wait for it, would be our whole process group.
     */
    if (child->pid <= 0) {
        child->pid = 0;
        vspSetErrno(error, EMFILE, _("cannot start '%s'"), argv[0]);
        return NULL;
    }
    child->state = VSP_CHILD_RUNNING;
    child->pidfd = syscall(SYS_pidfd_open, child->pid, 0);
    return g_steal_pointer(&child);
}

GPid
vspChildGetPid(const vspChild *child)
{
    return child->pid;
}

void
vspChildKill(vspChild *child, int signum)
{
    if (child->state != VSP_CHILD_RUNNING)
        return;
    if (child->pidfd >= 0)
        syscall(SYS_pidfd_send_signal, child->pidfd, signum, NULL, 0);
    else
        kill(child->pid, signum);
}

/* One look. */
static vspChildState
look(vspChild *child)
{
    if (child->detached) {
        if (child->pidfd >= 0 ? vspPollOne(child->pidfd, POLLIN, 0) > 0
                              : kill(child->pid, 0) < 0 && errno == ESRCH)
            child->state = VSP_CHILD_LOST;
        return child->state;
    }
    for (;;) {
        pid_t got = waitpid(child->pid, &child->status, WNOHANG);

        if (got == child->pid)
            child->state = VSP_CHILD_EXITED;
        else if (got < 0 && errno == EINTR)
            continue;
        else if (got < 0)
            child->state = VSP_CHILD_LOST;
        return child->state;
    }
}

vspChildState
vspChildWait(vspChild *child, gint64 deadline, int *status)
{
    while (child->state == VSP_CHILD_RUNNING && look(child) == VSP_CHILD_RUNNING) {
        if (deadline >= 0 && g_get_monotonic_time() >= deadline)
            break;
        if (child->pidfd >= 0)
            vspPollOne(child->pidfd, POLLIN, deadline);
        else
            g_usleep(5000); /* no pidfd: nothing to poll on */
    }
    if (status)
        *status = child->status;
    return child->state;
}

char *
vspChildGetStderr(vspChild *child)
{
    char buf[256];
    ssize_t n;
    g_autofree char *valid = NULL;
    GString *out = g_string_new(NULL);

    while (child->text->len < STDERR_KEPT &&
           (n = read(child->stderrFd, buf, MIN(sizeof(buf), STDERR_KEPT - child->text->len))) > 0)
        g_string_append_len(child->text, buf, n);

    /* One line, whatever was written. */
    valid = g_utf8_make_valid(child->text->str, child->text->len);
    g_strstrip(valid);
    for (const char *p = valid; *p; p = g_utf8_next_char(p)) {
        gunichar c = g_utf8_get_char(p);

        if (c == '\n')
            g_string_append(out, "; ");
        else if (!g_unichar_iscntrl(c))
            g_string_append_unichar(out, c);
    }
    return g_string_free(out, FALSE);
}

char *
vspChildStatusText(int status)
{
    if (WIFSIGNALED(status))
        return g_strdup_printf(_("was killed by signal %d (%s)"), WTERMSIG(status),
                               strsignal(WTERMSIG(status)));
    return g_strdup_printf(_("exited with status %d"), WEXITSTATUS(status));
}

static gpointer
reap(gpointer opaque)
{
    pid_t pid = GPOINTER_TO_INT(opaque);

    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    return NULL;
}

void
vspChildFree(vspChild *child)
{
    if (!child)
        return;
    if (child->pid > 0 && !child->detached && child->state == VSP_CHILD_RUNNING &&
        look(child) == VSP_CHILD_RUNNING) {
        g_autoptr(GThread) thread G_GNUC_UNUSED =
            g_thread_try_new("vsp-reaper", reap, GINT_TO_POINTER(child->pid), NULL);
    }
    vspFdClose(&child->pidfd);
    vspFdClose(&child->stderrFd);
    g_string_free(child->text, TRUE);
    g_free(child);
}
