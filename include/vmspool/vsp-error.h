/*
 * vsp-error.h: the error domain
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_ERROR_H
#define VSP_ERROR_H

#include <vmspool/vsp-macros.h>

VSP_BEGIN_DECLS

#define VSP_ERROR (vsp_error_quark())

/**
 * vspError:
 * @VSP_ERROR_FAILED: something that a caller can only report
 * @VSP_ERROR_INVALID_ARGUMENT: the call itself is wrong (access mode, flags, option values)
 * @VSP_ERROR_IO: reading, writing, syncing or closing failed; the message has the errno's text
 * @VSP_ERROR_NO_SPACE: the disk, the quota or the file size limit is exhausted
 * @VSP_ERROR_NO_DIRECT_IO: strict mode, and the file system refuses the cache mode asked for
 * @VSP_ERROR_NOT_FOUND: no such file or socket
 * @VSP_ERROR_ACCESS: permission denied
 * @VSP_ERROR_EXISTS: the target holds data already
 * @VSP_ERROR_BUSY: the VM is in the middle of something else
 * @VSP_ERROR_BLOCKED: a device of the VM forbids migration, and so a save
 * @VSP_ERROR_ABORTED: cancelled or aborted by the caller
 * @VSP_ERROR_TIMED_OUT: a limit on waiting was reached
 * @VSP_ERROR_HELPER_MISSING: the iohelper can't be found or started
 * @VSP_ERROR_HELPER_VERSION: library and helper do not speak the same protocol
 * @VSP_ERROR_HELPER_DIED: the iohelper ended without a verdict
 * @VSP_ERROR_STILL_OPEN: Close while the caller still holds the end it was given
 * @VSP_ERROR_IMAGE_EMPTY: the file has no bytes
 * @VSP_ERROR_IMAGE_PARTIAL: the save that wrote it did not finish
 * @VSP_ERROR_IMAGE_FOREIGN: not a save image
 * @VSP_ERROR_IMAGE_CUT: shorter than its header says
 * @VSP_ERROR_IMAGE_CORRUPT: contradicts itself, or its seal
 * @VSP_ERROR_IMAGE_UNSUPPORTED: a version or format that this library can't handle
 * @VSP_ERROR_QEMU: QEMU refused a command or reports a failure
 * @VSP_ERROR_QEMU_LOST: the monitor connection ended
 * @VSP_ERROR_NOT_RESTORED: failed, and the VM could not be put back into the state it had
 * @VSP_ERROR_READER_GONE: the reader of the stream closed before the end
 *
 * What a caller would do differently. Values are stable: a new one is only ever added at the end.
 *
 * Since: 0.1
 */
typedef enum {
    VSP_ERROR_FAILED = 0,
    VSP_ERROR_INVALID_ARGUMENT = 1,
    VSP_ERROR_IO = 2,
    VSP_ERROR_NO_SPACE = 3,
    VSP_ERROR_NO_DIRECT_IO = 4,
    VSP_ERROR_NOT_FOUND = 5,
    VSP_ERROR_ACCESS = 6,
    VSP_ERROR_EXISTS = 7,
    VSP_ERROR_BUSY = 8,
    VSP_ERROR_BLOCKED = 9,
    VSP_ERROR_ABORTED = 10,
    VSP_ERROR_TIMED_OUT = 11,
    VSP_ERROR_HELPER_MISSING = 12,
    VSP_ERROR_HELPER_VERSION = 13,
    VSP_ERROR_HELPER_DIED = 14,
    VSP_ERROR_STILL_OPEN = 15,
    VSP_ERROR_IMAGE_EMPTY = 16,
    VSP_ERROR_IMAGE_PARTIAL = 17,
    VSP_ERROR_IMAGE_FOREIGN = 18,
    VSP_ERROR_IMAGE_CUT = 19,
    VSP_ERROR_IMAGE_CORRUPT = 20,
    VSP_ERROR_IMAGE_UNSUPPORTED = 21,
    VSP_ERROR_QEMU = 22,
    VSP_ERROR_QEMU_LOST = 23,
    VSP_ERROR_NOT_RESTORED = 24,
    VSP_ERROR_READER_GONE = 25,
} vspError;

/** vsp_error_quark: the domain of all errors, as %VSP_ERROR. Since: 0.1 */
GQuark vsp_error_quark(void);

/**
 * vspErrorCodeName:
 * @code: one of #vspError
 *
 * Returns: a stable lower-case word for scripts, such as "no-space"; never NULL
 *
 * Since: 0.1
 */
const char *vspErrorCodeName(int code);

VSP_END_DECLS

#endif /* VSP_ERROR_H */
