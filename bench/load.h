/*
 * load.h: the stream that a benchmark sends through a program, and takes out of it
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_LOAD_H
#define VSP_LOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What QEMU's migration stream looks like to whoever reads it: 4 KiB pages, each with a header of 8
 * bytes, 64 pieces to a writev(2). */
#define VSP_LOAD_PAGE 4096
#define VSP_LOAD_HEADER 8
#define VSP_LOAD_PIECES 64

/* And what QEMU asks for when it reads: its buffer. */
#define VSP_LOAD_QEMU_READ 32768

typedef struct _vspLoad vspLoad;
struct _vspLoad {
    bool qemu;      /* QEMU's pattern; else plain writes of @chunk */
    size_t chunk;   /* bytes in a plain write or a read */
    unsigned zero;  /* per cent of the pages that are zero */
    uint64_t bytes; /* of the stream; vspLoadMake() rounds it to whole batches of QEMU's pattern */
    char *payload;
    size_t payloadBytes;
};

/* Makes the payload, for writing: nothing in it can be compressed or found twice within 64 MiB. */
int vspLoadMake(vspLoad *self);
void vspLoadClear(vspLoad *self);

/* Writes the whole stream. -1 with errno. */
int vspLoadProduce(const vspLoad *self, int fd);

/* Reads to the end of the stream. @expect: what the bytes must be (EILSEQ if they are not), or
 * NULL. */
int vspLoadConsume(const vspLoad *self, int fd, const char *expect, uint64_t *bytes);

/* Whether a file holds the stream and nothing else; EILSEQ if not. */
int vspLoadCompare(const vspLoad *self, const char *path);

#endif
