// The callers' side of calls whose sound matters in time: when which packets leave and arrive, and what is in them.
#include "call_line.h"
#include "line_reader.h"
#include "numbers.h"
#include "speech.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    MAX_CALLS = 200,
    /// −40 dBFS, 28 dB below the tones: fainter samples are silence. A codec rings on at some −45 dBFS.
    LOUD = 328,
    AMPLITUDE = 8000,
    LONGEST_FRAME = 5760,
};

static const char usage[] =
    "usage: ear  < LINES\n"
    "\n"
    "Reads lines for as long as its input is open:\n"
    "  call …        a call line as loadgen takes it: a packet of silence is sent every 20 ms from then on\n"
    "  say CALL MS   MS milliseconds of a tone of 1 kHz in that call (from 0), instead of silence\n"
    "Prints, with nanoseconds of CLOCK_MONOTONIC:\n"
    "  said CALL NS                        the packet with the beginning of a tone leaves\n"
    "  heard CALL NS TIMESTAMP FIRST LAST  a packet has come; its first and last sample that is no silence, or -1 -1\n";

struct ear {
    int socket;
    struct sockaddr_in remote;
    srtp_t sending, receiving;
    struct sender sender;
    OpusEncoder *encoder;
    OpusDecoder *decoder;
    long tone_frames, tone_sample;
};

static struct ear open_ear(const struct call_line *call)
{
    uint16_t port;
    struct ear ear = {
        .socket = loopback_socket(call->local_port, &port),
        .remote = call->remote,
        .sending = transport_session(call->suite, &call->send_key, ssrc_any_outbound),
        .receiving = transport_session(call->suite, &call->receive_key, ssrc_any_inbound),
        .sender = {.ssrc = call->ssrc, .payload_type = call->payload_type},
        .encoder = speech_encoder(),
        .decoder = speech_decoder(),
    };
    return ear;
}

static void send_frame(struct ear *ear, int number)
{
    int16_t samples[FRAME_SAMPLES] = {0};
    _Alignas(16) uint8_t packet[MAX_PACKET_BYTES + SRTP_MAX_TRAILER_LEN];
    int begins = ear->tone_frames > 0 && ear->tone_sample == 0;

    if (ear->tone_frames > 0) {
        for (int i = 0; i < FRAME_SAMPLES; i++)
            samples[i] = (int16_t)(AMPLITUDE * sin(2 * M_PI * 1000 * (double)ear->tone_sample++ / SAMPLE_RATE));
        if (--ear->tone_frames == 0)
            ear->tone_sample = 0;
    }
    write_rtp_header(&ear->sender, packet);
    int length = opus_encode(ear->encoder, samples, FRAME_SAMPLES, packet + RTP_HEADER_BYTES, MAX_PAYLOAD_BYTES);
    errno = 0;
    if (length < 0)
        give_up("encode a frame");
    length += RTP_HEADER_BYTES;
    if (srtp_protect(ear->sending, packet, &length) != srtp_err_status_ok)
        give_up("encrypt a packet");
    int64_t now = monotonic_ns();
    // An error is an ICMP answer to an earlier packet.
    sendto(ear->socket, packet, (size_t)length, 0, (struct sockaddr *)&ear->remote, sizeof ear->remote);
    if (begins)
        printf("said %d %lld\n", number, (long long)now);
}

static void take_in(struct ear *ear, int number)
{
    _Alignas(16) uint8_t packet[2048];
    int16_t samples[LONGEST_FRAME];

    for (;;) {
        int length = (int)recv(ear->socket, packet, sizeof packet, MSG_DONTWAIT);
        if (length < 0)
            return;
        int64_t now = monotonic_ns();
        if (is_rtcp(packet, length) || srtp_unprotect(ear->receiving, packet, &length) != srtp_err_status_ok)
            continue;
        // A header extension goes before the payload (RFC 3550 §5.3.1).
        int start = RTP_HEADER_BYTES + 4 * (packet[0] & 0x0F);
        if ((packet[0] & 0x10) != 0)
            start += 4 + 4 * (packet[start + 2] << 8 | packet[start + 3]);
        int count = start < length ? opus_decode(ear->decoder, packet + start, length - start, samples, LONGEST_FRAME, 0) : 0;
        int first = -1, last = -1;
        for (int i = 0; i < count; i++) {
            if (abs(samples[i]) < LOUD)
                continue;
            first = first < 0 ? i : first;
            last = i;
        }
        uint32_t timestamp = (uint32_t)packet[4] << 24 | (uint32_t)packet[5] << 16 | (uint32_t)packet[6] << 8 | packet[7];
        printf("heard %d %lld %u %d %d\n", number, (long long)now, timestamp, first, last);
    }
}

static void obey(const char *line, struct ear *ears, int *calls)
{
    struct call_line call;
    int number;
    long milliseconds;

    if (sscanf(line, "say %d %ld", &number, &milliseconds) == 2 && number >= 0 && number < *calls) {
        ears[number].tone_frames = milliseconds * SAMPLE_RATE / 1000 / FRAME_SAMPLES;
        ears[number].tone_sample = 0;
    } else if (*calls < MAX_CALLS && parse_call_line(line, &call)) {
        ears[(*calls)++] = open_ear(&call);
    } else {
        errno = 0;
        give_up("follow a line of the input");
    }
}

/// Receives until `deadline_ns`, or until the input has a line.
static void listen_until(int64_t deadline_ns, struct ear *ears, int calls)
{
    struct pollfd waits[MAX_CALLS];

    for (int i = 0; i < calls; i++)
        waits[i] = (struct pollfd){.fd = ears[i].socket, .events = POLLIN};
    for (int64_t left; (left = deadline_ns - monotonic_ns()) > 0;) {
        struct timespec wait = {0, left};
        int ready = ppoll(waits, (nfds_t)calls, &wait, NULL);
        for (int i = 0; ready > 0 && i < calls; i++)
            if (waits[i].revents != 0)
                take_in(&ears[i], i);
    }
}

int main(int argc, char **argv)
{
    static struct ear ears[MAX_CALLS];
    struct line_reader input = {.descriptor = 0};
    int calls = 0;
    char line[512];

    (void)argv;
    if (argc != 1) {
        fputs(usage, stderr);
        return 2;
    }
    transport_start();
    become_realtime();
    // A slot of each 20 ms for each of up to 20 groups, so that packets do not leave all at once.
    enum { SLOTS = 20 };
    int64_t slot_start = monotonic_ns();
    for (long slot = 0; !input.ended; slot++, slot_start += FRAME_NS / SLOTS) {
        while (next_line(&input, line, sizeof line))
            obey(line, ears, &calls);
        for (int i = 0; i < calls; i++)
            if (i % SLOTS == slot % SLOTS)
                send_frame(&ears[i], i);
        listen_until(slot_start + FRAME_NS / SLOTS, ears, calls);
        fflush(stdout);
    }
    return 0;
}
