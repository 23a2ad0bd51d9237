/*
 * vspfilewrapperpriv.h: what the flows need of a wrapper besides the public calls
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_FILEWRAPPERPRIV_H
#define VSP_FILEWRAPPERPRIV_H

#include <vmspool/vsp-filewrapper.h>

struct _vspFileWrapperOptions {
    unsigned int flags;
    vspTransport transport;
    vspCacheMode cacheMode;
    gboolean strict;
    char *engine;
    unsigned int buffers;
    gsize bufferSize;
    char *helperPath;
    guint64 rateLimit;
    char *ioPriority;
    guint64 length;
    char *compression;
    char *decompression;
    gboolean digest;
    guint64 plainLength;
};

/* The cache mode that @options come down to, flags included; AUTO for NULL. */
vspCacheMode vspFileWrapperOptionsGetCacheMode(const vspFileWrapperOptions *options);

/* Class and level as ioprio_set(2) takes them, of "best-effort:7". */
gboolean vspIoPriorityParse(const char *priority, int *ioClass, int *ioLevel);

/* 0, or -1 with VSP_ERROR_INVALID_ARGUMENT for what no helper can do. @name is for the message. */
int
vspFileWrapperOptionsCheck(const vspFileWrapperOptions *options, const char *name, GError **error);

/* Borrowed. Readable when vspFileWrapperFdProcess() has something to do. */
int vspFileWrapperFdGetStatusFd(vspFileWrapperFd *wfd);

/* Takes in what the helper reported, without blocking. TRUE once there is a verdict, or there can be
 * none any more: vspFileWrapperFdClose() will then return at once. */
gboolean vspFileWrapperFdProcess(vspFileWrapperFd *wfd);

/* Why something was stepped down, or NULL. Valid after Close; owned by @wfd. */
const char *vspFileWrapperFdGetNotice(vspFileWrapperFd *wfd);

/* Bytes the helper handed to the destination, by its verdict. */
guint64 vspFileWrapperFdGetBytes(vspFileWrapperFd *wfd);

/* The digest of what is in the file, VSP_STATUS_DIGEST_SIZE bytes owned by @wfd, if it was asked for;
 * else NULL. Valid after a Close that succeeded. @bytes: (nullable): how many were digested. */
const guint8 *vspFileWrapperFdGetDigest(vspFileWrapperFd *wfd, guint64 *bytes);

/* Like NewWithOptions(), with both ends given: no transport is made, nothing is replaced. @file and
 * @stream are borrowed; @writing says whether @file is written (from @stream) or read (into it). For
 * vspCopy(). */
vspFileWrapperFd *vspFileWrapperFdNewBetween(int file,
                                             int stream,
                                             const char *name,
                                             const vspFileWrapperOptions *options,
                                             gboolean writing,
                                             GError **error);

#endif /* VSP_FILEWRAPPERPRIV_H */
