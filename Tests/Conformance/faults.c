/* Faults of a disk and of a clock, for a process that is started with LD_PRELOAD=faults.so.
 *
 * The file that FAULTS names holds three numbers of 64 bits, which a test changes while the process runs (faults.py):
 * by how many milliseconds the time of day is off, for how long a flush takes, and whether the disk that the database
 * is on is read-only. The clock that nobody sets, CLOCK_MONOTONIC, is left alone.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct faults {
    volatile int64_t clock_ms, flush_ms, read_only;
};

static struct faults none;

static struct faults *faults(void) {
    static struct faults *mapped;
    if (mapped) return mapped;
    const char *path = getenv("FAULTS");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return &none;
    void *memory = mmap(NULL, sizeof(struct faults), PROT_READ, MAP_SHARED, file, 0);
    close(file);
    mapped = memory == MAP_FAILED ? &none : memory;
    return mapped;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int is_database(int file) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return strstr(path, ".sqlite") != NULL;
}

static int refuses(int file) {
    if (!faults()->read_only || !is_database(file)) return 0;
    errno = EROFS;
    return 1;
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t offset) {
    return refuses(file) ? -1 : REAL(pwrite)(file, bytes, count, offset);
}
ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t offset) {
    return refuses(file) ? -1 : REAL(pwrite64)(file, bytes, count, offset);
}
int ftruncate64(int file, off64_t length) { return refuses(file) ? -1 : REAL(ftruncate64)(file, length); }

static int refuses_to_open(const char *path, int flags) {
    if (!strstr(path, ".sqlite") || (flags & O_ACCMODE) == O_RDONLY || !faults()->read_only) return 0;
    errno = EROFS;
    return 1;
}

int open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = va_arg(rest, mode_t);
    va_end(rest);
    return refuses_to_open(path, flags) ? -1 : REAL(open)(path, flags, mode);
}
int open64(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = va_arg(rest, mode_t);
    va_end(rest);
    return refuses_to_open(path, flags) ? -1 : REAL(open64)(path, flags, mode);
}

static void flush(int file) {
    int64_t left = is_database(file) ? faults()->flush_ms : 0;
    struct timespec pause = {left / 1000, left % 1000 * 1000000};
    nanosleep(&pause, NULL);
}

int fdatasync(int file) {
    flush(file);
    return refuses(file) ? -1 : REAL(fdatasync)(file);
}
int fsync(int file) {
    flush(file);
    return refuses(file) ? -1 : REAL(fsync)(file);
}

static void shift(int64_t *seconds, int64_t *rest, int64_t second) {
    int64_t step = faults()->clock_ms;
    *rest += step % 1000 * (second / 1000);
    *seconds += step / 1000;
    if (*rest >= second) *rest -= second, *seconds += 1;
    if (*rest < 0) *rest += second, *seconds -= 1;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = REAL(clock_gettime);
    int status = real(clock, now);
    if (!status && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        shift(&now->tv_sec, &now->tv_nsec, 1000000000);
    return status;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    int status = REAL(gettimeofday)(now, zone);
    if (!status) shift(&now->tv_sec, &now->tv_usec, 1000000);
    return status;
}

time_t time(time_t *result) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (result) *result = now.tv_sec;
    return now.tv_sec;
}
