/*
 * vsp-vm.h: save, restore and dump a QEMU virtual machine
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_VM_H
#define VSP_VM_H

#include <gio/gio.h>
#include <vmspool/vsp-macros.h>
#include <vmspool/vsp-filewrapper.h>
#include <vmspool/vsp-saveimage.h>

VSP_BEGIN_DECLS

/**
 * vspVmOptions:
 *
 * How to save, restore or dump. Each setter says for which of the three it counts; the others
 * ignore it.
 *
 * Since: 0.1
 */
typedef struct _vspVmOptions vspVmOptions;

/** vspVmOptionsNew: (transfer full): the defaults; free with vspVmOptionsFree(). Since: 0.1 */
vspVmOptions *vspVmOptionsNew(void);

/** vspVmOptionsFree: @options: (nullable). Since: 0.1 */
void vspVmOptionsFree(vspVmOptions *options);

/** vspVmOptionsSetWrapper: @wrapper: copied; how the bytes move (all). Since: 0.1 */
void vspVmOptionsSetWrapper(vspVmOptions *options, const vspFileWrapperOptions *wrapper);

/** vspVmOptionsSetRunState: save: what the image will say; restore: what happens. Since: 0.1 */
void vspVmOptionsSetRunState(vspVmOptions *options, vspRunState state);

/** vspVmOptionsSetKeepPaused: leave QEMU paused instead of ending it (save). Since: 0.1 */
void vspVmOptionsSetKeepPaused(vspVmOptions *options, gboolean keep);

/** vspVmOptionsSetOverwrite: replace a file that holds data (save, dump). Since: 0.1 */
void vspVmOptionsSetOverwrite(vspVmOptions *options, gboolean overwrite);

/** vspVmOptionsSetDomainXml: @xml: (nullable): copied; NULL generates one (save). Since: 0.1 */
void vspVmOptionsSetDomainXml(vspVmOptions *options, const char *xml);

/**
 * vspVmOptionsSetDigest: FALSE: do not seal the image with a digest (save), do not compare the image
 *   with the one in its seal (restore). TRUE by default. Since: 0.1
 */
void vspVmOptionsSetDigest(vspVmOptions *options, gboolean digest);

/** vspVmOptionsSetDumpFormat: @format: QEMU's word, "elf" by default (dump). Since: 0.1 */
void vspVmOptionsSetDumpFormat(vspVmOptions *options, const char *format);

/** vspVmOptionsSetProgress: called from the thread that runs the flow (all). Since: 0.1 */
void vspVmOptionsSetProgress(vspVmOptions *options, vspProgressFunc func, gpointer opaque);

/**
 * vspNoticeFunc:
 * @notice: a whole sentence, valid during the call only
 *
 * Something that is no failure and that the user should know: a cache mode stepped down, a seal
 * ignored, less free space than memory.
 *
 * Since: 0.1
 */
typedef void (*vspNoticeFunc)(const char *notice, gpointer opaque);

/** vspVmOptionsSetNotice: called from the thread that runs the flow (all). Since: 0.1 */
void vspVmOptionsSetNotice(vspVmOptions *options, vspNoticeFunc func, gpointer opaque);

/**
 * vspVmSave:
 * @qmp: path of the VM's QMP monitor socket
 * @path: the file or block device to write
 * @options: (nullable): see there
 * @cancellable: (nullable): cancel from any thread: the VM goes back to the state it had and the
 *   file that was created is removed
 * @report: (out) (optional) (transfer full): statistics, `a{sv}`, not floating
 * @error: return location
 *
 * Saves the VM's memory and device state into a libvirt save image, and ends QEMU. Success means
 * that the image is complete and durable. On failure the VM is back in the state it had, unless
 * the code is %VSP_ERROR_NOT_RESTORED.
 *
 * Blocks; call it from a thread of its own in a program with a main loop.
 *
 * Returns: 0, or -1 with @error set
 *
 * Since: 0.1
 */
int vspVmSave(const char *qmp,
              const char *path,
              const vspVmOptions *options,
              GCancellable *cancellable,
              GVariant **report,
              GError **error);

/**
 * vspVmRestore:
 * @path: the image
 * @qmp: (nullable): path of the QMP monitor socket of a QEMU that waits with `-incoming defer`
 * @command: (nullable): NULL-terminated QEMU command to start instead; exactly one of the two
 * @options: (nullable): see there
 * @cancellable: (nullable): a QEMU started here is ended again
 * @report: (out) (optional) (transfer full): statistics; has the "pid" of a QEMU started here
 * @error: return location
 *
 * The image is only read. A command recorded in the image is never run by this.
 *
 * A QEMU started here goes on after the call; it is not a child to be waited for.
 *
 * Returns: 0, or -1 with @error set
 *
 * Since: 0.1
 */
int vspVmRestore(const char *path,
                 const char *qmp,
                 const char *const *command,
                 const vspVmOptions *options,
                 GCancellable *cancellable,
                 GVariant **report,
                 GError **error);

/**
 * vspVmDump:
 * @qmp: path of the VM's QMP monitor socket
 * @path: the file or block device to write
 * @options: (nullable): see there
 * @cancellable: (nullable): cancel from any thread
 * @report: (out) (optional) (transfer full): statistics, `a{sv}`, not floating
 * @error: return location
 *
 * Writes a core dump of the VM's memory. The VM goes back to the state it had, whatever happens.
 *
 * Returns: 0, or -1 with @error set
 *
 * Since: 0.1
 */
int vspVmDump(const char *qmp,
              const char *path,
              const vspVmOptions *options,
              GCancellable *cancellable,
              GVariant **report,
              GError **error);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(vspVmOptions, vspVmOptionsFree)

VSP_END_DECLS

#endif /* VSP_VM_H */
