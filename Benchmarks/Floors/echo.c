#include "echo.h"

#include <errno.h>

struct echo echo_open(enum suite suite, const struct key *receive_key, const struct key *send_key, uint32_t ssrc)
{
    return (struct echo){
        .receiving = transport_session(suite, receive_key, ssrc_any_inbound),
        .sending = transport_session(suite, send_key, ssrc_any_outbound),
        .decoder = speech_decoder(),
        .encoder = speech_encoder(),
        .sender = {.ssrc = ssrc, .payload_type = 111},
    };
}

int echo_answer(struct echo *echo, uint8_t packet[MAX_PACKET_BYTES], int length)
{
    int16_t samples[FRAME_SAMPLES];

    errno = 0;
    if (srtp_unprotect(echo->receiving, packet, &length) != srtp_err_status_ok)
        give_up("unprotect a packet");
    if (opus_decode(echo->decoder, packet + RTP_HEADER_BYTES, length - RTP_HEADER_BYTES, samples, FRAME_SAMPLES, 0)
        != FRAME_SAMPLES)
        give_up("decode a packet");

    int payload = opus_encode(echo->encoder, samples, FRAME_SAMPLES, packet + RTP_HEADER_BYTES, MAX_PAYLOAD_BYTES);
    if (payload < 0)
        give_up("encode a frame");
    write_rtp_header(&echo->sender, packet);
    length = RTP_HEADER_BYTES + payload;
    if (srtp_protect(echo->sending, packet, &length) != srtp_err_status_ok)
        give_up("protect a packet");
    return length;
}
