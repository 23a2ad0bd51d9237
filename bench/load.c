/*
 * load.c: the stream that a benchmark sends through a program, and takes out of it
 *
 * The payload is made before any clock runs. What goes out is a function of the position in the
 * stream, so that a file can be compared with it afterwards.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "load.h"

/* Larger than any last-level cache that we know of: reading it costs what reading a guest's RAM
 * does. */
#define PAYLOAD (64u << 20)

#define MAX(a, b) ((a) > (b) ? (a) : (b))

#define UNIT (VSP_LOAD_HEADER + VSP_LOAD_PAGE)
#define BATCH (VSP_LOAD_PIECES / 2 * UNIT)

int
vspLoadMake(vspLoad *self)
{
    uint64_t state = UINT64_C(0x9e3779b97f4a7c15);
    size_t i;

    if (self->chunk > PAYLOAD) {
        errno = EINVAL;
        return -1;
    }
    if (self->qemu)
        self->bytes = (self->bytes + BATCH - 1) / BATCH * BATCH;
    /* A short stream needs no more than itself, in whole pages and chunks. */
    self->payloadBytes = PAYLOAD;
    if (self->bytes < PAYLOAD / 2)
        self->payloadBytes =
            MAX(self->bytes, self->chunk) / VSP_LOAD_PAGE * VSP_LOAD_PAGE + VSP_LOAD_PAGE;
    /* The mapping is page-aligned, as a guest's RAM is. */
    self->payload =
        mmap(NULL, self->payloadBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (self->payload == MAP_FAILED) {
        self->payload = NULL;
        return -1;
    }
    /* As QEMU asks for a guest's RAM. It is no matter if it is refused. */
    madvise(self->payload, self->payloadBytes, MADV_HUGEPAGE);
    for (i = 0; i < self->payloadBytes; i += sizeof(state)) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        memcpy(self->payload + i, &state, sizeof(state));
    }
    for (i = 0; i < self->payloadBytes / VSP_LOAD_PAGE; i++)
        if (i % 100 < self->zero)
            memset(self->payload + i * VSP_LOAD_PAGE, 0, VSP_LOAD_PAGE);
    return 0;
}

void
vspLoadClear(vspLoad *self)
{
    if (self->payload)
        munmap(self->payload, self->payloadBytes);
    self->payload = NULL;
}

/* The pieces of the batch at @offset, a multiple of the batch's length; returns that length. */
static size_t
batchAt(const vspLoad *self, uint64_t offset, struct iovec *pieces, int *count)
{
    static char header[VSP_LOAD_HEADER] = "page at";
    size_t slots = self->payloadBytes / (self->qemu ? VSP_LOAD_PAGE : self->chunk);
    size_t length;
    int i;

    if (!self->qemu) {
        length = self->bytes - offset < self->chunk ? self->bytes - offset : self->chunk;
        pieces[0] =
            (struct iovec){ self->payload + offset / self->chunk % slots * self->chunk, length };
        *count = 1;
        return length;
    }
    for (i = 0; i < VSP_LOAD_PIECES / 2; i++) {
        char *page = self->payload + (offset / UNIT + i) % slots * VSP_LOAD_PAGE;

        pieces[2 * i] = (struct iovec){ header, VSP_LOAD_HEADER };
        pieces[2 * i + 1] = (struct iovec){ page, VSP_LOAD_PAGE };
    }
    *count = VSP_LOAD_PIECES;
    return BATCH;
}

static int
writeAll(int fd, struct iovec *pieces, int count)
{
    while (count > 0) {
        ssize_t got = writev(fd, pieces, count);

        if (got < 0) {
            if (errno == EINTR)
                continue;
            return -1;
        }
        while (count > 0 && (size_t)got >= pieces->iov_len) {
            got -= pieces->iov_len;
            pieces++;
            count--;
        }
        if (count > 0) {
            pieces->iov_base = (char *)pieces->iov_base + got;
            pieces->iov_len -= got;
        }
    }
    return 0;
}

int
vspLoadProduce(const vspLoad *self, int fd)
{
    struct iovec pieces[VSP_LOAD_PIECES];
    uint64_t offset = 0;
    int count;

    while (offset < self->bytes) {
        size_t length = batchAt(self, offset, pieces, &count);

        if (writeAll(fd, pieces, count) < 0)
            return -1;
        offset += length;
    }
    return 0;
}

int
vspLoadConsume(const vspLoad *self, int fd, const char *expect, uint64_t *bytes)
{
    size_t size = self->qemu ? VSP_LOAD_QEMU_READ : self->chunk;
    char *buffer = malloc(size);
    int result = -1;
    ssize_t got;

    *bytes = 0;
    if (!buffer)
        return -1;
    /* Not the first read is to pay for the buffer's pages. */
    memset(buffer, 1, size);
    for (;;) {
        got = read(fd, buffer, size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        if (expect && memcmp(buffer, expect + *bytes, got) != 0) {
            errno = EILSEQ;
            break;
        }
        *bytes += got;
    }
    if (got == 0)
        result = 0;
    free(buffer);
    return result;
}

int
vspLoadCompare(const vspLoad *self, const char *path)
{
    struct iovec pieces[VSP_LOAD_PIECES];
    uint64_t offset = 0;
    int result = -1;
    struct stat st;
    char *map;
    int fd, i, count;

    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) < 0)
        goto cleanup;
    if ((uint64_t)st.st_size != self->bytes) {
        errno = EILSEQ;
        goto cleanup;
    }
    map = mmap(NULL, self->bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED)
        goto cleanup;
    while (offset < self->bytes) {
        batchAt(self, offset, pieces, &count);
        for (i = 0; i < count; i++) {
            if (memcmp(map + offset, pieces[i].iov_base, pieces[i].iov_len) != 0)
                break;
            offset += pieces[i].iov_len;
        }
        if (i < count)
            break;
    }
    munmap(map, self->bytes);
    if (offset == self->bytes)
        result = 0;
    else
        errno = EILSEQ;

cleanup:
    close(fd);
    return result;
}
