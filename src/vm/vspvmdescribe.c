/*
 * vspvmdescribe.c: the domain XML of a VM that libvirt does not manage
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gi18n-lib.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "vsperrorpriv.h"
#include "vspfd.h"
#include "vspguest.h"
#include "vspio.h"
#include "vspqemucommand.h"
#include "vspvmdescribe.h"

/* The kernel's own limit on arguments and environment is of this order; more than this is no
 * command line. */
#define COMMAND_MAX (4 * 1024 * 1024)

static char *
describeMachine(vspQmp *qmp)
{
    g_autoptr(GVariant) type = vspQmpExecute(
        qmp, "qom-get", g_variant_new_parsed("{'path': <'/machine'>, 'property': <'type'>}"), NULL);
    const char *word;
    gsize len;

    if (!type || !g_variant_is_of_type(type, G_VARIANT_TYPE_STRING))
        return NULL;
    word = g_variant_get_string(type, NULL);
    len = strlen(word);
    if (g_str_has_suffix(word, "-machine"))
        len -= strlen("-machine");
    return g_strndup(word, len);
}

static guint
describeVcpus(vspQmp *qmp)
{
    g_autoptr(GVariant) cpus = vspQmpExecute(qmp, "query-cpus-fast", NULL, NULL);

    return cpus && g_variant_is_container(cpus) ? g_variant_n_children(cpus) : 0;
}

static char *
describeArch(vspQmp *qmp)
{
    g_autoptr(GVariant) target = vspQmpExecute(qmp, "query-target", NULL, NULL);

    return target ? g_strdup(vspQmpGetString(target, "arch")) : NULL;
}

static gboolean
describeKvm(vspQmp *qmp)
{
    g_autoptr(GVariant) kvm = vspQmpExecute(qmp, "query-kvm", NULL, NULL);

    return kvm && vspQmpGetBoolean(kvm, "enabled");
}

/* Whole file; NULL if it can't be read. */
static GByteArray *
readProcFile(int folder, const char *name)
{
    g_auto(vspFd) fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
    g_autoptr(GByteArray) content = g_byte_array_new();

    while (fd >= 0 && content->len <= COMMAND_MAX) {
        guint8 buf[4096];
        ssize_t n = vspReadFull(fd, buf, sizeof(buf));

        if (n < 0)
            return NULL;
        g_byte_array_append(content, buf, n);
        if ((gsize)n < sizeof(buf))
            return g_steal_pointer(&content);
    }
    return NULL;
}

/* Arguments are separated, and the last is ended, by NUL bytes. */
static char **
splitCommand(const GByteArray *content)
{
    GPtrArray *argv = g_ptr_array_new();

    for (guint i = 0; i < content->len;) {
        const char *arg = (const char *)content->data + i;
        gsize len = strnlen(arg, content->len - i);

        g_ptr_array_add(argv, g_strndup(arg, len));
        i += len + 1;
    }
    g_ptr_array_add(argv, NULL);
    return (char **)g_ptr_array_free(argv, FALSE);
}

/*
 * Command line and program of the process behind the monitor. The kernel names the process that
 * began to listen. That is QEMU, unless QEMU got the socket from its parent, or was replaced: so it
 * is believed only if it looks like QEMU. Its folder in /proc is held open: if the process ends and
 * another gets its number, reading there fails.
 */
static gboolean
describeProcess(GPid pid, vspDomainXml *domain)
{
    g_autofree char *path = g_strdup_printf("/proc/%d", (int)pid);
    g_auto(vspFd) folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    g_autoptr(GByteArray) content = NULL;
    g_auto(GStrv) argv = NULL;
    g_autofree char *base = NULL;
    char exe[PATH_MAX];
    ssize_t len;

    if (pid <= 0 || pid == getpid() || folder < 0)
        return FALSE;
    len = readlinkat(folder, "exe", exe, sizeof(exe) - 1);
    if (len <= 0)
        return FALSE;
    exe[len] = '\0';
    base = g_path_get_basename(exe);
    if (!strstr(base, "qemu") && !strstr(base, "kvm"))
        return FALSE;

    content = readProcFile(folder, "cmdline");
    if (!content)
        return FALSE;
    argv = splitCommand(content);
    if (!argv[0])
        return FALSE;

    /* A program that was replaced while it ran has " (deleted)" behind its name; what is there now
     * is what will be run next time. */
    if (g_str_has_suffix(exe, " (deleted)"))
        exe[len - strlen(" (deleted)")] = '\0';
    domain->emulator = g_utf8_validate(exe, -1, NULL) ? g_strdup(exe) : NULL;
    domain->recordedCommand = vspQemuCommandClean((const char *const *)argv);
    return TRUE;
}

vspDomainXml *
vspVmDescribe(vspQmp *qmp, vspFlow *flow, GError **error)
{
    g_autoptr(vspDomainXml) domain = g_new0(vspDomainXml, 1);

    domain->name = vspGuestGetName(qmp);
    domain->uuid = vspGuestGetUuid(qmp);
    domain->memory = vspGuestGetMemory(qmp);
    domain->vcpus = describeVcpus(qmp);
    domain->arch = describeArch(qmp);
    domain->machine = describeMachine(qmp);
    domain->kvm = describeKvm(qmp);

    /* Every question may be refused; that nobody answers any more is another matter. */
    if (vspFlowCheckCancelled(flow, error) < 0)
        return NULL;
    if (vspQmpRun(qmp, "query-version", NULL, error) < 0)
        return NULL;

    if (!domain->name)
        domain->name = domain->uuid ? g_strdup_printf("vm-%.8s", domain->uuid) : g_strdup("vm");
    if (!describeProcess(vspQmpGetPeerPid(qmp), domain))
        vspFlowNotice(flow, _("the image does not record QEMU's command line: the process behind "
                              "the monitor is not known"));
    return g_steal_pointer(&domain);
}
