/*
 * wrapperutil.h: what the tests of the file wrapper do again and again
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_WRAPPERUTIL_H
#define VSP_WRAPPERUTIL_H

#include <vmspool/vsp-error.h>
#include <vmspool/vsp-filewrapper.h>

/* Wraps, and never fails. */
vspFileWrapperFd *wrapperNew(int *fd, const char *name, unsigned int flags);

/* The helper is @path. */
vspFileWrapperOptions *wrapperOptionsWithHelper(const char *path);

/* Writes the stream of testdata.h from its beginning, up to @length or the first failure, waiting
 * where
 * @fd does not block. Returns the bytes that went in; errno is that of the failure. */
guint64 wrapperFeed(int fd, guint64 length);

/* Reads to the end, which has to be that of testdata.h from @offset on. Returns the bytes. */
guint64 wrapperDrain(int fd, guint64 offset);

/* Puts the first @length bytes of testdata.h into a new file. */
void wrapperMakeFile(const char *path, guint64 length);

/* The file is that, no more and no less. */
void wrapperAssertFile(const char *path, guint64 length);

/* Close succeeds, or fails with @code and a message in which all of the words are, up to a NULL. */
void wrapperAssertClosed(vspFileWrapperFd *wfd);
void wrapperAssertFailed(vspFileWrapperFd *wfd, int code, ...) G_GNUC_NULL_TERMINATED;

/* The only child of this process. */
pid_t wrapperFindHelper(void);

/* A folder with links to the fake helper, whose name there tells it what to do. */
char *wrapperFakeHelper(const char *dir, const char *name);

#endif /* VSP_WRAPPERUTIL_H */
