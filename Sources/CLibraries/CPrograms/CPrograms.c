#include "CPrograms.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { STREAMS = 4 };

static void close_all(int ends[STREAMS]) {
    for (int number = 0; number < STREAMS; number++) {
        if (ends[number] >= 0) close(ends[number]);
        ends[number] = -1;
    }
}

/// Opens both ends of the four, the program's above those that it will have, so that none is written over before it is copied.
static int open_ends(int ours[STREAMS], int theirs[STREAMS]) {
    for (int number = 0; number < STREAMS; number++) {
        int ends[2];
        int result = number < 3 ? pipe2(ends, O_CLOEXEC) : socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends);
        if (result < 0) return -errno;
        int near = number == 0 ? 1 : 0;
        ours[number] = ends[near];
        theirs[number] = fcntl(ends[1 - near], F_DUPFD_CLOEXEC, STREAMS);
        int error = errno;
        close(ends[1 - near]);
        if (theirs[number] < 0) return -error;
        if (fcntl(ours[number], F_SETFL, fcntl(ours[number], F_GETFL) | O_NONBLOCK) < 0) return -errno;
    }
    return 0;
}

static bool is_named(const char *variable, char *const names[]) {
    size_t length = strcspn(variable, "=");
    for (; *names != NULL; names++) {
        size_t own = strlen(*names);
        if (own > 0 && (*names)[own - 1] == '*' ? strncmp(variable, *names, own - 1) == 0
                                                : own == length && strncmp(variable, *names, own) == 0) {
            return true;
        }
    }
    return false;
}

/// Those of our variables that a program has; to be freed, and not what it points to. NULL if there is no memory.
static char **variables(char *const withheld[], char *const given[]) {
    char *const *all = environ;
    size_t count = 0;
    while (all[count] != NULL) count++;
    char **kept = calloc(count + 1, sizeof *kept);
    if (kept == NULL) return NULL;
    char **next = kept;
    for (size_t index = 0; index < count; index++) {
        if (is_named(all[index], given) || !is_named(all[index], withheld)) *next++ = all[index];
    }
    return kept;
}

static int spawn(char *const words[], char *const variables[], const int theirs[STREAMS], pid_t *process) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0) return error;
    error = posix_spawnattr_init(&attributes);
    if (error != 0) {
        posix_spawn_file_actions_destroy(&actions);
        return error;
    }
    for (int number = 0; number < STREAMS && error == 0; number++) {
        error = posix_spawn_file_actions_adddup2(&actions, theirs[number], number);
    }
    if (error == 0) error = posix_spawn_file_actions_addclosefrom_np(&actions, STREAMS);
    // Our threads block signals and ignore SIGPIPE; the program starts as from a terminal.
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    if (error == 0) error = posix_spawnattr_setsigmask(&attributes, &none);
    if (error == 0) error = posix_spawnattr_setsigdefault(&attributes, &all);
    if (error == 0) error = posix_spawnattr_setpgroup(&attributes, 0);
    if (error == 0) {
        error = posix_spawnattr_setflags(
            &attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    }
    if (error == 0) error = posix_spawnp(process, words[0], &actions, &attributes, words, variables);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

int handset_program_start(
    char *const words[], char *const withheld[], char *const given[], int input_bytes, struct handset_program *program) {
    char **inherited = variables(withheld, given);
    if (inherited == NULL) return -ENOMEM;
    int ours[STREAMS] = {-1, -1, -1, -1}, theirs[STREAMS] = {-1, -1, -1, -1};
    int error = -open_ends(ours, theirs);
    // A limit on pipes may forbid it; then the pipe is as large as pipes are.
    if (error == 0) fcntl(ours[0], F_SETPIPE_SZ, input_bytes);
    pid_t process = 0;
    if (error == 0) error = spawn(words, inherited, theirs, &process);
    free(inherited);
    close_all(theirs);
    if (error != 0) {
        close_all(ours);
        return -error;
    }
    *program = (struct handset_program){process, ours[0], ours[1], ours[2], ours[3]};
    return 0;
}

int handset_program_unread(int pipe) {
    int count = 0;
    return ioctl(pipe, FIONREAD, &count) == 0 ? count : 0;
}

bool handset_program_ended(pid_t process, int *status) {
    siginfo_t information;
    memset(&information, 0, sizeof information);
    // First without taking the process away: until then its group's number cannot become another's.
    if (waitid(P_PID, (id_t)process, &information, WEXITED | WNOHANG | WNOWAIT) < 0 || information.si_pid == 0) return false;
    kill(-process, SIGKILL);
    while (waitpid(process, status, 0) < 0 && errno == EINTR) {
    }
    return true;
}
