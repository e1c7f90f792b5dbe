// Counts what the calling thread allocates, by standing in front of the C library's allocator in the test process.
#pragma once
#include <stdint.h>

/// Calls of malloc, calloc, realloc, posix_memalign, aligned_alloc and free by this thread so far.
int64_t handset_test_allocations(void);
int64_t handset_test_frees(void);

/// Bytes that the process has allocated and not freed, in all threads.
int64_t handset_test_live_bytes(void);
