// Counts what the calling thread allocates and locks, by standing in front of the C library in the test process.
#pragma once
#include <stdint.h>

/// Calls of malloc, calloc, realloc, posix_memalign, aligned_alloc and free by this thread so far.
int64_t handset_test_allocations(void);
int64_t handset_test_frees(void);

/// Locks of any kind that this thread has taken or tried to take so far: mutexes and read-write locks. Those
/// that the C library takes by itself, such as in its allocator, are not seen.
int64_t handset_test_locks(void);

/// Bytes that the process has allocated and not freed, in all threads.
int64_t handset_test_live_bytes(void);
