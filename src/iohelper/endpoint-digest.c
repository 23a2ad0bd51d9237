/*
 * endpoint-digest.c: a stage that digests what passes: XXH3-128
 *
 * A thread of its own does it, for the copying out of (or into) the stream is what the rest waits for,
 * and looks at the engine's buffers where they lie: nobody changes them while they wait for the disk.
 * When saving, a buffer is read into again only once its bytes are digested; when restoring, write()
 * digests and delivers at the same time and returns when both are done, because the buffer is then free.
 *
 * The one home of libxxhash.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <xxhash.h>

#include "stage.h"

/* Pieces that may wait. Pieces that lie side by side are one, so a few are enough. */
#define QUEUE_MAX 64

typedef struct {
    const char *data;
    gsize len;
} Piece;

typedef struct {
    vspEndpoint base;
    XXH3_state_t *state;
    guint64 plain; /* bytes still to pass as they are */
    guint64 bytes; /* handed over to be digested */
    gsize ahead;   /* restoring: of what comes next, handed over already */

    GThread *thread; /* NULL until there is something to do */
    GMutex lock;     /* guards what follows */
    GCond changed;
    Piece queue[QUEUE_MAX]; /* a ring; the first is being worked on if @busy */
    guint first;
    guint count;
    gboolean busy;
    gboolean ended;
} DigestEndpoint;

static DigestEndpoint *
digestOf(vspEndpoint *ep)
{
    return (DigestEndpoint *) ep;
}

static Piece *
pieceAt(DigestEndpoint *digest, guint i)
{
    return &digest->queue[(digest->first + i) % QUEUE_MAX];
}

static gpointer
work(gpointer opaque)
{
    DigestEndpoint *digest = opaque;

    g_mutex_lock(&digest->lock);
    for (;;) {
        Piece piece;

        while (digest->count == 0 && !digest->ended)
            g_cond_wait(&digest->changed, &digest->lock);
        if (digest->count == 0)
            break;
        piece = *pieceAt(digest, 0);
        digest->busy = TRUE;
        g_mutex_unlock(&digest->lock);

        XXH3_128bits_update(digest->state, piece.data, piece.len);

        g_mutex_lock(&digest->lock);
        digest->busy = FALSE;
        digest->first = (digest->first + 1) % QUEUE_MAX;
        digest->count--;
        g_cond_broadcast(&digest->changed);
    }
    g_mutex_unlock(&digest->lock);
    return NULL;
}

static void
handOver(DigestEndpoint *digest, const char *data, gsize len)
{
    Piece *last;

    if (len == 0)
        return;
    digest->bytes += len;
    if (!digest->thread)
        digest->thread = g_thread_new("digest", work, digest);

    g_mutex_lock(&digest->lock);
    while (digest->count == QUEUE_MAX)
        g_cond_wait(&digest->changed, &digest->lock);
    last = digest->count > (digest->busy ? 1 : 0) ? pieceAt(digest, digest->count - 1) : NULL;
    if (last && last->data + last->len == data) {
        last->len += len;
    } else {
        *pieceAt(digest, digest->count++) = (Piece){ data, len };
        g_cond_broadcast(&digest->changed);
    }
    g_mutex_unlock(&digest->lock);
}

/* Waits until nobody looks at [@data, @data + @len) any more. */
static void
waitFor(DigestEndpoint *digest, const char *data, gsize len)
{
    guint i = 0;

    if (!digest->thread)
        return;
    g_mutex_lock(&digest->lock);
    while (i < digest->count) {
        const Piece *piece = pieceAt(digest, i);

        if (piece->data < data + len && data < piece->data + piece->len) {
            g_cond_wait(&digest->changed, &digest->lock);
            i = 0;
        } else {
            i++;
        }
    }
    g_mutex_unlock(&digest->lock);
}

static gsize
passPlain(DigestEndpoint *digest, gsize len)
{
    gsize plain = MIN(digest->plain, len);

    digest->plain -= plain;
    return plain;
}

static ssize_t
digestRead(vspEndpoint *ep, void *buf, gsize len)
{
    DigestEndpoint *digest = digestOf(ep);
    gsize plain;
    ssize_t n;

    waitFor(digest, buf, len);
    n = vspEndpointRead(ep->inner, buf, len);
    if (n <= 0)
        return n;
    plain = passPlain(digest, n);
    handOver(digest, (char *) buf + plain, n - plain);
    return n;
}

static ssize_t
digestWrite(vspEndpoint *ep, const void *buf, gsize len)
{
    DigestEndpoint *digest = digestOf(ep);
    ssize_t n;

    if (digest->plain > 0) {
        n = vspEndpointWrite(ep->inner, buf, MIN(len, digest->plain));
        if (n > 0)
            passPlain(digest, n);
        return n;
    }
    if (len > digest->ahead) {
        handOver(digest, (const char *) buf + digest->ahead, len - digest->ahead);
        digest->ahead = len;
    }
    n = vspEndpointWrite(ep->inner, buf, len);
    waitFor(digest, buf, len);
    if (n > 0)
        digest->ahead -= n;
    return n;
}

static void
endThread(DigestEndpoint *digest)
{
    if (!digest->thread)
        return;
    g_mutex_lock(&digest->lock);
    digest->ended = TRUE;
    g_cond_broadcast(&digest->changed);
    g_mutex_unlock(&digest->lock);
    g_thread_join(g_steal_pointer(&digest->thread));
}

static int
digestFinish(vspEndpoint *ep)
{
    endThread(digestOf(ep));
    return vspEndpointFinish(ep->inner);
}

static void
digestFree(vspEndpoint *ep)
{
    DigestEndpoint *digest = digestOf(ep);

    endThread(digest);
    vspEndpointFree(ep->inner);
    XXH3_freeState(digest->state);
    g_mutex_clear(&digest->lock);
    g_cond_clear(&digest->changed);
    g_free(digest);
}

static const vspEndpointOps digestOps = {
    .kind = "digest",
    .read = digestRead,
    .write = digestWrite,
    .pread = vspStagePread,
    .pwrite = vspStagePwrite,
    .complete = vspStageComplete,
    .zero = vspStageZero,
    .isHole = vspStageIsHole,
    .finish = digestFinish,
    .truncate = vspStageTruncate,
    .sync = vspStageSync,
    .close = vspStageClose,
    .free = digestFree,
};

vspEndpoint *
vspEndpointDigestNew(vspEndpoint *inner, guint64 plain)
{
    DigestEndpoint *digest = g_new0(DigestEndpoint, 1);

    vspStageInit(&digest->base, &digestOps, inner);
    digest->plain = plain;
    digest->state = XXH3_createState();
    g_mutex_init(&digest->lock);
    g_cond_init(&digest->changed);
    XXH3_128bits_reset(digest->state);
    return &digest->base;
}

guint64
vspEndpointDigestGet(vspEndpoint *ep, guint8 result[VSP_STATUS_DIGEST_SIZE])
{
    DigestEndpoint *digest = digestOf(ep);
    XXH128_canonical_t canonical;

    g_assert(ep->ops == &digestOps && !digest->thread);
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(digest->state));
    memcpy(result, canonical.digest, VSP_STATUS_DIGEST_SIZE);
    return digest->bytes;
}
