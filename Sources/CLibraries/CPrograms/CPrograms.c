#include "CPrograms.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { STREAMS = 4 };

#define MARK_NAME "HANDSET_PROGRAM"
enum { MARK_BYTES = sizeof MARK_NAME + 17 };

static void write_mark(char text[MARK_BYTES], uint64_t mark) { snprintf(text, MARK_BYTES, MARK_NAME "=%016" PRIx64, mark); }

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

/// Those of our variables that a program has, and `own`; to be freed, and not what it points to. NULL if there is no memory.
static char **variables(char *const withheld[], char *const given[], char *own) {
    char *const *all = environ;
    size_t count = 0;
    while (all[count] != NULL) count++;
    char **kept = calloc(count + 2, sizeof *kept);
    if (kept == NULL) return NULL;
    char **next = kept;
    *next++ = own;
    for (size_t index = 0; index < count; index++) {
        // One that starts this process has a mark of its own.
        if (is_named(all[index], (char *const[]){MARK_NAME, NULL})) continue;
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

// Programs that run. A child of this process that is none of them, and is in another process group, was left behind by one, if orphans
// come here.
struct known_program {
    pid_t process;
    uint64_t mark;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct known_program *known;
static size_t known_count, known_room;
// A program that is being started is not known yet.
static unsigned starting, started;
// Orphans are to come to this process from its first program on, and do.
static bool wants_orphans, adopts;

// Programs that have ended, and whose leavings a thread looks for. It has room for as many as are known.
static uint64_t *ended;
static size_t ended_count;
static bool has_sweeper, is_sweeping;
static pthread_cond_t sweeping_changed = PTHREAD_COND_INITIALIZER;

/// Room for one more program, which will have ended one day.
static bool make_room(void) {
    if (known_count + ended_count + starting < known_room) return true;
    size_t room = known_room + 64;
    struct known_program *programs = realloc(known, room * sizeof *known);
    if (programs == NULL) return false;
    known = programs;
    uint64_t *marks = realloc(ended, room * sizeof *ended);
    if (marks == NULL) return false;
    ended = marks;
    known_room = room;
    return true;
}

static int start_known(char *const words[], char *const variables[], const int theirs[STREAMS], uint64_t mark, pid_t *process) {
    pthread_mutex_lock(&lock);
    int error = make_room() ? 0 : ENOMEM;
    if (error == 0) starting++;
    pthread_mutex_unlock(&lock);
    if (error != 0) return error;
    error = spawn(words, variables, theirs, process);
    pthread_mutex_lock(&lock);
    starting--;
    started++;
    if (error == 0) known[known_count++] = (struct known_program){*process, mark};
    pthread_mutex_unlock(&lock);
    return error;
}

static void forget(pid_t process) {
    for (size_t index = 0; index < known_count; index++) {
        if (known[index].process != process) continue;
        known[index] = known[--known_count];
        return;
    }
}

/// The beginning of a file of a process in /proc; the count of its bytes, or -1.
static ssize_t read_of(int folder, const char *name, char *bytes, size_t room) {
    int file = openat(folder, name, O_RDONLY | O_CLOEXEC);
    if (file < 0) return -1;
    size_t count = 0;
    while (count < room) {
        ssize_t more = read(file, bytes + count, room - count);
        if (more < 0 && errno == EINTR) continue;
        if (more <= 0) break;
        count += (size_t)more;
    }
    close(file);
    return (ssize_t)count;
}

/// Whether a process was started with a mark, which is then written to `mark`.
static bool read_mark(int folder, uint64_t *mark) {
    // As much as the system lets a program have of variables, but for extreme ones. Of the sweeper alone.
    static char variables[131072];
    ssize_t count = read_of(folder, "environ", variables, sizeof variables - 1);
    if (count <= 0) return false;
    variables[count] = 0;
    for (char *text = variables; text < variables + count; text += strlen(text) + 1) {
        if (strncmp(text, MARK_NAME "=", sizeof MARK_NAME) == 0) return sscanf(text + sizeof MARK_NAME, "%16" SCNx64, mark) == 1;
    }
    return false;
}

/// A process's state, parent and group.
static bool read_state(int folder, char *state, pid_t *parent, pid_t *group) {
    char text[512];
    ssize_t count = read_of(folder, "stat", text, sizeof text - 1);
    if (count <= 0) return false;
    text[count] = 0;
    // The name, in parentheses, may contain anything.
    char *rest = strrchr(text, ')');
    int one, two;
    if (rest == NULL || sscanf(rest + 1, " %c %d %d", state, &one, &two) != 3) return false;
    *parent = one;
    *group = two;
    return true;
}

/// What is done with a process that programs may have left behind.
enum fate { ALIEN, LATER, KILL, TAKE_AWAY };

static enum fate fate_of(int folder, pid_t process, const uint64_t marks[], size_t count) {
    pthread_mutex_lock(&lock);
    unsigned before = started;
    bool is_quiet = starting == 0;
    pthread_mutex_unlock(&lock);
    char state;
    pid_t parent, group;
    if (!read_state(folder, &state, &parent, &group)) return ALIEN;
    bool is_orphan = parent == getpid() && group != getpgrp();
    uint64_t mark = 0;
    bool has_mark = state != 'Z' && read_mark(folder, &mark);
    pthread_mutex_lock(&lock);
    enum fate fate = ALIEN;
    bool is_needed = false, is_program = false;
    for (size_t index = 0; index < known_count; index++) {
        is_program = is_program || known[index].process == process;
        // It is in the group of a program that runs, or may be needed by one.
        is_needed = is_needed || known[index].process == group || (has_mark && known[index].mark == mark);
    }
    if (adopts && is_orphan && !is_program) {
        // A program that was being started meanwhile looks like this, too.
        bool is_certain = is_quiet && before == started;
        // Without a mark it may belong to any program, so it stays while one runs.
        bool may_be_needed = is_needed || (!has_mark && known_count > 0);
        fate = !is_certain ? LATER : state == 'Z' ? TAKE_AWAY : may_be_needed ? ALIEN : KILL;
    }
    pthread_mutex_unlock(&lock);
    for (size_t index = 0; has_mark && index < count; index++) {
        if (marks[index] == mark) return KILL;
    }
    return fate;
}

/// Ends what programs have left behind in process groups of their own.
///
/// @return Whether something was there.
static bool sweep(const uint64_t marks[], size_t count) {
    DIR *all = opendir("/proc");
    if (all == NULL) return false;
    bool found = false;
    struct dirent *entry;
    while ((entry = readdir(all)) != NULL) {
        if (!isdigit((unsigned char)entry->d_name[0])) continue;
        pid_t process = (pid_t)atoi(entry->d_name);
        struct stat status;
        if (process == getpid() || fstatat(dirfd(all), entry->d_name, &status, 0) < 0 || status.st_uid != geteuid()) continue;
        // Before it is looked at, so that its number cannot become another's meanwhile.
        int handle = (int)syscall(SYS_pidfd_open, process, 0);
        int folder = openat(dirfd(all), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        enum fate fate = folder >= 0 ? fate_of(folder, process, marks, count) : ALIEN;
        found = found || fate != ALIEN;
        if (fate == KILL && handle >= 0) syscall(SYS_pidfd_send_signal, handle, SIGKILL, NULL, 0);
        if (fate == TAKE_AWAY) waitpid(process, NULL, WNOHANG);
        if (folder >= 0) close(folder);
        if (handle >= 0) close(handle);
    }
    closedir(all);
    return found;
}

static void *run_sweeper(void *nothing) {
    pthread_mutex_lock(&lock);
    for (;;) {
        while (ended_count == 0) pthread_cond_wait(&sweeping_changed, &lock);
        is_sweeping = true;
        size_t count = ended_count;
        uint64_t *marks = malloc(count * sizeof *marks);
        if (marks == NULL) count = 0;
        for (size_t index = 0; index < count; index++) marks[index] = ended[index];
        ended_count = 0;
        pthread_mutex_unlock(&lock);
        // What is killed ends a little later, and what it has started meanwhile is found then.
        enum { ROUNDS = 20 };
        for (int round = 0; round < ROUNDS && sweep(marks, count); round++) poll(NULL, 0, 1 + round);
        free(marks);
        pthread_mutex_lock(&lock);
        is_sweeping = false;
        pthread_cond_broadcast(&sweeping_changed);
    }
    return nothing;
}

/// Has a thread of its own look for what a program has left behind, because that takes milliseconds. Under the lock.
static void note_end(uint64_t mark) {
    ended[ended_count++] = mark;
    pthread_cond_broadcast(&sweeping_changed);
    if (has_sweeper) return;
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) return;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigset_t all, before;
    sigfillset(&all);
    pthread_t thread;
    pthread_sigmask(SIG_SETMASK, &all, &before);
    has_sweeper = pthread_create(&thread, &attributes, run_sweeper, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
}

void handset_programs_finish(int milliseconds) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += milliseconds / 1000;
    until.tv_nsec += milliseconds % 1000 * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000L;
    }
    pthread_mutex_lock(&lock);
    while (has_sweeper && (is_sweeping || ended_count > 0)) {
        if (pthread_cond_timedwait(&sweeping_changed, &lock, &until) != 0) break;
    }
    pthread_mutex_unlock(&lock);
}

int handset_programs_adopt(void) {
    // The first process of a container has the orphans of all of it, also of what others run there.
    if (getpid() == 1) return -EPERM;
    pthread_mutex_lock(&lock);
    wants_orphans = true;
    pthread_mutex_unlock(&lock);
    return 0;
}

/// Before its first program nobody would take dead orphans away.
static void adopt_if_wanted(void) {
    pthread_mutex_lock(&lock);
    if (wants_orphans && !adopts) adopts = prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0;
    pthread_mutex_unlock(&lock);
}

int handset_program_start(
    char *const words[], char *const withheld[], char *const given[], int input_bytes, struct handset_program *program) {
    adopt_if_wanted();
    uint64_t mark = 0;
    if (getrandom(&mark, sizeof mark, 0) != sizeof mark) return -EIO;
    char text[MARK_BYTES];
    write_mark(text, mark);
    char **inherited = variables(withheld, given, text);
    if (inherited == NULL) return -ENOMEM;
    int ours[STREAMS] = {-1, -1, -1, -1}, theirs[STREAMS] = {-1, -1, -1, -1};
    int error = -open_ends(ours, theirs);
    // A limit on pipes may forbid it; then the pipe is as large as pipes are.
    if (error == 0) fcntl(ours[0], F_SETPIPE_SZ, input_bytes);
    pid_t process = 0;
    if (error == 0) error = start_known(words, inherited, theirs, mark, &process);
    free(inherited);
    close_all(theirs);
    if (error != 0) {
        close_all(ours);
        return -error;
    }
    *program = (struct handset_program){process, ours[0], ours[1], ours[2], ours[3], mark};
    return 0;
}

int handset_program_unread(int pipe) {
    int count = 0;
    return ioctl(pipe, FIONREAD, &count) == 0 ? count : 0;
}

bool handset_program_ended(pid_t process, uint64_t mark, int *status) {
    siginfo_t information;
    memset(&information, 0, sizeof information);
    // First without taking the process away: until then its group's number cannot become another's.
    if (waitid(P_PID, (id_t)process, &information, WEXITED | WNOHANG | WNOWAIT) < 0 || information.si_pid == 0) return false;
    kill(-process, SIGKILL);
    pthread_mutex_lock(&lock);
    while (waitpid(process, status, 0) < 0 && errno == EINTR) {
    }
    forget(process);
    note_end(mark);
    pthread_mutex_unlock(&lock);
    return true;
}
