// What a real-time thread needs from Linux and glibc that Swift cannot import: batched datagrams with kernel
// timestamps, timers, wake-ups, scheduling. Every function returns 0 or a count, or a negative errno.
#pragma once
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

/// An IPv4 or IPv6 address and port. `family` is 4 or 6, or 0 for none; IPv4 uses the first 4 bytes of `bytes`.
struct handset_address {
    uint8_t bytes[16];
    uint32_t scope;
    /// Host byte order.
    uint16_t port;
    uint8_t family;
};

/// One datagram: where its bytes are, who sent it or is to get it, and when the kernel took it in.
struct handset_datagram {
    uint8_t *bytes;
    /// Capacity before a receive; length after it, and before a send.
    uint32_t length;
    /// The datagram was longer than its slot: what is there is its beginning only.
    bool truncated;
    /// CLOCK_MONOTONIC nanoseconds at which the kernel received it.
    int64_t arrival_ns;
    struct handset_address address;
    /// The address of this machine that it came to, or is to leave from; family 0 for the socket's own, or for any.
    struct handset_address local;
    /// Which of its owner's sockets it came through, or is to leave through.
    uint32_t socket;
};

/// Opens a UDP socket bound to `address`, non-blocking, close-on-exec, with receive timestamps and DSCP `dscp`.
/// Asks for `receive_buffer` bytes of kernel buffer; the kernel may grant less.
int handset_udp_open(struct handset_address address, int receive_buffer, int dscp);
/// Opens two joined sockets for datagrams, non-blocking, close-on-exec, with receive timestamps: what one sends the
/// other receives. Each holds back at most `send_buffer` bytes (the kernel's own costs included) that the other has not
/// read.
int handset_pair_open(int ends[2], int send_buffer);
/// Sends one datagram to the other end of a pair.
int handset_pair_send(int end, const uint8_t *bytes, size_t length);
/// Opens a UDP socket on `port` of all IPv4 addresses, which others on this machine may have, too; or on any port if
/// somebody does not share it. Its datagrams to groups travel at most one link, and reach this machine, too.
int handset_group_open(uint16_t port);
/// Makes a socket receive what is sent to the IPv4 group `group` on the interface that has the address `local`.
int handset_group_join(int socket, struct handset_address group, struct handset_address local);
/// Closes a descriptor that one of these functions opened.
void handset_close(int descriptor);
/// Another descriptor, close-on-exec, of what `descriptor` stands for.
int handset_duplicate(int descriptor);
/// The address that a socket is bound to.
int handset_local_address(int socket, struct handset_address *address);
/// The address from which this machine would send to `remote`.
int handset_source_address(struct handset_address remote, struct handset_address *source);
/// Reads "192.0.2.1", "2001:db8::1" or "fe80::1%eth0". Host names are not looked up. 0, or -EINVAL.
int handset_address_parse(const char *text, struct handset_address *address);
/// The first address that a host name stands for; blocks. 0, or -ENOENT.
int handset_address_look_up(const char *host, struct handset_address *address);
/// Writes the address without its port; `text` holds at least 64 bytes.
void handset_address_format(const struct handset_address *address, char *text);

/// Sends one datagram now, from the address `local` of this machine if its family is not 0; any thread may.
int handset_send_one(
    int socket, struct handset_address local, struct handset_address remote, const uint8_t *bytes, size_t length);

/// An address of one of this machine's network interfaces, with the interface's name.
struct handset_interface {
    char name[16];
    struct handset_address address;
};
/// Lists the addresses of the interfaces that are up, at most `capacity`. Returns how many there are.
int handset_interfaces(struct handset_interface *interfaces, int capacity);

/// A socket, non-blocking and close-on-exec, on which the kernel tells of links, addresses and routes (rtnetlink(7)). What does
/// not fit into its buffer is dropped without an error. Returns the descriptor.
int handset_routes_open(void);

/// Receives at most `count` datagrams in one call, without waiting. Returns how many; 0 when there are none. Fewer than
/// asked for are all that waited.
int handset_receive(int socket, struct handset_datagram *datagrams, int count);

/// Sends `count` datagrams in as few calls as the kernel allows. Returns how many it took; the rest is for the
/// caller to count as dropped. A datagram that fails by itself is skipped and counted in `failed`.
/// An end of a pair (`joined`) has only one way to send: the datagrams' addresses are not looked at.
int handset_send(int socket, const struct handset_datagram *datagrams, int count, bool joined, int *failed);

/// The most datagrams one call of the two functions above handles.
#define HANDSET_BATCH_LIMIT 64

/// A set of descriptors as one, which is readable when something can be done with one of them.
int handset_set_open(void);
int handset_set_remove(int set, int descriptor);

/// Begins a TCP connection, non-blocking, close-on-exec, without delay of small pieces, with DSCP `dscp`. At most
/// `unsent_limit` bytes wait in the kernel for their first transmission. Returns the descriptor, which is writable once
/// the connection is made or has failed.
int handset_stream_open(struct handset_address remote, int dscp, int unsent_limit);
/// Why a connection could not be made, as a positive errno; 0 if it was.
int handset_stream_error(int stream);
/// Reads what is there. Returns how many bytes; 0 at the end; -EAGAIN if there is nothing now.
ssize_t handset_stream_read(int stream, uint8_t *bytes, size_t capacity);
/// Writes as many bytes as fit. Returns how many; -EAGAIN if none do now.
ssize_t handset_stream_write(int stream, const uint8_t *bytes, size_t length);

/// A descriptor of a set that something can be done with.
struct handset_ready {
    uint64_t token;
    bool readable, writable;
};
/// Watches a descriptor for reading, and on demand for writing, as a member of a set that is new to it or not.
int handset_set_watch(int set, int descriptor, uint64_t token, bool writing, bool is_new);
/// The most descriptors that the next function finds.
#define HANDSET_READY_LIMIT 256
/// Which descriptors of a set something can be done with now, at most `capacity`, without waiting. Returns how many.
int handset_set_ready(int set, struct handset_ready *ready, int capacity);

/// Waits until `deadline_ns` of CLOCK_MONOTONIC (negative means for ever) has come, or `wakeup` or `socket` (-1 for none)
/// is readable, in one call. Returns a bit mask: 1 for `wakeup`, 2 for `socket`.
int handset_wait_until(int64_t deadline_ns, int wakeup, int socket);

/// A wake-up as a file descriptor: any thread may signal it, one waits for it.
int handset_wakeup_open(void);
int handset_wakeup_signal(int wakeup);
/// Returns 1 if it was signalled, and 0 if not.
int handset_wakeup_clear(int wakeup);

/// Waits until one of `descriptors` (at most 8) is readable. Returns a bit mask of those that are.
/// `timeout_ms` negative means for ever.
int handset_wait_readable(const int *descriptors, int count, int timeout_ms);

/// CLOCK_MONOTONIC now, in nanoseconds.
int64_t handset_monotonic_now(void);
/// CLOCK_REALTIME now, in nanoseconds since 1970.
int64_t handset_wall_now(void);
/// CPU time of the whole process, user and system, in nanoseconds.
int64_t handset_process_cpu_time(void);

typedef void (*handset_thread_main)(void *context);

/// Starts a thread named `name` (cut to 15 bytes) with `stack_size` bytes of stack.
int handset_thread_start(pthread_t *thread, const char *name, size_t stack_size, handset_thread_main main, void *context);
int handset_thread_join(pthread_t thread);

/// Gives the calling thread SCHED_FIFO at `priority`, and the least timer slack. Negative errno when refused.
int handset_thread_make_realtime(int priority);
/// How a thread is scheduled: a policy of sched.h's, and a priority within it.
struct handset_priority {
    int policy, priority;
};
/// Takes real-time priority from the calling thread, if it has one and may have it again. Returns what it had; an ordinary
/// policy if nothing was taken.
struct handset_priority handset_thread_suspend_priority(void);
/// Gives the calling thread back what the function above took.
void handset_thread_resume_priority(struct handset_priority priority);

/// Writes to `bytes` of the calling thread's stack below its frame.
void handset_thread_touch_stack(size_t bytes);
/// How often a page was not there when the calling thread needed it, whether it had to be read from a disk or not.
int64_t handset_thread_page_faults(void);
/// CPU time that the calling thread has used, in nanoseconds.
int64_t handset_thread_cpu_time(void);

/// Locks all memory that the process touches from now on. -EPERM if it may lock no more than a limit, which counts what is
/// reserved and not what is touched.
int handset_lock_memory(void);
/// 0 if this process may do that, or -EPERM.
int handset_check_lock(void);
/// Locks nothing any more.
void handset_unlock_memory(void);
/// Takes the pages of the program and its libraries that cannot change (code, constants) out of this process' memory.
/// Those that are needed come back from the page cache by themselves, at a few microseconds for 64 KiB. Returns false if they
/// stay, because memory is locked.
bool handset_release_code_pages(void);
/// Keeps this process's memory from core dumps, and from debuggers of its own user. Returns 0, or what went wrong as -errno.
int handset_forbid_dumps(void);
/// Whether neither is kept from it.
bool handset_may_be_dumped(void);
/// Gives the system back the whole pages among what was allocated and freed. Other threads wait while their arena is
/// looked through.
void handset_release_free_memory(void);
/// What this process holds of the machine's memory; 0 if that cannot be read.
int64_t handset_resident_bytes(void);
