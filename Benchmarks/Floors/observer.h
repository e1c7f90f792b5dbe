// What a process under test, and the rest of the machine, used over an interval.
#pragma once
#include <stdint.h>
#include <sys/types.h>

struct reading {
    int64_t at_ns;
    /// CPU time of the process under test, user and system, all threads, with those that have ended.
    int64_t subject_ns;
    int64_t own_ns;
    /// CPU time of everything on the machine, from /proc/stat.
    int64_t machine_ns;
};

/// Reads the clocks; `subject` 0 means there is none.
struct reading read_usage(pid_t subject);

/// Resident memory of the process in kB; 0 when it cannot be read.
long resident_kb(pid_t subject);
