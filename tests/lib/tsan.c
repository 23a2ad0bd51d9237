/*
 * tsan.c: tells the thread sanitizer what GLib's locks do
 *
 * GLib is not built with the sanitizer, and its locks are futexes of its own: what they order looks
 * like a race. So they are wrapped here, and say what happens before what. Nothing in other builds.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <glib.h>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define THREAD_SANITIZER
#endif
#elif defined(__SANITIZE_THREAD__)
#define THREAD_SANITIZER
#endif

#ifdef THREAD_SANITIZER
#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>

#define REAL(name, ...)                                                                            \
    static __typeof__(&name) real;                                                                 \
    if (!__atomic_load_n(&real, __ATOMIC_RELAXED))                                                 \
        __atomic_store_n(&real, (__typeof__(&name))dlsym(RTLD_NEXT, #name), __ATOMIC_RELAXED);

const char *__tsan_default_options(void);

/* What GLib does within itself is its own business. */
const char *
__tsan_default_options(void)
{
    return "ignore_noninstrumented_modules=1:atexit_sleep_ms=0";
}

void
g_mutex_lock(GMutex *mutex)
{
    REAL(g_mutex_lock)
    real(mutex);
    __tsan_acquire(mutex);
}

gboolean
g_mutex_trylock(GMutex *mutex)
{
    REAL(g_mutex_trylock)
    gboolean got = real(mutex);

    if (got)
        __tsan_acquire(mutex);
    return got;
}

void
g_mutex_unlock(GMutex *mutex)
{
    REAL(g_mutex_unlock)
    __tsan_release(mutex);
    real(mutex);
}

void
g_cond_wait(GCond *cond, GMutex *mutex)
{
    REAL(g_cond_wait)
    __tsan_release(mutex);
    real(cond, mutex);
    __tsan_acquire(mutex);
}

gboolean
g_cond_wait_until(GCond *cond, GMutex *mutex, gint64 until)
{
    REAL(g_cond_wait_until)
    gboolean signalled;

    __tsan_release(mutex);
    signalled = real(cond, mutex, until);
    __tsan_acquire(mutex);
    return signalled;
}

void
g_async_queue_push(GAsyncQueue *queue, gpointer data)
{
    REAL(g_async_queue_push)
    __tsan_release(data);
    real(queue, data);
}

gpointer
g_async_queue_pop(GAsyncQueue *queue)
{
    REAL(g_async_queue_pop)
    gpointer data = real(queue);

    __tsan_acquire(data);
    return data;
}

gpointer
g_async_queue_try_pop(GAsyncQueue *queue)
{
    REAL(g_async_queue_try_pop)
    gpointer data = real(queue);

    if (data)
        __tsan_acquire(data);
    return data;
}
#endif
