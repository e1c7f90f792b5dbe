// The paced floor: real time, one thread, woken for each packet, and nothing between its arrival and its answer.
#include "call_line.h"
#include "echo.h"
#include "floor.h"
#include "numbers.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

struct paced_call {
    int socket;
    struct echo echo;
};

static struct paced_call open_call(enum suite suite, uint32_t number)
{
    struct call_line line = {
        .ssrc = 1000 + number,
        .payload_type = 111,
        .suite = suite,
        .send_key = random_key(),
        .receive_key = random_key(),
    };
    uint16_t port;
    struct paced_call call = {
        .socket = loopback_socket(0, &port),
        .echo = echo_open(suite, &line.send_key, &line.receive_key, 2000 + number),
    };
    line.remote = loopback_address(port);
    print_call_line(stdout, &line);
    return call;
}

static void answer(struct paced_call *call)
{
    _Alignas(16) uint8_t packet[MAX_PACKET_BYTES];
    struct sockaddr_in source;
    socklen_t source_length = sizeof source;

    int length = (int)recvfrom(call->socket, packet, sizeof packet, 0, (struct sockaddr *)&source, &source_length);
    if (length < 0)
        give_up("receive a packet");
    length = echo_answer(&call->echo, packet, length);
    if (sendto(call->socket, packet, (size_t)length, 0, (struct sockaddr *)&source, source_length) != length)
        give_up("send a packet");
}

static void watch(int poll, int descriptor, struct paced_call *call)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = call};
    if (epoll_ctl(poll, EPOLL_CTL_ADD, descriptor, &event) != 0)
        give_up("watch a socket");
}

void run_paced(enum suite suite, int count)
{
    int poll = epoll_create1(EPOLL_CLOEXEC);
    struct paced_call *calls = calloc((size_t)count, sizeof *calls);
    if (poll < 0 || calls == NULL)
        give_up("open the calls");
    for (int i = 0; i < count; i++) {
        calls[i] = open_call(suite, (uint32_t)i);
        watch(poll, calls[i].socket, &calls[i]);
    }
    watch(poll, STDIN_FILENO, NULL);
    if (!become_realtime())
        fputs("floor: no real-time priority; figures on a busy machine will be higher\n", stderr);
    puts("go");
    fflush(stdout);

    struct epoll_event events[64];
    for (;;) {
        int ready = epoll_wait(poll, events, 64, -1);
        for (int i = 0; i < ready; i++) {
            struct paced_call *call = events[i].data.ptr;
            if (call == NULL)
                return;  // Standard input closed: the harness is done.
            answer(call);
        }
    }
}
