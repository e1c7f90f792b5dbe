// Does with fewer rights than the test process has what is refused there.
#pragma once

/// What a process did that may not lock memory beyond its limit, though it has CAP_IPC_LOCK: that of a user namespace.
enum handset_test_lock {
    HANDSET_TEST_LOCK_REFUSED,
    /// It believed that it may, and the kernel refused, because the limit is below what the process has already.
    HANDSET_TEST_LOCK_TRIED,
    /// It locked its memory, and a mapping beyond the limit failed after that.
    HANDSET_TEST_LOCK_BROKE_MAPPINGS,
    /// It locked its memory, and can map more than the limit.
    HANDSET_TEST_LOCK_HOLDS,
    /// This machine makes no such process.
    HANDSET_TEST_LOCK_UNKNOWN,
};
enum handset_test_lock handset_test_lock_in_user_namespace(void);

/// Whether this process's memory may be dumped from now on, whatever was forbidden.
void handset_test_set_dumpable(int may_be);

/// Takes the right to ask for real-time priority from the calling thread, for good. Nonzero if that fails.
int handset_test_drop_priority_right(void);

/// Schedules the calling thread by a policy of sched.h. Nonzero if that fails.
int handset_test_schedule(int policy, int priority);
