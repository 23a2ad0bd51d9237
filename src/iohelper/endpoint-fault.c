/*
 * endpoint-fault.c: an endpoint that fails on request, around a real one
 *
 * A spec is a comma-separated list of
 *
 *   OPERATION@N=WHAT      the N-th call of it (from 1)
 *   OPERATION@N+=WHAT     that and each later one
 *
 * with OPERATION one of read, write, truncate, sync, close, and WHAT an errno's name or "short"
 * (half of it, at least one byte). For the tests; not in the installed helper.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cache.h"
#include "endpoint.h"

#define SHORT 0 /* in place of an errno */

typedef struct {
    vspOperation op;
    guint from;
    gboolean onwards;
    int what; /* errno, or SHORT */
} Rule;

typedef struct {
    vspEndpoint base;
    GArray *rules;
    guint counts[16]; /* calls so far, by operation */
} FaultEndpoint;

static const struct {
    const char *name;
    int value;
} operations[] = {
    { "read", VSP_OPERATION_READ },
    { "write", VSP_OPERATION_WRITE },
    { "truncate", VSP_OPERATION_TRUNCATE },
    { "sync", VSP_OPERATION_SYNC },
    { "close", VSP_OPERATION_CLOSE },
}, faults[] = {
    { "short", SHORT },       { "EINTR", EINTR },   { "EAGAIN", EAGAIN }, { "ENOSPC", ENOSPC },
    { "EDQUOT", EDQUOT },     { "EFBIG", EFBIG },   { "EIO", EIO },       { "EINVAL", EINVAL },
    { "ENOMEM", ENOMEM },     { "EPIPE", EPIPE },   { "EROFS", EROFS },   { "EBADF", EBADF },
    { "EOPNOTSUPP", EOPNOTSUPP },
};

#define LOOK_UP(table, word, result)                                                               \
    lookUp((const void *) (table), G_N_ELEMENTS(table), (word), (result))

static gboolean
lookUp(const void *table, gsize count, const char *word, int *result)
{
    const struct {
        const char *name;
        int value;
    } *entries = table;

    for (gsize i = 0; i < count; i++) {
        if (g_str_equal(entries[i].name, word)) {
            *result = entries[i].value;
            return TRUE;
        }
    }
    return FALSE;
}

static FaultEndpoint *
faultOf(vspEndpoint *ep)
{
    return (FaultEndpoint *) ep;
}

/* Counts a call. Returns whether a rule applies, and which errno (or SHORT). */
static gboolean
strike(FaultEndpoint *fault, vspOperation op, int *what)
{
    guint n = ++fault->counts[op];

    for (guint i = 0; i < fault->rules->len; i++) {
        const Rule *rule = &g_array_index(fault->rules, Rule, i);

        if (rule->op == op && (rule->from == n || (rule->onwards && n > rule->from))) {
            *what = rule->what;
            return TRUE;
        }
    }
    return FALSE;
}

static ssize_t
faultRead(vspEndpoint *ep, void *buf, gsize len)
{
    FaultEndpoint *fault = faultOf(ep);
    int what;

    if (!strike(fault, VSP_OPERATION_READ, &what))
        return vspEndpointRead(ep->inner, buf, len);
    return what == SHORT ? vspEndpointRead(ep->inner, buf, MAX(len / 2, 1)) : -what;
}

static ssize_t
faultWrite(vspEndpoint *ep, const void *buf, gsize len)
{
    FaultEndpoint *fault = faultOf(ep);
    int what;

    if (!strike(fault, VSP_OPERATION_WRITE, &what))
        return vspEndpointWrite(ep->inner, buf, len);
    return what == SHORT ? vspEndpointWrite(ep->inner, buf, MAX(len / 2, 1)) : -what;
}

/* At an offset the inner end does the I/O unhindered, and complete() spoils the result: so it is for
 * an engine that drives the descriptor itself. */
static ssize_t
faultPread(vspEndpoint *ep, void *buf, gsize len, off_t offset)
{
    return vspEndpointPread(ep->inner, buf, len, offset);
}

static ssize_t
faultPwrite(vspEndpoint *ep, const void *buf, gsize len, off_t offset)
{
    return vspEndpointPwrite(ep->inner, buf, len, offset);
}

static ssize_t
faultComplete(vspEndpoint *ep,
              vspOperation op,
              off_t offset G_GNUC_UNUSED,
              gsize len G_GNUC_UNUSED,
              ssize_t result)
{
    int what;

    if (!strike(faultOf(ep), op, &what))
        return result;
    if (what == SHORT)
        return result > 1 ? result / 2 : result;
    return -what;
}

static int
faultZero(vspEndpoint *ep, off_t offset, gsize len)
{
    return vspEndpointZero(ep->inner, offset, len);
}

static gboolean
faultIsHole(vspEndpoint *ep, off_t offset, gsize len)
{
    return vspEndpointIsHole(ep->inner, offset, len);
}

static int
faultFinish(vspEndpoint *ep)
{
    return vspEndpointFinish(ep->inner);
}

static int
faultTruncate(vspEndpoint *ep, off_t end)
{
    int what;

    return strike(faultOf(ep), VSP_OPERATION_TRUNCATE, &what)
               ? -what
               : vspEndpointTruncate(ep->inner, end);
}

static int
faultSync(vspEndpoint *ep)
{
    int what;

    return strike(faultOf(ep), VSP_OPERATION_SYNC, &what) ? -what
                                                          : vspEndpointSync(ep->inner);
}

static int
faultClose(vspEndpoint *ep)
{
    int rc = vspEndpointClose(ep->inner);
    int what;

    return strike(faultOf(ep), VSP_OPERATION_CLOSE, &what) ? -what : rc;
}

static void
faultFree(vspEndpoint *ep)
{
    FaultEndpoint *fault = faultOf(ep);

    vspEndpointFree(ep->inner);
    g_array_unref(fault->rules);
    g_free(fault);
}

static const vspEndpointOps faultOps = {
    .kind = "fault",
    .read = faultRead,
    .write = faultWrite,
    .pread = faultPread,
    .pwrite = faultPwrite,
    .complete = faultComplete,
    .zero = faultZero,
    .isHole = faultIsHole,
    .finish = faultFinish,
    .truncate = faultTruncate,
    .sync = faultSync,
    .close = faultClose,
    .free = faultFree,
};

static gboolean
parseRule(const char *text, Rule *rule)
{
    g_auto(GStrv) sides = g_strsplit(text, "=", 2);
    g_auto(GStrv) where = NULL;
    char *end;
    int op;

    if (!sides[0] || !sides[1])
        return FALSE;
    where = g_strsplit(sides[0], "@", 2);
    if (!where[0] || !where[1] || !LOOK_UP(operations, where[0], &op) ||
        !LOOK_UP(faults, sides[1], &rule->what))
        return FALSE;
    rule->op = op;
    rule->from = strtoul(where[1], &end, 10);
    rule->onwards = *end == '+';
    return rule->from > 0 && (*end == '\0' || (*end == '+' && end[1] == '\0'));
}

vspEndpoint *
vspEndpointFaultNew(vspEndpoint *inner, const char *spec)
{
    g_auto(GStrv) parts = g_strsplit(spec, ",", -1);
    g_autoptr(GArray) rules = g_array_new(FALSE, TRUE, sizeof(Rule));
    FaultEndpoint *fault;

    for (gsize i = 0; parts[i]; i++) {
        Rule rule = { 0 };

        if (!parseRule(parts[i], &rule))
            return NULL;
        g_array_append_val(rules, rule);
    }
    fault = g_new0(FaultEndpoint, 1);
    fault->base.ops = &faultOps;
    fault->base.side = inner->side;
    /* Shared with the inner end, which owns them. */
    fault->base.fd = inner->fd;
    fault->base.seekable = inner->seekable;
    fault->base.start = inner->start;
    fault->base.size = inner->size;
    fault->base.cache = inner->cache;
    fault->base.inner = inner;
    fault->rules = g_steal_pointer(&rules);
    return &fault->base;
}
