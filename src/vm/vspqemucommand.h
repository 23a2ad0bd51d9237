/*
 * vspqemucommand.h: QEMU's command line: recorded when saving, completed when restoring
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_QEMUCOMMAND_H
#define VSP_QEMUCOMMAND_H

#include <glib.h>

/* The chardev and monitor that a restore adds. */
#define VSP_QEMU_COMMAND_MONITOR "vmspool-monitor"

/*
 * @argv without what belongs to one start only: -S, -incoming, -loadvm, -daemonize (a restored QEMU
 * is put in the background anyway), and the monitor that a restore added. NULL-terminated,
 * (transfer full).
 */
char **vspQemuCommandClean(const char *const *argv);

/* What to run to restore: @argv cleaned, stopped, waiting for the state, with a monitor on the
 * inherited descriptor @monitor. */
char **vspQemuCommandForRestore(const char *const *argv, int monitor);

/* Whether @argv gives its user a monitor to talk to. */
gboolean vspQemuCommandHasMonitor(const char *const *argv);

#endif /* VSP_QEMUCOMMAND_H */
