#include "observer.h"

#include "numbers.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

/// The kernel lets any process read another's CPU clock, to the nanosecond; /proc/PID/stat counts in ticks of 10 ms.
static int64_t process_cpu_ns(pid_t process)
{
    clockid_t clock;
    struct timespec time;
    if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &time) != 0)
        give_up("read the CPU clock of the process under test (has it ended?)");
    return time.tv_sec * NS_PER_SECOND + time.tv_nsec;
}

static int64_t machine_cpu_ns(void)
{
    long user = 0, nice = 0, system = 0, idle = 0, waiting = 0, interrupts = 0, soft = 0, stolen = 0;
    FILE *file = fopen("/proc/stat", "r");
    if (file == NULL)
        return 0;
    int fields = fscanf(file, "cpu %ld %ld %ld %ld %ld %ld %ld %ld", &user, &nice, &system, &idle, &waiting,
                        &interrupts, &soft, &stolen);
    fclose(file);
    if (fields != 8)
        return 0;
    return (user + nice + system + interrupts + soft + stolen) * (NS_PER_SECOND / sysconf(_SC_CLK_TCK));
}

struct reading read_usage(pid_t subject)
{
    return (struct reading){
        .at_ns = monotonic_ns(),
        .subject_ns = subject == 0 ? 0 : process_cpu_ns(subject),
        .own_ns = own_cpu_ns(),
        .machine_ns = machine_cpu_ns(),
    };
}

long resident_kb(pid_t subject)
{
    char path[64], line[128];
    long kilobytes = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)subject);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return 0;
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "VmRSS: %ld kB", &kilobytes) == 1)
            break;
    fclose(file);
    return kilobytes;
}
