/*
 * vsptransport.h: the pipe or socket pair between the caller and the iohelper
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_TRANSPORT_H
#define VSP_TRANSPORT_H

#include <vmspool/vsp-filewrapper.h>

typedef struct {
    vspTransport kind;     /* what it is: pipe or socket */
    int readEnd;           /* owned, close-on-exec */
    int writeEnd;          /* owned, close-on-exec */
    gsize asked;           /* buffer size asked for first, bytes */
    gsize granted;         /* read back from the kernel, bytes */
    const char *fallback;  /* why it is not the kind asked for, or NULL; a constant */
} vspTransportPair;

/* Makes the pair. Never fails for a buffer that can't be had: it steps down. */
int vspTransportOpen(vspTransport kind, vspTransportPair *pair, GError **error);
void vspTransportClose(vspTransportPair *pair);

/* Enlarges the pipe @fd belongs to, stepping down by halves; returns what it then has, 0 if @fd is
 * no pipe. */
gsize vspTransportEnlargePipe(int fd);

#endif /* VSP_TRANSPORT_H */
