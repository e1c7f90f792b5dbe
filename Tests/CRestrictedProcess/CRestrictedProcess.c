#include "CRestrictedProcess.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "CRealtime.h"

void handset_test_set_dumpable(int may_be) { prctl(PR_SET_DUMPABLE, may_be, 0, 0, 0); }

// Bytes of address space that this process has taken; 0 if the system does not tell.
static size_t address_space(void) {
    int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    char text[64] = {0};
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    return length > 0 ? (size_t)strtoull(text, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE) : 0;
}

static enum handset_test_lock lock_restricted(void) {
    // Room for what there is, where that may be had: the kernel refuses less at once.
    size_t room = address_space() + (4 << 20), more = 16 << 20;
    struct rlimit limit = {.rlim_cur = room, .rlim_max = room};
    setrlimit(RLIMIT_MEMLOCK, &limit);
    if (getrlimit(RLIMIT_MEMLOCK, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY || unshare(CLONE_NEWUSER) < 0)
        return HANDSET_TEST_LOCK_UNKNOWN;
    int result = handset_lock_memory();
    if (result == -EPERM) return HANDSET_TEST_LOCK_REFUSED;
    if (result < 0) return HANDSET_TEST_LOCK_TRIED;
    void *mapping = mmap(NULL, more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return mapping == MAP_FAILED ? HANDSET_TEST_LOCK_BROKE_MAPPINGS : HANDSET_TEST_LOCK_HOLDS;
}

enum handset_test_lock handset_test_lock_in_user_namespace(void) {
    // A process with one thread: others may not change their namespace.
    pid_t child = fork();
    if (child == 0) _exit(lock_restricted());
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return HANDSET_TEST_LOCK_UNKNOWN;
    return (enum handset_test_lock)WEXITSTATUS(status);
}

int handset_test_drop_priority_right(void) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
    if (syscall(SYS_capget, &header, data) != 0) return -1;
    data[0].effective &= ~(1u << CAP_SYS_NICE);
    data[0].permitted &= ~(1u << CAP_SYS_NICE);
    return (int)syscall(SYS_capset, &header, data);
}

int handset_test_schedule(int policy, int priority) {
    struct sched_param parameter = {.sched_priority = priority};
    return sched_setscheduler(0, policy, &parameter);
}
