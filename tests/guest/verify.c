/*
 * verify.c: the test guest's pattern, computed on the host
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE 4096u

typedef struct {
    uint32_t seed;
    uint32_t share;
    uint32_t shift;
} Pattern;

static int
patternPageIsZero(const Pattern *pattern, uint32_t address)
{
    return ((((address >> pattern->shift) ^ pattern->seed) * 0x7f4a7c15u) >> 24) < pattern->share;
}

static uint64_t
patternWord(const Pattern *pattern, uint64_t address)
{
    uint64_t word = (address + ((uint64_t)pattern->seed << 32)) * UINT64_C(0x9e3779b97f4a7c15);

    word ^= word >> 32;
    word *= UINT64_C(0xbf58476d1ce4e5b9);
    return word ^ (word >> 29);
}

static void
patternPage(const Pattern *pattern, uint64_t address, uint64_t *page)
{
    size_t i;

    if (patternPageIsZero(pattern, (uint32_t)address)) {
        memset(page, 0, PAGE);
        return;
    }
    for (i = 0; i < PAGE / sizeof(*page); i++)
        page[i] = patternWord(pattern, address + i * sizeof(*page));
}

static uint64_t
number(const char *text)
{
    char *end;
    uint64_t value;

    errno = 0;
    value = strtoull(text, &end, 0);
    if (errno || end == text || *end) {
        fprintf(stderr, "not a number: %s\n", text);
        exit(2);
    }
    return value;
}

/* Compares LENGTH bytes at OFFSET of FILE with what the guest has at the physical ADDRESS. The
 * first that differs is told, and the exit status is 1. */
int
main(int argc, char **argv)
{
    uint64_t offset, address, length, done;
    uint64_t expected[PAGE / 8];
    uint64_t found[PAGE / 8];
    Pattern pattern;
    FILE *file;

    if (argc != 8) {
        fprintf(stderr, "usage: %s FILE OFFSET ADDRESS LENGTH SEED SHARE SHIFT\n", argv[0]);
        return 2;
    }
    offset = number(argv[2]);
    address = number(argv[3]);
    length = number(argv[4]);
    pattern.seed = (uint32_t)number(argv[5]);
    pattern.share = (uint32_t)number(argv[6]);
    pattern.shift = (uint32_t)number(argv[7]);
    if (address % PAGE || length % PAGE) {
        fprintf(stderr, "address and length must be whole pages\n");
        return 2;
    }

    file = fopen(argv[1], "rb");
    if (!file || fseeko(file, (off_t)offset, SEEK_SET) < 0) {
        fprintf(stderr, "%s: %s\n", argv[1], strerror(errno));
        return 2;
    }
    for (done = 0; done < length; done += PAGE) {
        if (fread(found, PAGE, 1, file) != 1) {
            fprintf(stderr, "%s ends within the page at %#" PRIx64 "\n", argv[1], address + done);
            return 1;
        }
        patternPage(&pattern, address + done, expected);
        if (memcmp(found, expected, PAGE) != 0) {
            fprintf(stderr, "the page at %#" PRIx64 " differs\n", address + done);
            return 1;
        }
    }
    fclose(file);
    return 0;
}
