/*
 * testfs.c: small file systems and devices that are gone with their descriptor
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <linux/mount.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "testfs.h"
#include "testutil.h"
#include "vspfd.h"

/* Somebody else may take the device between the question for a free one and the answer. */
#define LOOP_TRIES 20

/* With one option, such as the size or the source; a mount that no path leads to. */
static int
mountDetached(const char *type, const char *key, const char *value)
{
    g_auto(vspFd) context = syscall(SYS_fsopen, type, FSOPEN_CLOEXEC);

    if (context < 0)
        return -1;
    if (syscall(SYS_fsconfig, context, FSCONFIG_SET_STRING, key, value, 0) < 0 ||
        syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0) {
        g_test_message("cannot make a %s: %s", type, g_strerror(errno));
        return -1;
    }
    return syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, 0);
}

int
vspTestTmpfs(guint64 bytes)
{
    g_autofree char *size = g_strdup_printf("%" G_GUINT64_FORMAT, bytes);

    return mountDetached("tmpfs", "size", size);
}

/* One try. The device's number, and its descriptor in *@device; -1 with errno. */
static int
configureLoop(int control, int file, guint sector, int *device)
{
    int number = ioctl(control, LOOP_CTL_GET_FREE);
    g_autofree char *path = g_strdup_printf("/dev/loop%d", number);
    struct loop_config config = {
        .fd = file,
        .block_size = sector,
        .info = { .lo_flags = LO_FLAGS_AUTOCLEAR },
    };
    g_auto(vspFd) fd = -1;

    if (number < 0)
        return -1;
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || ioctl(fd, LOOP_CONFIGURE, &config) < 0)
        return -1;
    *device = vspFdSteal(&fd);
    return number;
}

int
vspTestLoop(const char *dir, guint64 bytes, guint sector, char **path)
{
    g_autofree char *backing = vspTestPath(dir, "loop");
    g_auto(vspFd) file = vspTestOpen(backing, O_RDWR | O_CREAT | O_EXCL);
    g_auto(vspFd) control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);

    g_assert_cmpint(unlink(backing), ==, 0);
    g_assert_cmpint(ftruncate(file, bytes), ==, 0);
    for (guint i = 0; control >= 0 && i < LOOP_TRIES; i++) {
        int device = -1;
        int number = configureLoop(control, file, sector, &device);

        if (number >= 0) {
            *path = g_strdup_printf("/dev/loop%d", number);
            return device;
        }
        if (errno != EBUSY)
            break;
    }
    g_test_message("cannot make a loop device: %s", g_strerror(errno));
    *path = NULL;
    return -1;
}

int
vspTestDiskFs(const char *dir, const char *type, guint64 bytes, guint sector)
{
    g_autofree char *path = NULL;
    g_autofree char *mkfs = g_strdup_printf("mkfs.%s", type);
    g_auto(vspFd) device = vspTestLoop(dir, bytes, sector, &path);
    char *argv[] = { mkfs, (char *)"-q", path, NULL };
    g_autoptr(GError) error = NULL;
    int status = 0;

    if (device < 0)
        return -1;
    if (!g_spawn_sync(NULL, argv, NULL, G_SPAWN_SEARCH_PATH | G_SPAWN_STDOUT_TO_DEV_NULL, NULL,
                      NULL, NULL, NULL, &status, &error) ||
        status != 0) {
        g_test_message("%s: %s", mkfs, error ? error->message : "failed");
        return -1;
    }
    /* From now on the mount keeps the device. */
    return mountDetached(type, "source", path);
}

char *
vspTestFsPath(int root, const char *name)
{
    return g_strdup_printf("/proc/self/fd/%d/%s", root, name);
}
