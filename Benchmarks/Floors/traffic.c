#include "traffic.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/// Encrypts the packets one behind the other into `traffic->bytes`.
static void prepare(struct traffic *traffic, const struct call_line *call, const struct speech *speech, size_t first)
{
    srtp_t sending = transport_session(call->suite, &call->send_key, ssrc_any_outbound);
    struct sender sender = {.ssrc = call->ssrc, .payload_type = call->payload_type};
    uint8_t *at = traffic->bytes;

    for (size_t n = 0; n < traffic->total; n++) {
        size_t frame = (first + n) % speech->count;
        int length = RTP_HEADER_BYTES + speech->lengths[frame];
        write_rtp_header(&sender, at);
        memcpy(at + RTP_HEADER_BYTES, speech->payloads[frame], speech->lengths[frame]);
        errno = 0;
        if (srtp_protect(sending, at, &length) != srtp_err_status_ok)
            give_up("encrypt a packet");
        traffic->lengths[n] = (uint16_t)length;
        at += (length + 3) & ~3;  // libsrtp2 wants packets aligned to four bytes.
    }
    srtp_dealloc(sending);
}

struct traffic traffic_open(const struct call_line *call, const struct speech *speech, size_t first, size_t packets)
{
    size_t speech_bytes = 0;
    for (size_t n = 0; n < speech->count; n++)
        speech_bytes += speech->lengths[n];
    size_t laps = packets / speech->count + 1;
    size_t overhead = RTP_HEADER_BYTES + SRTP_MAX_TRAILER_LEN + 4;
    uint16_t port;
    struct traffic traffic = {
        .socket = loopback_socket(call->local_port, &port),
        .remote = call->remote,
        .receiving = transport_session(call->suite, &call->receive_key, ssrc_any_inbound),
        .bytes = malloc(laps * (speech_bytes + speech->count * overhead)),
        .lengths = calloc(packets, sizeof(uint16_t)),
        .total = packets,
    };
    if (traffic.bytes == NULL || traffic.lengths == NULL)
        give_up("hold the packets");
    prepare(&traffic, call, speech, first);
    return traffic;
}

static void take_in(struct traffic *traffic)
{
    _Alignas(16) uint8_t packet[2048];

    for (;;) {
        int length = (int)recv(traffic->socket, packet, sizeof packet, MSG_DONTWAIT);
        if (length < 0)
            return;
        if (is_rtcp(packet, length)) {
            traffic->counts.rtcp++;
        } else if (srtp_unprotect(traffic->receiving, packet, &length) == srtp_err_status_ok) {
            traffic->counts.received++;
            traffic->counts.payload_bytes += length - RTP_HEADER_BYTES;
        } else {
            traffic->counts.rejected++;
        }
    }
}

void traffic_step(struct traffic *traffic)
{
    if (traffic->next < traffic->total) {
        size_t length = traffic->lengths[traffic->next++];
        // An error is an ICMP answer to an earlier packet; what did not arrive shows in the counts.
        if (sendto(traffic->socket, traffic->bytes + traffic->offset, length, 0, (struct sockaddr *)&traffic->remote,
                   sizeof traffic->remote) == (ssize_t)length)
            traffic->counts.sent++;
        traffic->offset += (length + 3) & ~(size_t)3;
    }
    take_in(traffic);
}

struct counts traffic_total(const struct traffic *all, int calls)
{
    struct counts total = {0};
    for (int i = 0; i < calls; i++) {
        total.sent += all[i].counts.sent;
        total.received += all[i].counts.received;
        total.payload_bytes += all[i].counts.payload_bytes;
        total.rtcp += all[i].counts.rtcp;
        total.rejected += all[i].counts.rejected;
    }
    return total;
}
