/*
 * test-qemucommand.c: QEMU's command line, recorded and completed
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "testutil.h"
#include "vspqemucommand.h"

static void
assertArgs(char **args, const char *expected)
{
    g_auto(GStrv) owned = args;
    g_autofree char *joined = g_strjoinv(" ", owned);

    g_assert_cmpstr(joined, ==, expected);
}

static void
testClean(void)
{
    static const char *const command[] = { "-S",          "-m",      "1G",         "-S",
                                           "-incoming",   "tcp:0:1", "--loadvm",   "snap",
                                           "--daemonize", "-name",   "x-incoming", "-incoming",
                                           NULL };

    /* Never the program, whatever it is called; and half an option is left to QEMU to refuse. */
    assertArgs(vspQemuCommandClean(command), "-S -m 1G -name x-incoming -incoming");
}

/* Saved, restored, saved, restored: it does not grow. */
static void
testRepeat(void)
{
    static const char *const command[] = { "qemu", "-m", "1G", "-qmp", "unix:/x,server=on", NULL };
    g_auto(GStrv) first = vspQemuCommandForRestore(command, 7);
    g_auto(GStrv) recorded = vspQemuCommandClean((const char *const *)first);

    assertArgs(vspQemuCommandForRestore(command, 7),
               "qemu -m 1G -qmp unix:/x,server=on -S -incoming defer "
               "-chardev socket,id=vmspool-monitor,fd=7 -mon chardev=vmspool-monitor,mode=control");
    g_assert_true(g_strv_equal((const char *const *)recorded, command));
    assertArgs(vspQemuCommandForRestore((const char *const *)first, 9),
               "qemu -m 1G -qmp unix:/x,server=on -S -incoming defer "
               "-chardev socket,id=vmspool-monitor,fd=9 -mon chardev=vmspool-monitor,mode=control");
}

static void
testMonitor(void)
{
    static const char *const with[] = { "qemu", "-qmp", "unix:/x", NULL };
    static const char *const none[] = { "qemu", "-monitor", "none", NULL };
    static const char *const without[] = { "qemu", "-m", "1G", NULL };
    g_auto(GStrv) ours = vspQemuCommandForRestore(without, 7);

    g_assert_true(vspQemuCommandHasMonitor(with));
    g_assert_false(vspQemuCommandHasMonitor(none));
    g_assert_false(vspQemuCommandHasMonitor(without));
    g_assert_false(vspQemuCommandHasMonitor((const char *const *)ours));
}

int
main(int argc, char **argv)
{
    vspTestInit(&argc, &argv);
    vspTestAdd("/qemucommand/clean", testClean);
    vspTestAdd("/qemucommand/repeat", testRepeat);
    vspTestAdd("/qemucommand/monitor", testMonitor);
    return vspTestRun();
}
