/*
 * vsp-filewrapper.h: a file descriptor replaced by a pipe or socket with an iohelper behind it
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_FILEWRAPPER_H
#define VSP_FILEWRAPPER_H

#include <vmspool/vsp-macros.h>
#include <vmspool/vsp-report.h>

VSP_BEGIN_DECLS

/**
 * vspFileWrapperFdFlags:
 * @VSP_FILE_WRAPPER_BYPASS_CACHE: keep the file out of the page cache: start at the cache mode
 *   `direct` and step down where the file system refuses
 * @VSP_FILE_WRAPPER_NON_BLOCKING: the caller's new end is O_NONBLOCK
 * @VSP_FILE_WRAPPER_BIG_PIPE: use a pipe, as large as the host allows, instead of the faster
 *   transport that `auto` picks
 * @VSP_FILE_WRAPPER_SPARSE: writing: runs of zeros become holes in a file, and are discarded or zeroed
 *   on a device
 *
 * Since: 0.1
 */
typedef enum {
    VSP_FILE_WRAPPER_BYPASS_CACHE = (1 << 0),
    VSP_FILE_WRAPPER_NON_BLOCKING = (1 << 1),
    VSP_FILE_WRAPPER_BIG_PIPE = (1 << 2),
    VSP_FILE_WRAPPER_SPARSE = (1 << 3),
} vspFileWrapperFdFlags;

/**
 * vspTransport:
 * @VSP_TRANSPORT_AUTO: the faster one on this kernel, a socket pair on Linux
 * @VSP_TRANSPORT_PIPE: a pipe enlarged to /proc/sys/fs/pipe-max-size (4 MiB at the most)
 * @VSP_TRANSPORT_SOCKET: an AF_UNIX stream socket pair with a large send buffer
 *
 * Since: 0.1
 */
typedef enum {
    VSP_TRANSPORT_AUTO = 0,
    VSP_TRANSPORT_PIPE = 1,
    VSP_TRANSPORT_SOCKET = 2,
} vspTransport;

/**
 * vspCacheMode:
 * @VSP_CACHE_AUTO: the fastest including the sync: writing, `direct`; reading, `cached` for what is in
 *   memory already, else `direct`
 * @VSP_CACHE_DIRECT: O_DIRECT
 * @VSP_CACHE_DONTCACHE: RWF_DONTCACHE (Linux 6.14)
 * @VSP_CACHE_PACED: write-behind in a bounded window, pages dropped after it
 * @VSP_CACHE_CACHED: the plain page cache
 *
 * The ladder from "leaves the page cache alone" to "fills it". A mode that the file system or the
 * kernel refuses is replaced by the next one down, unless the options ask for strictness.
 *
 * Since: 0.1
 */
typedef enum {
    VSP_CACHE_AUTO = 0,
    VSP_CACHE_DIRECT = 1,
    VSP_CACHE_DONTCACHE = 2,
    VSP_CACHE_PACED = 3,
    VSP_CACHE_CACHED = 4,
} vspCacheMode;

typedef struct _vspFileWrapperOptions vspFileWrapperOptions;
typedef struct _vspFileWrapperFd vspFileWrapperFd;

/**
 * vspFileWrapperOptionsNew:
 *
 * Returns: (transfer full): options that say "choose what is fastest"; free with
 *   vspFileWrapperOptionsFree()
 *
 * Since: 0.1
 */
vspFileWrapperOptions *vspFileWrapperOptionsNew(void);

/** vspFileWrapperOptionsFree: @options: (nullable). Since: 0.1 */
void vspFileWrapperOptionsFree(vspFileWrapperOptions *options);

/** vspFileWrapperOptionsCopy: (transfer full): of NULL, new options. Since: 0.1 */
vspFileWrapperOptions *vspFileWrapperOptionsCopy(const vspFileWrapperOptions *options);

/** vspFileWrapperOptionsSetFlags: @flags: #vspFileWrapperFdFlags. Since: 0.1 */
void vspFileWrapperOptionsSetFlags(vspFileWrapperOptions *options, unsigned int flags);

/**
 * vspFileWrapperOptionsSetTransport:
 *
 * Wins over %VSP_FILE_WRAPPER_BIG_PIPE. vspCopy() makes no transport and ignores it.
 *
 * Since: 0.1
 */
void vspFileWrapperOptionsSetTransport(vspFileWrapperOptions *options, vspTransport transport);

/**
 * vspFileWrapperOptionsSetCacheMode:
 *
 * Wins over %VSP_FILE_WRAPPER_BYPASS_CACHE, which is the same as asking for %VSP_CACHE_DIRECT.
 *
 * Since: 0.1
 */
void vspFileWrapperOptionsSetCacheMode(vspFileWrapperOptions *options, vspCacheMode mode);

/**
 * vspFileWrapperOptionsSetStrict:
 * @strict: TRUE to fail (%VSP_ERROR_NO_DIRECT_IO) where the cache mode asked for can't be had
 *
 * The refusal comes from vspFileWrapperFdNewWithOptions() wherever the file system can be asked
 * beforehand, else from vspFileWrapperFdClose().
 *
 * Since: 0.1
 */
void vspFileWrapperOptionsSetStrict(vspFileWrapperOptions *options, gboolean strict);

/**
 * vspFileWrapperOptionsSetEngine:
 * @engine: (nullable): "uring", "threads", "zerocopy" or "sync"; NULL or "auto" chooses by
 *   what the host can do. An unknown word makes vspFileWrapperFdNewWithOptions() fail.
 *
 * Since: 0.1
 */
void vspFileWrapperOptionsSetEngine(vspFileWrapperOptions *options, const char *engine);

/**
 * vspFileWrapperOptionsSetBuffers:
 * @count: buffers in the helper's ring, at most 64; 0 for the default
 * @size: bytes in each, a multiple of 64 KiB, at most 64 MiB; 0 for the default
 *
 * The helper's memory is about @count times @size.
 *
 * Since: 0.1
 */
void
vspFileWrapperOptionsSetBuffers(vspFileWrapperOptions *options, unsigned int count, gsize size);

/**
 * vspFileWrapperOptionsSetRateLimit:
 * @bytesPerSecond: 0 for no limit
 *
 * Since: 0.1
 */
void
vspFileWrapperOptionsSetRateLimit(vspFileWrapperOptions *options, guint64 bytesPerSecond);

/**
 * vspFileWrapperOptionsSetIoPriority:
 * @priority: (nullable): "idle", "best-effort" or "realtime", with an optional level from 0 (first) to
 *   7: "best-effort:7"; NULL leaves what the helper inherits
 *
 * A wish: where the kernel refuses it the job is done all the same, and the statistics say so. An
 * unknown word makes vspFileWrapperFdNewWithOptions() fail.
 *
 * Since: 0.1
 */
void
vspFileWrapperOptionsSetIoPriority(vspFileWrapperOptions *options, const char *priority);

/**
 * vspFileWrapperOptionsSetHelperPath:
 * @path: (nullable): absolute path of the helper, NULL to search (see vspFileWrapperFdNew())
 *
 * Since: 0.1
 */
void vspFileWrapperOptionsSetHelperPath(vspFileWrapperOptions *options, const char *path);

/**
 * vspFileWrapperOptionsSetLength:
 * @length: bytes to read from the file, from its current position; G_MAXUINT64 for "to the end"
 *
 * For the reading direction only: where the data ends before the file (or block device) does.
 *
 * Since: 0.1
 */
void vspFileWrapperOptionsSetLength(vspFileWrapperOptions *options, guint64 length);

/**
 * vspFileWrapperOptionsSetCompression:
 * @compression: (nullable): "gzip", "bzip2", "xz", "lzop" or "zstd", with an optional level: "zstd:19"
 *
 * For the writing direction only: what goes into the file is compressed, behind the plain length. If the
 * host can't do it vspFileWrapperFdNewWithOptions() fails; nothing is ever stored uncompressed instead.
 *
 * Since: 0.1
 */
void vspFileWrapperOptionsSetCompression(vspFileWrapperOptions *options, const char *compression);

/**
 * vspFileWrapperOptionsSetDecompression:
 * @format: (nullable): one of the same words, without a level
 *
 * What passes, in either direction, is decompressed on the way, behind the plain length. Data that is cut
 * off is %VSP_ERROR_IMAGE_CUT, and what is damaged, or has something behind it, %VSP_ERROR_IMAGE_CORRUPT.
 *
 * Since: 0.1
 */
void vspFileWrapperOptionsSetDecompression(vspFileWrapperOptions *options, const char *format);

/**
 * vspCompressionCheck:
 * @compression: as for vspFileWrapperOptionsSetCompression()
 *
 * Whether the text is one, and the level one of the format's. Says nothing about the host.
 *
 * Returns: 0, or -1 with %VSP_ERROR_INVALID_ARGUMENT
 *
 * Since: 0.1
 */
int vspCompressionCheck(const char *compression, GError **error);

/**
 * vspFileWrapperOptionsSetDigest:
 * @digest: TRUE to have the XXH3-128 of what is in the file, behind the plain length
 *
 * It is in the statistics, as "digest". Of a file that is written it is what its bytes should be; of one
 * that is read, what they are.
 *
 * Since: 0.1
 */
void vspFileWrapperOptionsSetDigest(vspFileWrapperOptions *options, gboolean digest);

/**
 * vspFileWrapperOptionsSetPlainLength:
 * @length: bytes at the start that are moved as they are, and left out of the digest; 0 for none
 *
 * For a header that goes through the same stream as what it describes.
 *
 * Since: 0.1
 */
void vspFileWrapperOptionsSetPlainLength(vspFileWrapperOptions *options, guint64 length);

/**
 * vspFileDirectFdFlag:
 *
 * Returns: the open(2) flag that bypasses the page cache, 0 where the system has none. The helper
 *   sets the flag itself: a caller need not open with it.
 *
 * Since: 0.1
 */
int vspFileDirectFdFlag(void);

/**
 * vspFileWrapperFdNew:
 * @fd: (inout): a descriptor of a file, open either O_RDONLY (the file will be read from its
 *   current position) or O_WRONLY (it will be written from its current position). On success it is
 *   consumed, and replaced by the caller's end of a pipe or socket, which the caller owns and must
 *   close. On failure it is unchanged and still the caller's.
 * @name: what error messages call the file; nothing is opened by this name
 * @flags: #vspFileWrapperFdFlags
 * @error: return location
 *
 * Starts an iohelper that does all blocking I/O on the file. Returns once the helper has looked at
 * the file and said that it can do the work: exec failures, and a cache mode refused in strict
 * mode, are known here.
 *
 * The helper is the first of: the path in the options; $VMSPOOL_IOHELPER (ignored in a set-uid
 * program); the build tree, if the library was loaded from it; the installed libexec folder.
 *
 * Threads: may be called from any thread, also while others fork. Leaves signal dispositions and
 * masks alone. All descriptors are close-on-exec.
 *
 * Returns: (transfer full): NULL on failure. Free with vspFileWrapperFdFree().
 *
 * Errors: %VSP_ERROR_INVALID_ARGUMENT, %VSP_ERROR_HELPER_MISSING, %VSP_ERROR_HELPER_VERSION,
 *   %VSP_ERROR_HELPER_DIED, %VSP_ERROR_NO_DIRECT_IO, %VSP_ERROR_TIMED_OUT, %VSP_ERROR_IO
 *
 * Since: 0.1
 */
vspFileWrapperFd *
vspFileWrapperFdNew(int *fd, const char *name, unsigned int flags, GError **error);

/**
 * vspFileWrapperFdNewWithOptions:
 * @fd: (inout): see vspFileWrapperFdNew()
 * @name: see vspFileWrapperFdNew()
 * @options: (nullable): copied
 * @error: return location
 *
 * Returns: (transfer full): see vspFileWrapperFdNew()
 *
 * Since: 0.1
 */
vspFileWrapperFd *vspFileWrapperFdNewWithOptions(int *fd,
                                                 const char *name,
                                                 const vspFileWrapperOptions *options,
                                                 GError **error);

/**
 * vspFileWrapperFdClose:
 * @wfd: (nullable): NULL is a success
 * @error: return location
 *
 * Waits for the helper and returns its verdict. 0 means, after writing, that every byte that went
 * into the caller's end is durable; after reading, that every byte was delivered.
 *
 * The caller closes its end first (and whatever duplicate of it there is, in itself or in
 * another process): the helper can't see the end of the stream before. If the end or a duplicate is
 * still open in this process, this fails at once with %VSP_ERROR_STILL_OPEN, and may be called again.
 *
 * Called again after a verdict it returns the same one.
 *
 * Returns: 0, or -1 with @error set
 *
 * Since: 0.1
 */
int vspFileWrapperFdClose(vspFileWrapperFd *wfd, GError **error);

/**
 * vspFileWrapperFdAbort:
 * @wfd: (nullable): the wrapper
 *
 * Kills the helper and waits a bounded time (2 s) for it to go. Idempotent and quiet; after a
 * verdict it does nothing. A later Close fails with %VSP_ERROR_ABORTED, and names the helper's pid
 * if a hung disk kept it from ending.
 *
 * Since: 0.1
 */
void vspFileWrapperFdAbort(vspFileWrapperFd *wfd);

/**
 * vspFileWrapperFdFree:
 * @wfd: (nullable): aborted first if it was never closed
 *
 * Does not close the caller's end.
 *
 * Since: 0.1
 */
void vspFileWrapperFdFree(vspFileWrapperFd *wfd);

/**
 * vspIoPriorityIsValid:
 * @priority: (nullable): a word as vspFileWrapperOptionsSetIoPriority() takes it
 *
 * Returns: whether it is one
 *
 * Since: 0.1
 */
gboolean vspIoPriorityIsValid(const char *priority);

/**
 * vspFileWrapperFdSetRateLimit:
 * @bytesPerSecond: 0 for no limit
 * @error: return location
 *
 * Changes the limit while the job runs; it takes effect at once. From any thread; never blocks.
 *
 * Returns: 0, or -1 if the helper has ended
 *
 * Since: 0.1
 */
int
vspFileWrapperFdSetRateLimit(vspFileWrapperFd *wfd, guint64 bytesPerSecond, GError **error);

/**
 * vspSocketSetSendBuffer:
 * @fd: a socket of any family; borrowed
 * @bytes: what is asked for
 * @error: return location
 *
 * Sizes the send buffer of a socket that the caller made. What the kernel grants is less where it
 * clips; a refusal is answered by asking for half, down to 64 KiB. For a VM socket (AF_VSOCK,
 * AF_HYPERV) the option is the family's own and must be set before connecting or accepting. On TCP a
 * fixed size switches the kernel's own tuning off: seldom what one wants.
 *
 * Each byte is kernel memory for as long as the connection lives, and the kernel counts about double.
 *
 * Returns: bytes granted, -1 on failure
 *
 * Since: 0.1
 */
gssize vspSocketSetSendBuffer(int fd, gsize bytes, GError **error);

/**
 * vspFileWrapperFdGetProgress:
 * @progress: (out): filled with what the helper last reported
 *
 * Never blocks.
 *
 * Since: 0.1
 */
void vspFileWrapperFdGetProgress(vspFileWrapperFd *wfd, vspProgress *progress);

/**
 * vspFileWrapperFdGetStatistics:
 *
 * What the job asked for and got: engine, cache mode, transport, bytes, times. The keys are listed
 * in vmspool-statistics(5). Complete after vspFileWrapperFdClose().
 *
 * Returns: (transfer full): a dictionary, `a{sv}`, not floating
 *
 * Since: 0.1
 */
GVariant *vspFileWrapperFdGetStatistics(vspFileWrapperFd *wfd);

/** vspCacheModeToString: the word, as the tool's options spell it; "unknown" for others. Since: 0.1 */
const char *vspCacheModeToString(vspCacheMode mode);

/** vspCacheModeFromString: FALSE, and @mode unchanged, for what is no such word. Since: 0.1 */
gboolean vspCacheModeFromString(const char *word, vspCacheMode *mode);

/** vspTransportToString: the word, as the tool's options spell it; "unknown" for others. Since: 0.1 */
const char *vspTransportToString(vspTransport transport);

/** vspTransportFromString: FALSE, and @transport unchanged, for what is no such word. Since: 0.1 */
gboolean vspTransportFromString(const char *word, vspTransport *transport);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(vspFileWrapperOptions, vspFileWrapperOptionsFree)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(vspFileWrapperFd, vspFileWrapperFdFree)

VSP_END_DECLS

#endif /* VSP_FILEWRAPPER_H */
