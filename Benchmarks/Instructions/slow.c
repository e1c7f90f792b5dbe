// Makes time pass more slowly for a program, so that it keeps its pace under an instrument that makes it slow: with
// LD_PRELOAD, and SLOWNESS in the environment as the number of seconds that one of the program's takes. Programs with the same
// slowness have the same time. The date stays right.
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL

static int64_t slowness(void) {
    static int64_t value;
    if (value == 0) {
        const char *text = getenv("SLOWNESS");
        value = text && atoi(text) > 0 ? atoi(text) : 1;
    }
    return value;
}

/// Whether a clock counts from the machine's start.
static int is_slow(clockid_t clock) {
    return clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_RAW || clock == CLOCK_MONOTONIC_COARSE
        || clock == CLOCK_BOOTTIME;
}

static struct timespec of_ns(int64_t ns) { return (struct timespec){.tv_sec = ns / SECOND, .tv_nsec = ns % SECOND}; }

/// What the kernel is to be told. A date that is waited for stays a date.
static struct timespec longer(struct timespec time) {
    if (time.tv_sec > 1000000000) return time;
    return of_ns((time.tv_sec * SECOND + time.tv_nsec) * slowness());
}

static int longer_ms(int ms) { return ms <= 0 ? ms : ms > 1000000 ? -1 : (int)(ms * slowness()); }

int clock_gettime(clockid_t clock, struct timespec *time) {
    int result = (int)syscall(SYS_clock_gettime, clock, time);
    if (result == 0 && is_slow(clock)) *time = of_ns((time->tv_sec * SECOND + time->tv_nsec) / slowness());
    return result;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *request, struct timespec *left) {
    struct timespec time = longer(*request);
    (void)left;
    return syscall(SYS_clock_nanosleep, clock, flags, &time, NULL) == 0 ? 0 : errno;
}

int nanosleep(const struct timespec *request, struct timespec *left) {
    int error = clock_nanosleep(CLOCK_MONOTONIC, 0, request, left);
    if (error) errno = error;
    return error ? -1 : 0;
}

int usleep(useconds_t time) {
    struct timespec request = of_ns((int64_t)time * 1000);
    return nanosleep(&request, NULL);
}

int timerfd_settime(int timer, int flags, const struct itimerspec *when, struct itimerspec *before) {
    struct itimerspec slow = {.it_interval = longer(when->it_interval), .it_value = longer(when->it_value)};
    return (int)syscall(SYS_timerfd_settime, timer, flags, &slow, before);
}

int poll(struct pollfd *polled, nfds_t count, int timeout) {
    return (int)syscall(SYS_poll, polled, count, longer_ms(timeout));
}

int ppoll(struct pollfd *polled, nfds_t count, const struct timespec *timeout, const sigset_t *mask) {
    struct timespec time = timeout ? longer(*timeout) : (struct timespec){0};
    return (int)syscall(SYS_ppoll, polled, count, timeout ? &time : NULL, mask, _NSIG / 8);
}

int epoll_wait(int set, struct epoll_event *events, int capacity, int timeout) {
    return (int)syscall(SYS_epoll_pwait, set, events, capacity, longer_ms(timeout), NULL, _NSIG / 8);
}
