#include "CRealtime.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <malloc.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static int64_t clock_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t handset_monotonic_now(void) { return clock_ns(CLOCK_MONOTONIC); }
int64_t handset_wall_now(void) { return clock_ns(CLOCK_REALTIME); }
int64_t handset_process_cpu_time(void) { return clock_ns(CLOCK_PROCESS_CPUTIME_ID); }

static socklen_t to_sockaddr(const struct handset_address *address, struct sockaddr_storage *storage) {
    memset(storage, 0, sizeof(struct sockaddr_in6));
    if (address->family == 6) {
        struct sockaddr_in6 *six = (struct sockaddr_in6 *)storage;
        six->sin6_family = AF_INET6;
        six->sin6_port = htons(address->port);
        six->sin6_scope_id = address->scope;
        memcpy(&six->sin6_addr, address->bytes, 16);
        return sizeof *six;
    }
    struct sockaddr_in *four = (struct sockaddr_in *)storage;
    four->sin_family = AF_INET;
    four->sin_port = htons(address->port);
    memcpy(&four->sin_addr, address->bytes, 4);
    return sizeof *four;
}

static void from_sockaddr(const struct sockaddr_storage *storage, struct handset_address *address) {
    memset(address, 0, sizeof *address);
    if (storage->ss_family == AF_INET6) {
        const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)storage;
        memcpy(address->bytes, &six->sin6_addr, 16);
        address->port = ntohs(six->sin6_port);
        address->scope = six->sin6_scope_id;
        address->family = 6;
    } else if (storage->ss_family == AF_INET) {
        const struct sockaddr_in *four = (const struct sockaddr_in *)storage;
        memcpy(address->bytes, &four->sin_addr, 4);
        address->port = ntohs(four->sin_port);
        address->family = 4;
    }
}

int handset_udp_open(struct handset_address address, int receive_buffer, int dscp) {
    struct sockaddr_storage storage;
    socklen_t length = to_sockaddr(&address, &storage);
    int fd = socket(storage.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -errno;
    int on = 1, tos = dscp << 2;
    if (storage.ss_family == AF_INET6) {
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
        setsockopt(fd, IPPROTO_IPV6, IPV6_TCLASS, &tos, sizeof tos);
    } else {
        setsockopt(fd, IPPROTO_IP, IP_TOS, &tos, sizeof tos);
    }
    // A socket for all addresses has to learn which one each datagram came to.
    static const uint8_t any[16];
    if (memcmp(address.bytes, any, sizeof any) == 0) {
        if (storage.ss_family == AF_INET6)
            setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof on);
        else
            setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof on);
    }
    // Without timestamps the time of reading stands in, so a refusal is not an error; nor is a smaller buffer.
    setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    if (bind(fd, (struct sockaddr *)&storage, length) < 0) {
        int error = errno;
        close(fd);
        return -error;
    }
    return fd;
}

int handset_pair_open(int ends[2], int send_buffer) {
    if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) < 0) return -errno;
    int on = 1;
    for (int i = 0; i < 2; i++) {
        setsockopt(ends[i], SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
        setsockopt(ends[i], SOL_SOCKET, SO_SNDBUF, &send_buffer, sizeof send_buffer);
    }
    return 0;
}

int handset_pair_send(int end, const uint8_t *bytes, size_t length) {
    ssize_t sent;
    do {
        sent = send(end, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : 0;
}

int handset_group_open(uint16_t port) {
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -errno;
    int on = 1, off = 0, hops = 255;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    setsockopt(fd, IPPROTO_IP, IP_MULTICAST_TTL, &hops, sizeof hops);
    setsockopt(fd, IPPROTO_IP, IP_MULTICAST_LOOP, &on, sizeof on);
    // Only what comes by the interfaces that this socket has joined at, not what others here have.
    setsockopt(fd, IPPROTO_IP, IP_MULTICAST_ALL, &off, sizeof off);
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(port)};
    if (bind(fd, (struct sockaddr *)&name, sizeof name) == 0) return fd;
    name.sin_port = 0;
    if (bind(fd, (struct sockaddr *)&name, sizeof name) == 0) return fd;
    int error = errno;
    close(fd);
    return -error;
}

int handset_group_join(int socket, struct handset_address group, struct handset_address local) {
    if (group.family != 4 || local.family != 4) return -EAFNOSUPPORT;
    struct ip_mreqn request = {0};
    memcpy(&request.imr_multiaddr, group.bytes, 4);
    memcpy(&request.imr_address, local.bytes, 4);
    return setsockopt(socket, IPPROTO_IP, IP_ADD_MEMBERSHIP, &request, sizeof request) < 0 ? -errno : 0;
}

void handset_close(int descriptor) { close(descriptor); }

int handset_duplicate(int descriptor) {
    int copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    return copy < 0 ? -errno : copy;
}

int handset_local_address(int socket, struct handset_address *address) {
    struct sockaddr_storage storage;
    socklen_t length = sizeof storage;
    if (getsockname(socket, (struct sockaddr *)&storage, &length) < 0) return -errno;
    from_sockaddr(&storage, address);
    return 0;
}

int handset_source_address(struct handset_address remote, struct handset_address *source) {
    struct sockaddr_storage storage;
    socklen_t length = to_sockaddr(&remote, &storage);
    // Connecting a UDP socket sends nothing: it only makes the kernel choose a route.
    int fd = socket(storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return -errno;
    int result = connect(fd, (struct sockaddr *)&storage, length) < 0 ? -errno : handset_local_address(fd, source);
    close(fd);
    return result;
}

int handset_address_parse(const char *text, struct handset_address *address) {
    memset(address, 0, sizeof *address);
    if (inet_pton(AF_INET, text, address->bytes) == 1) {
        address->family = 4;
        return 0;
    }
    char host[64];
    strncpy(host, text, sizeof host - 1);
    host[sizeof host - 1] = 0;
    char *percent = strchr(host, '%');
    if (percent) {
        *percent = 0;
        address->scope = if_nametoindex(percent + 1);
        if (address->scope == 0) return -EINVAL;
    }
    if (inet_pton(AF_INET6, host, address->bytes) != 1) return -EINVAL;
    address->family = 6;
    return 0;
}

int handset_address_look_up(const char *host, struct handset_address *address) {
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_flags = AI_ADDRCONFIG}, *found = NULL;
    if (getaddrinfo(host, NULL, &hints, &found) != 0 || !found) return -ENOENT;
    struct sockaddr_storage storage;
    memcpy(&storage, found->ai_addr, found->ai_addrlen);
    from_sockaddr(&storage, address);
    freeaddrinfo(found);
    return 0;
}

void handset_address_format(const struct handset_address *address, char *text) {
    inet_ntop(address->family == 6 ? AF_INET6 : AF_INET, address->bytes, text, 64);
}

static int64_t kernel_arrival(struct msghdr *message, int64_t now_monotonic, int64_t now_realtime) {
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_TIMESTAMPNS) continue;
        struct timespec t;
        memcpy(&t, CMSG_DATA(c), sizeof t);
        int64_t age = now_realtime - ((int64_t)t.tv_sec * 1000000000 + t.tv_nsec);
        // A wall clock that was set in between gives an age that cannot be: then the time of reading stands in.
        if (age >= 0 && age < 1000000000) return now_monotonic - age;
    }
    return now_monotonic;
}

// The address of this machine that a datagram came to, where the socket is one for all addresses.
static void arrival_address(struct msghdr *message, struct handset_address *local) {
    memset(local, 0, sizeof *local);
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
            struct in_pktinfo info;
            memcpy(&info, CMSG_DATA(c), sizeof info);
            memcpy(local->bytes, &info.ipi_addr, 4);
            local->family = 4;
        } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
            struct in6_pktinfo info;
            memcpy(&info, CMSG_DATA(c), sizeof info);
            memcpy(local->bytes, &info.ipi6_addr, 16);
            if (IN6_IS_ADDR_LINKLOCAL(&info.ipi6_addr)) local->scope = info.ipi6_ifindex;
            local->family = 6;
        }
    }
}

// Lets a datagram leave from `local`, which a socket for all addresses would otherwise choose by its route.
static void set_source(struct msghdr *message, const struct handset_address *local, char *control) {
    if (local->family == 4) {
        struct in_pktinfo info = {0};
        memcpy(&info.ipi_spec_dst, local->bytes, 4);
        message->msg_control = control;
        message->msg_controllen = CMSG_SPACE(sizeof info);
        struct cmsghdr *c = CMSG_FIRSTHDR(message);
        *c = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(sizeof info), .cmsg_level = IPPROTO_IP, .cmsg_type = IP_PKTINFO};
        memcpy(CMSG_DATA(c), &info, sizeof info);
    } else if (local->family == 6) {
        struct in6_pktinfo info = {.ipi6_ifindex = local->scope};
        memcpy(&info.ipi6_addr, local->bytes, 16);
        message->msg_control = control;
        message->msg_controllen = CMSG_SPACE(sizeof info);
        struct cmsghdr *c = CMSG_FIRSTHDR(message);
        *c = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(sizeof info), .cmsg_level = IPPROTO_IPV6, .cmsg_type = IPV6_PKTINFO};
        memcpy(CMSG_DATA(c), &info, sizeof info);
    }
}

#define RECEIVE_CONTROL (CMSG_SPACE(sizeof(struct timespec)) + CMSG_SPACE(sizeof(struct in6_pktinfo)))
#define SEND_CONTROL CMSG_SPACE(sizeof(struct in6_pktinfo))

int handset_receive(int socket, struct handset_datagram *datagrams, int count) {
    struct mmsghdr messages[HANDSET_BATCH_LIMIT];
    struct iovec parts[HANDSET_BATCH_LIMIT];
    struct sockaddr_storage sources[HANDSET_BATCH_LIMIT];
    _Alignas(struct cmsghdr) char control[HANDSET_BATCH_LIMIT][RECEIVE_CONTROL];
    if (count > HANDSET_BATCH_LIMIT) count = HANDSET_BATCH_LIMIT;
    for (int i = 0; i < count; i++) {
        parts[i] = (struct iovec){.iov_base = datagrams[i].bytes, .iov_len = datagrams[i].length};
        sources[i].ss_family = AF_UNSPEC;  // An end of a pair has no address, and the kernel writes none.
        messages[i].msg_hdr = (struct msghdr){
            .msg_name = &sources[i], .msg_namelen = sizeof sources[i],
            .msg_iov = &parts[i], .msg_iovlen = 1,
            .msg_control = control[i], .msg_controllen = sizeof control[i],
        };
    }
    int received = recvmmsg(socket, messages, (unsigned)count, MSG_DONTWAIT, NULL);
    if (received < 0) return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    if (received == 0) return 0;
    int64_t monotonic = clock_ns(CLOCK_MONOTONIC), realtime = clock_ns(CLOCK_REALTIME);
    for (int i = 0; i < received; i++) {
        datagrams[i].length = messages[i].msg_len;
        datagrams[i].truncated = (messages[i].msg_hdr.msg_flags & MSG_TRUNC) != 0;
        from_sockaddr(&sources[i], &datagrams[i].address);
        datagrams[i].arrival_ns = kernel_arrival(&messages[i].msg_hdr, monotonic, realtime);
        arrival_address(&messages[i].msg_hdr, &datagrams[i].local);
    }
    return received;
}

int handset_send(int socket, const struct handset_datagram *datagrams, int count, bool joined, int *failed) {
    struct mmsghdr messages[HANDSET_BATCH_LIMIT];
    struct iovec parts[HANDSET_BATCH_LIMIT];
    struct sockaddr_storage targets[HANDSET_BATCH_LIMIT];
    _Alignas(struct cmsghdr) char control[HANDSET_BATCH_LIMIT][SEND_CONTROL];
    if (count > HANDSET_BATCH_LIMIT) count = HANDSET_BATCH_LIMIT;
    for (int i = 0; i < count; i++) {
        parts[i] = (struct iovec){.iov_base = datagrams[i].bytes, .iov_len = datagrams[i].length};
        messages[i].msg_hdr = (struct msghdr){.msg_iov = &parts[i], .msg_iovlen = 1};
        if (joined) continue;
        messages[i].msg_hdr.msg_name = &targets[i];
        messages[i].msg_hdr.msg_namelen = to_sockaddr(&datagrams[i].address, &targets[i]);
        set_source(&messages[i].msg_hdr, &datagrams[i].local, control[i]);
    }
    int done = 0;
    *failed = 0;
    while (done < count) {
        int sent = sendmmsg(socket, messages + done, (unsigned)(count - done), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent > 0) {
            done += sent;
        } else if (errno == EINTR) {
            continue;
        } else if (errno == EAGAIN || errno == ENOBUFS) {
            break;
        } else {
            // The first one failed by itself (no route, or an ICMP error of an earlier one): go on behind it.
            done += 1;
            *failed += 1;
        }
    }
    return done;
}

int handset_send_one(
    int socket, struct handset_address local, struct handset_address remote, const uint8_t *bytes, size_t length) {
    struct sockaddr_storage target;
    _Alignas(struct cmsghdr) char control[SEND_CONTROL];
    struct iovec part = {.iov_base = (void *)bytes, .iov_len = length};
    struct msghdr message = {
        .msg_name = &target, .msg_namelen = to_sockaddr(&remote, &target), .msg_iov = &part, .msg_iovlen = 1};
    set_source(&message, &local, control);
    ssize_t sent;
    do {
        sent = sendmsg(socket, &message, MSG_DONTWAIT);
    } while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : 0;
}

int handset_interfaces(struct handset_interface *interfaces, int capacity) {
    struct ifaddrs *list;
    if (getifaddrs(&list) < 0) return -errno;
    int count = 0;
    for (struct ifaddrs *i = list; i; i = i->ifa_next) {
        if (!i->ifa_addr || !(i->ifa_flags & IFF_UP)) continue;
        if (i->ifa_addr->sa_family != AF_INET && i->ifa_addr->sa_family != AF_INET6) continue;
        if (count < capacity) {
            struct sockaddr_storage storage;
            size_t length =
                i->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
            memcpy(&storage, i->ifa_addr, length);
            from_sockaddr(&storage, &interfaces[count].address);
            strncpy(interfaces[count].name, i->ifa_name, sizeof interfaces[count].name - 1);
            interfaces[count].name[sizeof interfaces[count].name - 1] = 0;
        }
        count++;
    }
    freeifaddrs(list);
    return count;
}

int handset_routes_open(void) {
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    if (fd < 0) return -errno;
    int on = 1;
    setsockopt(fd, SOL_NETLINK, NETLINK_NO_ENOBUFS, &on, sizeof on);
    struct sockaddr_nl address = {
        .nl_family = AF_NETLINK,
        .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_IFADDR | RTMGRP_IPV6_ROUTE};
    if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        int error = errno;
        close(fd);
        return -error;
    }
    return fd;
}

int handset_set_open(void) {
    int fd = epoll_create1(EPOLL_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int handset_set_remove(int set, int descriptor) {
    return epoll_ctl(set, EPOLL_CTL_DEL, descriptor, NULL) < 0 ? -errno : 0;
}

int handset_set_watch(int set, int descriptor, uint64_t token, bool writing, bool is_new) {
    struct epoll_event event = {.events = EPOLLIN | (writing ? EPOLLOUT : 0), .data.u64 = token};
    return epoll_ctl(set, is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, descriptor, &event) < 0 ? -errno : 0;
}

int handset_set_ready(int set, struct handset_ready *ready, int capacity) {
    struct epoll_event events[HANDSET_READY_LIMIT];
    int count = epoll_wait(set, events, capacity < HANDSET_READY_LIMIT ? capacity : HANDSET_READY_LIMIT, 0);
    if (count < 0) return errno == EINTR ? 0 : -errno;
    for (int i = 0; i < count; i++) {
        // An error or a hang-up is told by the next read.
        ready[i].token = events[i].data.u64;
        ready[i].readable = events[i].events & (EPOLLIN | EPOLLERR | EPOLLHUP);
        ready[i].writable = events[i].events & (EPOLLOUT | EPOLLERR | EPOLLHUP);
    }
    return count;
}

int handset_stream_open(struct handset_address remote, int dscp, int unsent_limit) {
    struct sockaddr_storage storage;
    socklen_t length = to_sockaddr(&remote, &storage);
    int fd = socket(storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -errno;
    int on = 1, tos = dscp << 2;
    if (storage.ss_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_TCLASS, &tos, sizeof tos);
    else
        setsockopt(fd, IPPROTO_IP, IP_TOS, &tos, sizeof tos);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent_limit, sizeof unsent_limit);
    if (connect(fd, (struct sockaddr *)&storage, length) < 0 && errno != EINPROGRESS) {
        int error = errno;
        close(fd);
        return -error;
    }
    return fd;
}

int handset_stream_error(int stream) {
    int error = 0;
    socklen_t length = sizeof error;
    return getsockopt(stream, SOL_SOCKET, SO_ERROR, &error, &length) < 0 ? errno : error;
}

ssize_t handset_stream_read(int stream, uint8_t *bytes, size_t capacity) {
    ssize_t count;
    do {
        count = recv(stream, bytes, capacity, MSG_DONTWAIT);
    } while (count < 0 && errno == EINTR);
    return count < 0 ? -errno : count;
}

ssize_t handset_stream_write(int stream, const uint8_t *bytes, size_t length) {
    ssize_t count;
    do {
        count = send(stream, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (count < 0 && errno == EINTR);
    return count < 0 ? -errno : count;
}

int handset_wakeup_open(void) {
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int handset_wakeup_signal(int wakeup) {
    uint64_t one = 1;
    return write(wakeup, &one, sizeof one) < 0 && errno != EAGAIN ? -errno : 0;
}

int handset_wakeup_clear(int wakeup) {
    uint64_t count;
    if (read(wakeup, &count, sizeof count) >= 0) return 1;
    return errno == EAGAIN ? 0 : -errno;
}

int handset_wait_readable(const int *descriptors, int count, int timeout_ms) {
    struct pollfd polled[8];
    if (count > 8) return -EINVAL;
    for (int i = 0; i < count; i++) polled[i] = (struct pollfd){.fd = descriptors[i], .events = POLLIN};
    int ready = poll(polled, (nfds_t)count, timeout_ms);
    if (ready < 0) return errno == EINTR ? 0 : -errno;
    int mask = 0;
    for (int i = 0; i < count; i++)
        if (polled[i].revents) mask |= 1 << i;
    return mask;
}

int handset_wait_until(int64_t deadline_ns, int wakeup, int socket) {
    struct pollfd polled[] = {{.fd = wakeup, .events = POLLIN}, {.fd = socket, .events = POLLIN}};
    struct timespec rest = {0};
    if (deadline_ns >= 0) {
        int64_t left = deadline_ns - clock_ns(CLOCK_MONOTONIC);
        if (left > 0) rest = (struct timespec){.tv_sec = left / 1000000000, .tv_nsec = left % 1000000000};
    }
    // In nanoseconds, which poll(2) has not; the kernel lets real-time threads have them to the full.
    int ready = ppoll(polled, socket < 0 ? 1 : 2, deadline_ns < 0 ? NULL : &rest, NULL);
    if (ready < 0) return errno == EINTR ? 0 : -errno;
    if (ready == 0) return 0;
    return (polled[0].revents ? 1 : 0) | (socket >= 0 && polled[1].revents ? 2 : 0);
}

struct thread_start {
    handset_thread_main main;
    void *context;
    char name[16];
};

static void *thread_entry(void *argument) {
    struct thread_start start = *(struct thread_start *)argument;
    free(argument);
    pthread_setname_np(pthread_self(), start.name);
    start.main(start.context);
    return NULL;
}

int handset_thread_start(
    pthread_t *thread, const char *name, size_t stack_size, handset_thread_main main, void *context) {
    struct thread_start *start = malloc(sizeof *start);
    if (!start) return -ENOMEM;
    start->main = main;
    start->context = context;
    strncpy(start->name, name, sizeof start->name - 1);
    start->name[sizeof start->name - 1] = 0;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, stack_size);
    int error = pthread_create(thread, &attributes, thread_entry, start);
    pthread_attr_destroy(&attributes);
    if (error) free(start);
    return -error;
}

int handset_thread_join(pthread_t thread) { return -pthread_join(thread, NULL); }

int handset_thread_make_realtime(int priority) {
    struct sched_param parameter = {.sched_priority = priority};
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    return -pthread_setschedparam(pthread_self(), SCHED_FIFO, &parameter);
}

// Of the calling thread. The calls that Linux has, and not those of pthreads, which only know what they were told.
static struct handset_priority current_priority(void) {
    struct sched_param parameter = {0};
    int policy = sched_getscheduler(0);
    if (policy < 0 || sched_getparam(0, &parameter) < 0) return (struct handset_priority){.policy = SCHED_OTHER};
    return (struct handset_priority){.policy = policy, .priority = parameter.sched_priority};
}

static bool set_priority(struct handset_priority priority) {
    struct sched_param parameter = {.sched_priority = priority.priority};
    return sched_setscheduler(0, priority.policy, &parameter) == 0;
}

static struct handset_priority ordinary(struct handset_priority priority) {
    // A thread may not let go of the flag by which its children are ordinary.
    return (struct handset_priority){.policy = SCHED_OTHER | (priority.policy & SCHED_RESET_ON_FORK)};
}

static bool is_realtime(struct handset_priority priority) {
    int policy = priority.policy & ~SCHED_RESET_ON_FORK;
    return policy == SCHED_FIFO || policy == SCHED_RR;
}

static void *try_return(void *context) {
    struct handset_priority priority = *(struct handset_priority *)context;
    return set_priority(ordinary(priority)) && set_priority(priority) ? context : NULL;
}

// Whether a thread of this process that gives this priority up gets it again. One that it was started with by another
// process is often one that it may not ask for; a thread that only tries has nothing to lose.
static bool may_return(struct handset_priority priority) {
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 128 * 1024);
    void *result = NULL;
    if (pthread_create(&thread, &attributes, try_return, &priority) == 0) pthread_join(thread, &result);
    pthread_attr_destroy(&attributes);
    return result != NULL;
}

struct handset_priority handset_thread_suspend_priority(void) {
    struct handset_priority priority = current_priority();
    if (is_realtime(priority) && may_return(priority) && set_priority(ordinary(priority))) return priority;
    return (struct handset_priority){.policy = SCHED_OTHER};
}

void handset_thread_resume_priority(struct handset_priority priority) {
    if (is_realtime(priority)) set_priority(priority);
}

void handset_thread_touch_stack(size_t bytes) {
    volatile char *space = __builtin_alloca(bytes);
    for (size_t i = 0; i < bytes; i += 4096) space[bytes - 1 - i] = 0;
}

int64_t handset_thread_page_faults(void) {
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) < 0 ? 0 : (int64_t)usage.ru_minflt + usage.ru_majflt;
}

int64_t handset_thread_cpu_time(void) { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }

// Whether the limits on locked memory do not count for this process.
static bool may_lock_all(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_MEMLOCK, &limit) < 0) return false;
    if (limit.rlim_cur == RLIM_INFINITY) return true;
    if (limit.rlim_cur > (rlim_t)PTRDIFF_MAX / 2) return false;
    // CAP_IPC_LOCK counts only in the first user namespace, and a process cannot tell in which one it is. So this asks for
    // a lock beyond the limit: of addresses, which nothing touches and which take no memory.
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = ((size_t)limit.rlim_cur / page + 2) * page;
    void *probe = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (probe == MAP_FAILED) return false;
    bool may = mlock2(probe, size, MLOCK_ONFAULT) == 0;
    munmap(probe, size);
    return may;
}

int handset_check_lock(void) { return may_lock_all() ? 0 : -EPERM; }

int handset_lock_memory(void) {
    if (!may_lock_all()) return -EPERM;
    return mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) < 0 ? -errno : 0;
}

void handset_unlock_memory(void) { munlockall(); }

static int release_object(struct dl_phdr_info *object, size_t size, void *context) {
    (void)size;
    bool *released = context;
    // The kernel's own part of every process, which takes none of its memory.
    if (object->dlpi_addr == getauxval(AT_SYSINFO_EHDR)) return 0;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        // What could have been written to would be lost; and only whole pages belong to one segment alone.
        if (segment->p_type != PT_LOAD || (segment->p_flags & PF_W)) continue;
        uintptr_t start = object->dlpi_addr + segment->p_vaddr;
        uintptr_t first = (start + page - 1) & ~(page - 1), end = (start + segment->p_filesz) & ~(page - 1);
        // Locked memory stays, and is told as an error.
        if (end > first && madvise((void *)first, end - first, MADV_DONTNEED) == 0) *released = true;
    }
    return 0;
}

// Finds a section of a program; false if it has none of that name.
static bool find_section(int program, const char *name, uintptr_t *start, uintptr_t *end) {
    ElfW(Ehdr) header;
    ElfW(Shdr) names, section;
    if (pread(program, &header, sizeof header, 0) != sizeof header || header.e_shentsize != sizeof section) return false;
    off_t table = (off_t)header.e_shoff;
    if (pread(program, &names, sizeof names, table + header.e_shstrndx * (off_t)sizeof names) != sizeof names) return false;
    size_t length = strlen(name) + 1;
    for (int i = 0; i < header.e_shnum; i++) {
        char own[32];
        if (pread(program, &section, sizeof section, table + i * (off_t)sizeof section) != sizeof section) return false;
        if (pread(program, own, length, (off_t)(names.sh_offset + section.sh_name)) != (ssize_t)length) continue;
        if (memcmp(own, name, length) != 0) continue;
        *start = section.sh_addr;
        *end = section.sh_addr + section.sh_size;
        return true;
    }
    return false;
}

// Releases those pages that are as they are in the file.
static void release_file_pages(int map, uintptr_t first, uintptr_t end, bool *released) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uint64_t of_file = UINT64_C(1) << 63 | UINT64_C(1) << 61;  // It is in memory, and belongs to a file.
    uint64_t entries[512];
    for (uintptr_t at = (first + page - 1) / page; at < end / page; at += sizeof entries / sizeof *entries) {
        ssize_t count = pread(map, entries, sizeof entries, (off_t)(at * sizeof *entries)) / (ssize_t)sizeof *entries;
        for (ssize_t i = 0; i < count && at + (uintptr_t)i < end / page; i++) {
            if ((entries[i] & of_file) != of_file) continue;
            if (madvise((void *)((at + (uintptr_t)i) * page), page, MADV_DONTNEED) == 0) *released = true;
        }
    }
}

// Which pages of this process are in memory. Open from handset_forbid_dumps() on, because the file is root's afterwards.
static int page_map = -1;

static int open_page_map(void) { return open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC); }

int handset_forbid_dumps(void) {
    if (page_map < 0) page_map = open_page_map();
    return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 ? 0 : -errno;
}

bool handset_may_be_dumped(void) { return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0; }

// Constants of the program lie in a segment that may be written to, because some are addresses, which the loader fills in.
// Pages with such addresses stay.
static int release_constants(struct dl_phdr_info *object, size_t size, void *context) {
    (void)size;
    int program = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), map = page_map >= 0 ? page_map : open_page_map();
    uintptr_t start, end;
    if (program >= 0 && map >= 0 && find_section(program, ".rodata", &start, &end))
        release_file_pages(map, object->dlpi_addr + start, object->dlpi_addr + end, context);
    if (program >= 0) close(program);
    if (map >= 0 && map != page_map) close(map);
    return 1;  // The first object is the program.
}

bool handset_release_code_pages(void) {
    bool released = false;
    dl_iterate_phdr(release_object, &released);
    dl_iterate_phdr(release_constants, &released);
    return released;
}

void handset_release_free_memory(void) { malloc_trim(0); }

int64_t handset_resident_bytes(void) {
    // "SIZE RESIDENT …", in pages.
    int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    char text[128];
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    if (length <= 0) return 0;
    text[length] = 0;
    char *rest = text;
    strtoll(text, &rest, 10);
    return strtoll(rest, NULL, 10) * sysconf(_SC_PAGESIZE);
}
