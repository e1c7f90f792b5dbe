#include "numbers.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int64_t read_clock(clockid_t clock)
{
    struct timespec time;
    if (clock_gettime(clock, &time) != 0)
        give_up("read a clock");
    return time.tv_sec * NS_PER_SECOND + time.tv_nsec;
}

int64_t monotonic_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t own_cpu_ns(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

_Noreturn void give_up(const char *doing)
{
    if (errno != 0)
        fprintf(stderr, "%s: cannot %s: %s\n", program_invocation_short_name, doing, strerror(errno));
    else
        fprintf(stderr, "%s: cannot %s\n", program_invocation_short_name, doing);
    exit(1);
}

long parse_number(const char *option, const char *text, long least, long most)
{
    char *end = NULL;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < least || value > most) {
        fprintf(stderr, "%s: %s takes a whole number from %ld to %ld, not \"%s\"\n",
                program_invocation_short_name, option, least, most, text);
        exit(2);
    }
    return value;
}

int become_realtime(void)
{
    // The lowest real-time priority is above every ordinary thread, and below whatever else is real-time.
    struct sched_param parameters = {.sched_priority = 1};
    return sched_setscheduler(0, SCHED_FIFO, &parameters) == 0;
}
