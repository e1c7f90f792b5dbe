// The tight floor: no waiting, one call, caches as warm as they get.
#include "echo.h"
#include "floor.h"
#include "numbers.h"
#include "speech.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    /// Packets laid in the socket ahead of a measured stretch; well below the default receive buffer.
    BATCH = 32,
};

struct bench {
    int near, far;
    struct sockaddr_in near_address, far_address;
    struct speech speech;
    struct echo echo;
    srtp_t feeding;
    struct sender feeder;
    size_t next;
};

/// Puts `count` packets into the near socket; not measured.
static void feed(struct bench *bench, size_t count)
{
    _Alignas(16) uint8_t packet[MAX_PACKET_BYTES];

    for (size_t i = 0; i < count; i++, bench->next = (bench->next + 1) % bench->speech.count) {
        int length = RTP_HEADER_BYTES + bench->speech.lengths[bench->next];
        write_rtp_header(&bench->feeder, packet);
        memcpy(packet + RTP_HEADER_BYTES, bench->speech.payloads[bench->next], bench->speech.lengths[bench->next]);
        if (srtp_protect(bench->feeding, packet, &length) != srtp_err_status_ok
            || sendto(bench->far, packet, (size_t)length, 0, (struct sockaddr *)&bench->near_address,
                      sizeof bench->near_address) != length)
            give_up("feed a packet");
    }
}

/// Answers `count` packets. Returns the CPU time it took, in nanoseconds.
static int64_t answer(struct bench *bench, size_t count)
{
    _Alignas(16) uint8_t packet[MAX_PACKET_BYTES];

    int64_t started = own_cpu_ns();
    for (size_t i = 0; i < count; i++) {
        int length = (int)recvfrom(bench->near, packet, sizeof packet, 0, NULL, NULL);
        if (length < 0)
            give_up("receive a packet");
        length = echo_answer(&bench->echo, packet, length);
        if (sendto(bench->near, packet, (size_t)length, 0, (struct sockaddr *)&bench->far_address,
                   sizeof bench->far_address) != length)
            give_up("send a packet");
    }
    return own_cpu_ns() - started;
}

/// Empties the far socket; not measured.
static void discard(struct bench *bench)
{
    uint8_t packet[MAX_PACKET_BYTES];
    while (recv(bench->far, packet, sizeof packet, MSG_DONTWAIT) >= 0)
        continue;
}

/// One lap of the speech, in batches. Returns its CPU time in nanoseconds.
static int64_t run_lap(struct bench *bench)
{
    int64_t spent = 0;
    for (size_t done = 0; done < bench->speech.count;) {
        size_t count = bench->speech.count - done < BATCH ? bench->speech.count - done : BATCH;
        feed(bench, count);
        spent += answer(bench, count);
        discard(bench);
        done += count;
    }
    return spent;
}

static int ascending(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

void run_tight(enum suite suite, int laps, const char *speech_directory)
{
    struct key inbound = random_key(), outbound = random_key();
    struct bench bench = {
        .speech = speech_load(speech_directory),
        .echo = echo_open(suite, &inbound, &outbound, 2),
        .feeding = transport_session(suite, &inbound, ssrc_any_outbound),
        .feeder = {.ssrc = 1, .payload_type = 111},
    };
    uint16_t near_port, far_port;
    bench.near = loopback_socket(0, &near_port);
    bench.far = loopback_socket(0, &far_port);
    bench.near_address = loopback_address(near_port);
    bench.far_address = loopback_address(far_port);

    double *microseconds = calloc((size_t)laps, sizeof *microseconds);
    if (microseconds == NULL)
        give_up("hold the laps");
    run_lap(&bench);  // The first lap warms the caches and the codec's adaptation, and does not count.
    for (int lap = 0; lap < laps; lap++)
        microseconds[lap] = (double)run_lap(&bench) / 1000 / (double)bench.speech.count;
    qsort(microseconds, (size_t)laps, sizeof *microseconds, ascending);

    printf("{\"suite\": \"%s\", \"frames\": %zu, \"cpu_us\": %.2f, \"least_us\": %.2f, \"most_us\": %.2f}\n",
           suite_name(suite), (size_t)laps * bench.speech.count, microseconds[laps / 2], microseconds[0],
           microseconds[laps - 1]);
    free(microseconds);
}
