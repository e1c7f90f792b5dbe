#define _GNU_SOURCE
#include "CThreadCounters.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stddef.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *memory);

static __thread int64_t allocations __attribute__((tls_model("initial-exec")));
static __thread int64_t frees __attribute__((tls_model("initial-exec")));

static __thread int64_t locks __attribute__((tls_model("initial-exec")));

int64_t handset_test_allocations(void) { return allocations; }
int64_t handset_test_frees(void) { return frees; }

int64_t handset_test_locks(void) { return locks; }

int64_t handset_test_live_bytes(void) {
    struct mallinfo2 info = mallinfo2();
    return (int64_t)(info.uordblks + info.hblkhd);
}

void *malloc(size_t size) {
    allocations++;
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    allocations++;
    return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size) {
    allocations++;
    return __libc_realloc(memory, size);
}

void *memalign(size_t alignment, size_t size) {
    allocations++;
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void **memory, size_t alignment, size_t size) {
    void *block = memalign(alignment, size);
    if (!block) return ENOMEM;
    *memory = block;
    return 0;
}

void free(void *memory) {
    if (memory) frees++;
    __libc_free(memory);
}

// The C library's own, found at the first use: it exports no other name to link against.
#define NEXT(function) \
    ({ \
        static _Atomic(void *) next; \
        if (!next) next = dlsym(RTLD_NEXT, #function); \
        (typeof(&(function)))(void *)next; \
    })

int pthread_mutex_lock(pthread_mutex_t *mutex) {
    locks++;
    return NEXT(pthread_mutex_lock)(mutex);
}

int pthread_mutex_trylock(pthread_mutex_t *mutex) {
    locks++;
    return NEXT(pthread_mutex_trylock)(mutex);
}

int pthread_rwlock_rdlock(pthread_rwlock_t *lock) {
    locks++;
    return NEXT(pthread_rwlock_rdlock)(lock);
}

int pthread_rwlock_wrlock(pthread_rwlock_t *lock) {
    locks++;
    return NEXT(pthread_rwlock_wrlock)(lock);
}
