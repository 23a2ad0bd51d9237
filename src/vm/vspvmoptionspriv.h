/*
 * vspvmoptionspriv.h: what the flows see of the options
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_VMOPTIONSPRIV_H
#define VSP_VMOPTIONSPRIV_H

#include <vmspool/vsp-vm.h>

struct _vspVmOptions {
    vspFileWrapperOptions *wrapper; /* never NULL */
    vspRunState runState;
    gboolean keepPaused;
    gboolean overwrite;
    gboolean digest;
    char *domainXml;
    char *dumpFormat; /* never NULL */
    vspProgressFunc progress;
    gpointer progressOpaque;
    vspNoticeFunc notice;
    gpointer noticeOpaque;
};

#endif /* VSP_VMOPTIONSPRIV_H */
