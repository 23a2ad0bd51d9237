/*
 * vspvmdescribe.h: the domain XML of a VM that libvirt does not manage
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_VMDESCRIBE_H
#define VSP_VMDESCRIBE_H

#include "vspflow.h"
#include "vspqmp.h"
#include "vspxml.h"

/* What QEMU and /proc tell about the VM. What they do not tell is left out, with a notice where the
 * user will miss it. NULL with @error only when the monitor is of no use any more. */
vspDomainXml *vspVmDescribe(vspQmp *qmp, vspFlow *flow, GError **error);

#endif /* VSP_VMDESCRIBE_H */
