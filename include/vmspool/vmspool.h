/*
 * vmspool.h: everything
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VMSPOOL_H
#define VMSPOOL_H

#include <vmspool/vsp-macros.h>
#include <vmspool/vsp-error.h>
#include <vmspool/vsp-report.h>
#include <vmspool/vsp-filewrapper.h>
#include <vmspool/vsp-copy.h>
#include <vmspool/vsp-saveimage.h>
#include <vmspool/vsp-vm.h>

#endif /* VMSPOOL_H */
