/*
 * slowio.c: makes a program's stream slow after so many bytes, to be preloaded
 *
 * Tests that act in the middle of a transfer need a middle that lasts. Once VSPTEST_SLOW_AFTER bytes
 * have gone through large reads or writes on pipes and sockets, the file VSPTEST_SLOW_MARK is made,
 * and each further one takes a tenth of a second while that file is there. The program goes on; it is
 * just not going to be done while the test is looking. Small transfers, such as QEMU's monitor has,
 * stay as they are.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define LARGE 4096

static atomic_llong moved;
static atomic_int marked;

static void
slowDown(void)
{
    const char *after = getenv("VSPTEST_SLOW_AFTER");
    const char *mark = getenv("VSPTEST_SLOW_MARK");
    struct timespec pause = { .tv_nsec = 100 * 1000 * 1000 };
    int fd;

    if (!after || !mark || atomic_load(&moved) < atoll(after))
        return;
    if (!atomic_exchange(&marked, 1)) {
        fd = open(mark, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (fd >= 0)
            close(fd);
    }
    if (access(mark, F_OK) == 0)
        nanosleep(&pause, NULL);
}

static size_t
total(const struct iovec *iov, size_t count)
{
    size_t sum = 0;
    size_t i;

    for (i = 0; i < count; i++)
        sum += iov[i].iov_len;
    return sum;
}

static ssize_t
account(ssize_t done)
{
    if (done > 0)
        atomic_fetch_add(&moved, done);
    return done;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t
sendmsg(int fd, const struct msghdr *message, int flags)
{
    if (total(message->msg_iov, message->msg_iovlen) < LARGE)
        return NEXT(sendmsg)(fd, message, flags);
    slowDown();
    return account(NEXT(sendmsg)(fd, message, flags));
}

ssize_t
recvmsg(int fd, struct msghdr *message, int flags)
{
    if (total(message->msg_iov, message->msg_iovlen) <= LARGE)
        return NEXT(recvmsg)(fd, message, flags);
    slowDown();
    return account(NEXT(recvmsg)(fd, message, flags));
}

ssize_t
writev(int fd, const struct iovec *iov, int count)
{
    if (total(iov, (size_t)count) < LARGE)
        return NEXT(writev)(fd, iov, count);
    slowDown();
    return account(NEXT(writev)(fd, iov, count));
}

ssize_t
readv(int fd, const struct iovec *iov, int count)
{
    if (total(iov, (size_t)count) <= LARGE)
        return NEXT(readv)(fd, iov, count);
    slowDown();
    return account(NEXT(readv)(fd, iov, count));
}

ssize_t
write(int fd, const void *data, size_t len)
{
    if (len < LARGE)
        return NEXT(write)(fd, data, len);
    slowDown();
    return account(NEXT(write)(fd, data, len));
}
