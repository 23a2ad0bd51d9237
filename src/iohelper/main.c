/*
 * main.c: the iohelper process
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gi18n-lib.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cache.h"
#include "codec.h"
#include "engine.h"
#include "job.h"
#include "options.h"
#include "report.h"
#include "residency.h"
#include "vsperrorpriv.h"
#include "vspfd.h"
#include "vsptransport.h"

/* Whatever the parent did with signals, and whatever it left open, ends here. */
static void
cleanInheritance(const vspHelperOptions *options)
{
    sigset_t none;
    int keep[] = { options->fd, options->statusFd };

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int signum = 1; signum < NSIG; signum++)
        signal(signum, SIG_DFL);
    /* EPIPE and EFBIG say the same, with a place to handle it. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);

    vspFdCloseOthers(keep, G_N_ELEMENTS(keep));
    /* A Ctrl-C in the terminal is for the tool: it decides, and tells us by its hangup or SIGKILL. */
    if (options->statusFd >= 0)
        setsid();
}

/* Refused by the kernel for want of privilege (realtime) or by a scheduler without classes: it is a wish,
 * and the job is done all the same. */
static void
setIoPriority(vspJob *job, const vspHelperOptions *options)
{
    /* IOPRIO_WHO_PROCESS and the shift are the kernel's interface; glibc has no header for it. */
    if (options->ioClass > 0 &&
        syscall(SYS_ioprio_set, 1, 0, options->ioClass << 13 | options->ioLevel) < 0)
        g_strlcpy(job->statistics.notice, N_("the I/O priority could not be set"),
                  sizeof(job->statistics.notice));
}

static vspEndpoint *
openEnd(vspJob *job, int fd, vspSide side, const char *fault)
{
    vspEndpoint *ep;
    vspEndpoint *wrapped;
    int errnum = 0;

    ep = vspEndpointOpen(fd, side, &errnum);
    if (!ep) {
        vspJobFail(job, VSP_OPERATION_SETUP, side, 0, errnum,
                   side == VSP_SIDE_FILE ? N_("the file's descriptor") : N_("the stream's descriptor"));
        return NULL;
    }
    if (!fault)
        return ep;
    wrapped = vspEndpointFaultNew(ep, fault);
    if (!wrapped) {
        vspJobFail(job, VSP_OPERATION_SETUP, side, 0, EINVAL, "the fault to inject");
        vspEndpointFree(ep);
    }
    return wrapped;
}

/* Both ends, their mode, the engine and the memory. 0, or -1 with the failure recorded. */
static int
setUp(vspJob *job, const vspHelperOptions *options)
{
    int flags = fcntl(options->fd, F_GETFL);
    int errnum = 0;
    const char *why = NULL;
    off_t left;

    if (flags < 0)
        return vspJobFail(job, VSP_OPERATION_SETUP, VSP_SIDE_FILE, 0, errno, N_("the file's descriptor"));
    switch (flags & O_ACCMODE) {
    case O_RDONLY:
        break;
    case O_WRONLY:
        job->writing = TRUE;
        break;
    default:
        /* A terminal, a socket. The library says the direction by which of the two it is, so that a copy
         * may go there; a file that it wraps is never one of these. */
        if (options->statusFd < 0 || options->fd > STDOUT_FILENO)
            return vspJobFail(job, VSP_OPERATION_SETUP, VSP_SIDE_FILE, 0, EINVAL,
                              N_("open for both reading and writing"));
        job->writing = options->fd == STDOUT_FILENO;
        break;
    }
    job->file = openEnd(job, options->fd, VSP_SIDE_FILE, options->faultFile);
    if (!job->file)
        return -1;
    job->stream = openEnd(job, job->writing ? STDIN_FILENO : STDOUT_FILENO, VSP_SIDE_STREAM,
                          options->faultStream);
    if (!job->stream)
        return -1;
    /* Handed a pipe of the default size, make it a useful one; harmless on anything else. */
    vspTransportEnlargePipe(job->stream->fd);

    job->statistics.cachedBefore = job->statistics.cachedAfter = -1;
    left = job->file->seekable ? job->file->size - job->file->start : 0;
    if (left > 0)
        job->statistics.cachedBefore = vspResidency(job->file->fd, job->file->start, job->file->size);
    /* With so much in memory the rest is fetched by the way. */
    job->hot = !job->writing && left > 0 && job->statistics.cachedBefore >= left - left / 8;
    job->sparse = options->sparse && job->writing && job->file->seekable;
    job->control = vspControlNew(options->rateLimit);

    if (job->file->cache && vspCacheSetUp(job->file->cache, options->cache, job->hot, options->strict,
                                          &errnum, &why) < 0)
        return vspJobFail(job, VSP_OPERATION_DIRECT, VSP_SIDE_FILE, 0, errnum, why);

    /* Who has a channel may set a limit later. */
    if (options->rateLimit > 0 || options->statusFd >= 0)
        job->stream = vspEndpointRateNew(job->stream, job->control);

    if (options->compression) {
        vspEndpoint *stage;
        char reason[sizeof(job->stream->reason.detail)] = "";

        if (!options->decompress && !job->writing)
            return vspJobFail(job, VSP_OPERATION_COMPRESSOR, VSP_SIDE_STREAM, 0, EINVAL,
                              N_("only what is written can be compressed"));
        stage = vspEndpointCompressNew(job->stream, options->compression, options->level, job->writing,
                                       options->decompress, options->plainLength, reason);
        if (!stage)
            return vspJobFail(job, VSP_OPERATION_COMPRESSOR,
                              options->decompress ? VSP_SIDE_FILE : VSP_SIDE_STREAM, 0, ENOSYS, reason);
        job->stream = job->compress = stage;
        /* A compressor that is a program of its own is not to keep the channel open. */
        fcntl(options->statusFd, F_SETFD, FD_CLOEXEC);
        if (!options->decompress)
            g_snprintf(job->statistics.compression, sizeof(job->statistics.compression), "%s:%d",
                       options->compression->name, options->level);
        else
            g_strlcpy(job->statistics.compression, options->compression->name,
                      sizeof(job->statistics.compression));
    }
    if (options->digest)
        job->stream = job->digest = vspEndpointDigestNew(job->stream, options->plainLength);

    job->engine = options->engine ? options->engine : vspEngineChoose(job);
    job->engineForced = options->engine != NULL;
    if (!job->file->seekable)
        job->engine = &vspEngineSync;
    return vspJobAllocate(job);
}

static void
fillStatistics(vspJob *job)
{
    vspStatusStatistics *s = &job->statistics;

    s->buffers = job->buffers;
    s->bufferSize = job->bufferSize;
    s->alignment = 1;
    if (job->engine)
        g_strlcpy(s->engine, job->engine->name, sizeof(s->engine));
    if (!job->file)
        return;
    g_strlcpy(s->endpoint, job->file->ops->kind, sizeof(s->endpoint));
    if (job->file->cache) {
        const char *notice = vspCacheGetNotice(job->file->cache);

        s->cacheMode = vspCacheGetMode(job->file->cache);
        s->cacheAsked = vspCacheGetAsked(job->file->cache);
        s->alignment = vspCacheGetBlock(job->file->cache);
        if (notice)
            g_strlcpy(s->notice, notice, sizeof(s->notice)); /* more important than a wish */
    } else {
        s->cacheMode = s->cacheAsked = VSP_CACHE_CACHED;
    }
}

static void
printCapabilities(void)
{
    const char *const *names = vspEngineNames();

    printf("status-protocol %d\n", VSP_STATUS_VERSION);
    for (gsize i = 0; names[i]; i++)
        printf("engine-%s\n", names[i]);
    printf("digest\n");
    for (guint32 number = 0; number <= VSP_COMPRESSION_LAST; number++) {
        const vspCompression *compression = vspCompressionFromNumber(number);

        if (compression && vspCodecIsThere(compression))
            printf("compress-%s\n", compression->name);
    }
    for (vspCacheMode mode = VSP_CACHE_DIRECT; mode <= VSP_CACHE_CACHED; mode++)
        printf("cache-%s\n", vspCacheModeToString(mode));
}

int
main(int argc, char **argv)
{
    guint64 began = vspNow();
    /* Static, because nothing of them is ever freed: they are the process. */
    static vspHelperOptions options;
    static vspJob job;
    g_autoptr(GError) error = NULL;
    int rc;

    if (!vspHelperOptionsParse(&options, argc, argv, &error)) {
        fprintf(stderr, "vmspool_iohelper: %s\n", error->message);
        return EXIT_FAILURE;
    }
    if (options.printVersion) {
        printf("vmspool_iohelper %s\n", VSP_VERSION);
        return EXIT_SUCCESS;
    }
    if (options.printCapabilities) {
        printCapabilities();
        return EXIT_SUCCESS;
    }
    cleanInheritance(&options);

    job.reporter = vspReporterNew(options.statusFd, options.name);
    job.length = options.length;
    job.buffers = options.buffers;
    job.bufferSize = options.bufferSize;
    setIoPriority(&job, &options);
    rc = setUp(&job, &options);
    job.statistics.setupNs = vspNow() - began;
    if (rc == 0) {
        rc = vspReporterHello(job.reporter, job.control);
        rc = rc < 0 ? vspJobFail(&job, VSP_OPERATION_SETUP, VSP_SIDE_NONE, 0, -rc, N_("a thread"))
                    : vspJobRun(&job);
    }
    fillStatistics(&job);
    job.failure.ok = rc == 0;
    job.failure.statistics = job.statistics;
    vspReporterVerdict(job.reporter, &job.failure);
    if (rc != 0) {
        /* At once: the thread of a stage may sit in a read that nobody will end. */
        fflush(NULL);
        _exit(EXIT_FAILURE);
    }
    return EXIT_SUCCESS;
}
