// How late the machine itself is: a thread with a real-time priority above everybody's sleeps for a millisecond at a time, and
// tells how often it woke up late. What is late here is late for a sound card, whatever its program does.
//
//   watch SECONDS       prints one JSON object at the end, or when it is told to end
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile sig_atomic_t ended;

static void end(int signal) {
    (void)signal;
    ended = 1;
}

int main(int count, char **arguments) {
    if (count != 2) {
        fprintf(stderr, "usage: watch SECONDS\n");
        return 2;
    }
    struct sched_param priority = {.sched_priority = 90};
    int is_first = sched_setscheduler(0, SCHED_FIFO, &priority) == 0;
    signal(SIGTERM, end);
    struct timespec due, now;
    int64_t worst = 0;
    long over[3] = {0};
    clock_gettime(CLOCK_MONOTONIC, &due);
    time_t last = due.tv_sec + atol(arguments[1]);
    while (!ended && due.tv_sec < last) {
        due.tv_nsec += 1000000;
        if (due.tv_nsec >= 1000000000) due.tv_nsec -= 1000000000, due.tv_sec++;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
        clock_gettime(CLOCK_MONOTONIC, &now);
        int64_t late = (now.tv_sec - due.tv_sec) * 1000000000LL + now.tv_nsec - due.tv_nsec;
        if (late > worst) worst = late;
        over[0] += late > 1000000, over[1] += late > 5000000, over[2] += late > 15000000;
        // A stall is one, however many milliseconds it took.
        if (late > 1000000) due = now;
    }
    printf("{\"real_time\": %s, \"worst_ms\": %.2f, \"over_1_ms\": %ld, \"over_5_ms\": %ld, \"over_15_ms\": %ld}\n",
           is_first ? "true" : "false", worst * 1e-6, over[0], over[1], over[2]);
    return 0;
}
