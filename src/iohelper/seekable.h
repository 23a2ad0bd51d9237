/*
 * seekable.h: what files and block devices have in common
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef SEEKABLE_H
#define SEEKABLE_H

#include "endpoint.h"

/* A new endpoint with @ops for @fd, standing where @fd stands. NULL if it can't be positioned. */
vspEndpoint *vspSeekableNew(const vspEndpointOps *ops, int fd);

ssize_t vspSeekableRead(vspEndpoint *ep, void *buf, gsize len);
ssize_t vspSeekableWrite(vspEndpoint *ep, const void *buf, gsize len);
ssize_t vspSeekablePread(vspEndpoint *ep, void *buf, gsize len, off_t offset);
ssize_t vspSeekablePwrite(vspEndpoint *ep, const void *buf, gsize len, off_t offset);
ssize_t vspPlainComplete(vspEndpoint *ep, vspOperation op, off_t offset, gsize len, ssize_t result);
gboolean vspPlainIsHole(vspEndpoint *ep, off_t offset, gsize len);
int vspSeekableSync(vspEndpoint *ep);
int vspPlainFinish(vspEndpoint *ep);
int vspPlainClose(vspEndpoint *ep);
void vspPlainFree(vspEndpoint *ep);

#endif /* SEEKABLE_H */
