/*
 * imageutil.h: save images for tests, put together byte by byte and not by the writer
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_IMAGEUTIL_H
#define VSP_IMAGEUTIL_H

#include <vmspool/vsp-saveimage.h>

#define IMAGE_XML                                                                                  \
    "<domain type='kvm'><name>guest</name><uuid>2ec0b2a6-5a0c-4a4f-9f9c-3d8a8a2f6b11</uuid>"       \
    "<memory unit='MiB'>64</memory></domain>"
#define IMAGE_COOKIE "<cookie><cpu/></cookie>"
#define IMAGE_PAYLOAD "QEVM\0\0\0\003the state of a machine"

/* Where the numbers of the header are. */
enum {
    IMAGE_VERSION = 0x10,
    IMAGE_DATA_LEN = 0x14,
    IMAGE_WAS_RUNNING = 0x18,
    IMAGE_FORMAT = 0x1c,
    IMAGE_COOKIE_OFFSET = 0x20,
};

typedef struct {
    char *directory;
    char *path; /* in it, for one image */
} imageFixture;

/* Registers a test that gets a directory of its own. */
void imageAddTest(const char *path, void (*func)(imageFixture *, gconstpointer));

/* Version 2, host order, running, raw; @payload is how much of IMAGE_PAYLOAD it gets. */
GByteArray *
imageMake(const char *magic, const char *xml, const char *cookie, gsize padding, gsize payload);

/* Complete, with all of the above and 100 bytes of padding. */
GByteArray *imageMakeGood(void);

/* Puts @value at @offset in the host's order. */
void imagePoke(GByteArray *image, gsize offset, guint32 value);

/* The header's numbers in the other byte order. */
void imageSwapNumbers(GByteArray *image);

/* A seal, by the specification and not by the library. */
void imagePutSeal(GByteArray *image, guint32 flags, guint64 length, guint8 fill, guint8 version);

vspSaveImage *imageOpenBytes(imageFixture *self, const void *bytes, gsize len, GError **error);
vspSaveImage *imageOpenGood(imageFixture *self, GByteArray *image);
void imageAssertRefused(imageFixture *self, const void *bytes, gsize len, int code);
guint imageCountNotices(const vspSaveImage *image);

#endif /* VSP_IMAGEUTIL_H */
