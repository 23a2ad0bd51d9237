/*
 * vspstatus.h: the status channel between library and iohelper
 *
 * A SOCK_SEQPACKET pair of which the helper holds one end. Each record is one packet of a fixed
 * size, in the host's byte order (both ends are on one host). docs/helper-protocol.md has the life
 * of a job; the rule that matters: no verdict means failure.
 *
 *   helper → library: hello, progress*, verdict
 *   library → helper: control*; its hangup tells the helper that its daemon is gone
 *
 * A side that meets a version it does not know stops with VSP_ERROR_HELPER_VERSION. New fields go
 * into the reserved room; a new meaning raises the version.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef VSP_STATUS_H
#define VSP_STATUS_H

#include <glib.h>

#define VSP_STATUS_MAGIC 0x50535631u /* "1VSP" in memory on little-endian hosts */
#define VSP_STATUS_VERSION 1

#define VSP_STATUS_DIGEST_SIZE 16 /* XXH3-128 */

typedef enum {
    VSP_STATUS_HELLO = 1,
    VSP_STATUS_PROGRESS = 2,
    VSP_STATUS_VERDICT = 3,
    VSP_STATUS_CONTROL = 16,
} vspStatusType;

/* What was being done when it failed: the words of the message are chosen from it. */
typedef enum {
    VSP_OPERATION_NONE = 0,
    VSP_OPERATION_SETUP = 1,
    VSP_OPERATION_READ = 2,
    VSP_OPERATION_WRITE = 3,
    VSP_OPERATION_TRUNCATE = 4,
    VSP_OPERATION_SYNC = 5,
    VSP_OPERATION_CLOSE = 6,
    VSP_OPERATION_SEEK = 7,
    VSP_OPERATION_MEMORY = 8,
    VSP_OPERATION_DIRECT = 9, /* the cache mode asked for was refused, in strict mode */
    VSP_OPERATION_COMPRESS = 10,
    VSP_OPERATION_DECOMPRESS = 11, /* EBADMSG: not what a compressor wrote; ENODATA: cut off */
    VSP_OPERATION_COMPRESSOR = 12, /* the format asked for can't be had */
} vspOperation;

/* At which end it failed. */
typedef enum {
    VSP_SIDE_NONE = 0,
    VSP_SIDE_FILE = 1,   /* the file that was wrapped */
    VSP_SIDE_STREAM = 2, /* the pipe or socket */
} vspSide;

typedef struct {
    guint32 magic;
    guint16 version;
    guint16 type; /* vspStatusType */
} vspStatusHeader;

/* Everything measured. In each verdict, whether the job went well or not. */
typedef struct {
    guint64 bytesIn;       /* taken from the source */
    guint64 bytesOut;      /* handed to the destination */
    guint64 startOffset;   /* the file's position when the job began */
    guint64 setupNs;       /* start to hello */
    guint64 transferNs;    /* hello to last byte */
    guint64 syncNs;        /* fdatasync and the rest */
    guint64 stallSourceNs; /* of transferNs, spent waiting for bytes to come */
    guint64 stallSinkNs;   /* of transferNs, spent waiting for bytes to go */
    guint64 bufferSize;
    guint32 buffers;
    guint32 maxInFlight;   /* most file I/Os that were under way at once */
    guint32 alignment;     /* bytes, of offset, length and memory in direct mode; 1 elsewhere */
    guint32 cacheMode;     /* vspCacheMode: the rung the file was on at the end */
    guint32 cacheAsked;    /* vspCacheMode */
    guint32 flags;         /* VSP_STATISTICS_* */
    char engine[16];       /* NUL-terminated */
    char endpoint[16];     /* kind of the file: "file", "block", "null", "stream" */
    char notice[128];      /* why something was stepped down; "" if nothing was */
    gint64 cachedBefore;   /* bytes of the range in the page cache when the job began; -1 unknown */
    gint64 cachedAfter;    /* and when it ended */
    guint64 holeBytes;     /* zeros that were left out, or not read */
    guint64 payloadBytes;  /* what was digested or compressed, as it lies in the file */
    guint64 rawBytes;      /* the same as it was in the stream */
    guint8 digest[VSP_STATUS_DIGEST_SIZE]; /* canonical byte order; with VSP_STATISTICS_DIGEST */
    char compression[16];  /* "zstd:3"; "" for none */
    guint64 reserved[7];
} vspStatusStatistics;

#define VSP_STATISTICS_REGISTERED_BUFFERS (1u << 0)
#define VSP_STATISTICS_NO_URING (1u << 1) /* io_uring was refused by the host */
#define VSP_STATISTICS_DIGEST (1u << 2)

typedef struct {
    vspStatusHeader header;
    guint32 pid;
    guint32 features; /* reserved, 0 */
    char release[32]; /* the helper's version, for messages */
    guint64 reserved[8];
} vspStatusHello;

typedef struct {
    vspStatusHeader header;
    guint32 stage; /* vspStage */
    guint32 pad;
    guint64 bytesIn;
    guint64 bytesOut;
    guint64 stallSourceNs;
    guint64 stallSinkNs;
    guint64 reserved[8];
} vspStatusProgress;

typedef struct {
    vspStatusHeader header;
    guint32 ok;        /* 1 done and durable, 0 failed */
    gint32 errnum;     /* errno of the first failure, 0 if it had none */
    guint32 operation; /* vspOperation */
    guint32 side;      /* vspSide */
    guint64 offset;    /* in the file or the stream, bytes */
    char detail[256];  /* the failure as text, without file name or errno's text; may be "" */
    vspStatusStatistics statistics;
    guint64 reserved[8];
} vspStatusVerdict;

typedef struct {
    vspStatusHeader header;
    guint64 rate; /* bytes per second, 0 for no limit */
    guint64 reserved[8];
} vspStatusControl;

typedef union {
    vspStatusHeader header;
    vspStatusHello hello;
    vspStatusProgress progress;
    vspStatusVerdict verdict;
    vspStatusControl control;
} vspStatusRecord;

/* The pair; both ends close-on-exec. 0, or -1 with errno. */
int vspStatusPair(int *library, int *helper);

/* Fills in the header and sends one record. @blocking FALSE drops it when the queue is full. 0, or
 * -1 with errno (EPIPE: the other side is gone). */
int vspStatusSend(int fd, vspStatusRecord *record, vspStatusType type, gboolean blocking);

/* Receives one record without blocking. 1: got one; 0: none there yet; -1 with @error: hangup
 * (VSP_ERROR_HELPER_DIED) or a record that is not of this protocol (VSP_ERROR_HELPER_VERSION). */
int vspStatusReceive(int fd, vspStatusRecord *record, GError **error);

/* As lower-case hex digits. */
char *vspDigestToText(const guint8 digest[VSP_STATUS_DIGEST_SIZE]);

/* The sentence for a failed verdict: operation, @name, offset, errno's text. */
void vspStatusVerdictToError(const vspStatusVerdict *verdict, const char *name, GError **error);

/* Statistics as a dictionary, a{sv}; keys in vmspool-statistics(5). Adds to @builder. */
void vspStatusStatisticsToReport(const vspStatusStatistics *statistics, GVariantBuilder *builder);

#endif /* VSP_STATUS_H */
