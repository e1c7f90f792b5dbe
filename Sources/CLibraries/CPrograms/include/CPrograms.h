// Starts programs with exactly the descriptors that they are to have, which takes functions of glibc that Swift cannot import.
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/// Our ends of a program's descriptors, none of which blocks, and the program's process.
struct handset_program {
    pid_t process;
    /// To be written: the program reads it from its descriptor 0.
    int input;
    /// To be read: what the program writes to its descriptors 1 and 2.
    int output, errors;
    /// Our end of a stream socket; the program has the other at its descriptor 3.
    int events;
    /// What the variable `HANDSET_PROGRAM` of the program, and of what it starts, has in hexadecimal.
    uint64_t mark;
};

/// Has processes whose parents have ended come to this one from its first program on, so that what programs leave behind is found even without its variables. For
/// processes whose only children besides programs are in their own process group. Returns 0, or a negative errno.
int handset_programs_adopt(void);

/// Waits until what programs that have ended left behind was looked for, but no longer than this.
void handset_programs_finish(int milliseconds);

/// Starts the program `words[0]`, which is looked for in PATH, without a shell, as the leader of a process group, with no
/// signal blocked or ignored and no other descriptor than these four. Of our variables it has all whose names are `given` or not
/// `withheld`, both of which end with NULL; a name that ends with `*` is for all that begin so. About `input_bytes` of what is written wait for it to
/// read. Returns 0, or a negative errno; then nothing is left open.
int handset_program_start(
    char *const words[], char *const withheld[], char *const given[], int input_bytes, struct handset_program *program);

/// Bytes that wait in a pipe.
int handset_program_unread(int pipe);

/// Whether a process has ended. What else is in its group is killed, and what it has started in other groups, as far as that is found by
/// its mark or, after ``handset_programs_adopt()``, as an orphan, a little later by a thread of its own; then the process is forgotten.
/// `status` is as wait(2) has it.
bool handset_program_ended(pid_t process, uint64_t mark, int *status);
