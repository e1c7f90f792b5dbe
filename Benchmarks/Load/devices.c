// Many devices in one process, for `scripts/bench load`: holds connections to an exchange, sends invites between them,
// and comes back when the exchange was away.
//
//   devices PORT FILE [--tls]     FILE has a line for each device: its user and its token
//
// Takes commands on standard input, a line each, and answers each with a line of JSON on standard output:
//   hold N                until N devices are registered
//   invites WINDOW S      S seconds of invites, WINDOW of them under way at any time
//   paced RATE S          S seconds of RATE invites a second
//   also PORT             another exchange is at this port: a device that one refuses asks the other at once
//   settle AT             until all devices are ready again that were ready before AT, by the monotonic clock
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "device.h"
#include "traffic.h"
#include "transport.h"

// Connections that are being made at a time: a crowd, but not one that TCP's queue of new connections has to drop.
static const size_t crowd = 512;

static size_t read_devices(const char *path) {
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        perror(path);
        exit(1);
    }
    size_t count = 0, capacity = 0;
    char *line = NULL;
    size_t size = 0;
    while (getline(&line, &size, file) > 0) {
        char *space = strchr(line, ' ');
        if (space == NULL) continue;
        *space = 0;
        space[1 + strcspn(space + 1, "\n")] = 0;
        if (count == capacity) {
            capacity = capacity == 0 ? 1024 : 2 * capacity;
            fleet.devices = realloc(fleet.devices, capacity * sizeof *fleet.devices);
            if (fleet.devices == NULL) exit(1);
        }
        fleet.devices[count++] = (struct device){.user = strdup(line), .token = strdup(space + 1), .port = fleet.ports[0]};
    }
    free(line);
    fclose(file);
    return count;
}

// One round of what there is to do; waits for `seconds` at most.
static void work(double seconds) {
    static struct epoll_event events[1024];
    static double swept;
    double now = now_seconds();
    double wait = traffic_work();
    if (wait < 0 || wait > seconds) wait = seconds;
    if (now - swept >= 0.01) {
        swept = now;
        for (size_t index = 0; index < fleet.count && fleet.pending < crowd; index++) {
            struct device *device = &fleet.devices[index];
            if (device->state == DEVICE_WAITING && device->due <= now) device_connect(device);
        }
    }
    struct timespec time = {.tv_sec = (time_t)wait, .tv_nsec = (long)((wait - (double)(time_t)wait) * 1e9)};
    int count = epoll_pwait2(fleet.epoll, events, 1024, &time, NULL);
    if (count < 0 && errno != EINTR) {
        perror("devices: epoll_wait");
        exit(1);
    }
    for (int index = 0; index < count; index++) device_event(events[index].data.ptr, events[index].events);
}

static void hold(size_t count, size_t available) {
    if (count > available) count = available;
    double began = now_seconds();
    for (; fleet.count < count; fleet.count++) {
        fleet.devices[fleet.count].state = DEVICE_WAITING;
        fleet.devices[fleet.count].due = 0;
        fleet.devices[fleet.count].lost_at = began;
    }
    while (fleet.ready < count && now_seconds() - began < 120) work(0.01);
    printf("{\"held\": %zu, \"seconds\": %.3f, \"refusals\": %llu}\n", fleet.ready, now_seconds() - began,
           (unsigned long long)fleet.refusals);
    fflush(stdout);
}

static int by_size(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static void settle(double at) {
    double began = now_seconds();
    double *times = calloc(fleet.count + 1, sizeof *times);
    if (times == NULL) exit(1);
    size_t back = 0;
    while (back < fleet.count && now_seconds() - began < 120) {
        work(0.01);
        back = 0;
        for (size_t index = 0; index < fleet.count; index++) {
            const struct device *device = &fleet.devices[index];
            if (device->state == DEVICE_READY && device->ready_at > at) times[back++] = device->ready_at - at;
        }
    }
    qsort(times, back, sizeof *times, by_size);
    printf("{\"back\": %zu, \"resumed\": %llu, \"fresh\": %llu, \"p50_s\": %.3f, \"p99_s\": %.3f, \"p999_s\": %.3f, \"all_s\": %.3f}\n",
           back, (unsigned long long)fleet.resumed, (unsigned long long)fleet.fresh, times[back / 2],
           times[back * 99 / 100], times[back * 999 / 1000], back > 0 ? times[back - 1] : 0);
    fflush(stdout);
    free(times);
}

int main(int argc, char **argv) {
    bool is_secure = argc == 4 && strcmp(argv[3], "--tls") == 0;
    if (argc != 3 && !is_secure) {
        fprintf(stderr, "usage: devices PORT FILE [--tls]\n");
        return 2;
    }
    if (is_secure) transport_use_tls();
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    fleet.ports[0] = (uint16_t)atoi(argv[1]);
    fleet.epoll = epoll_create1(EPOLL_CLOEXEC);
    size_t available = read_devices(argv[2]);
    srand48(1);
    char line[256];
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    for (;;) {
        work(0.02);
        if (poll(&input, 1, 0) <= 0) continue;
        if (fgets(line, sizeof line, stdin) == NULL) return 0;
        size_t number;
        double value, seconds;
        if (sscanf(line, "hold %zu", &number) == 1) {
            hold(number, available);
        } else if (sscanf(line, "invites %zu %lf", &number, &seconds) == 2) {
            traffic_begin(number, 0, seconds);
            while (!traffic_is_over()) work(0.01);
            traffic_report();
        } else if (sscanf(line, "paced %lf %lf", &value, &seconds) == 2) {
            traffic_begin(0, value, seconds);
            while (!traffic_is_over()) work(0.01);
            traffic_report();
        } else if (sscanf(line, "also %zu", &number) == 1) {
            fleet.ports[1] = (uint16_t)number;
            printf("{\"port\": %zu}\n", number);
            fflush(stdout);
        } else if (sscanf(line, "settle %lf", &value) == 1) {
            settle(value);
        } else {
            fprintf(stderr, "devices: what is \"%s\"?\n", line);
            return 2;
        }
    }
}
