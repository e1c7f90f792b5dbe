#include "transport.h"

#include "numbers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/socket.h>

int key_length(enum suite suite)
{
    return suite == SUITE_GCM ? 28 : 30;
}

const char *suite_name(enum suite suite)
{
    return suite == SUITE_GCM ? "AEAD_AES_128_GCM" : "AES_CM_128_HMAC_SHA1_80";
}

int suite_from_name(const char *name, enum suite *suite)
{
    for (enum suite known = SUITE_GCM; known <= SUITE_CM; known++) {
        if (strcmp(name, suite_name(known)) == 0 || strcasecmp(name, known == SUITE_GCM ? "gcm" : "cm") == 0) {
            *suite = known;
            return 1;
        }
    }
    return 0;
}

struct key random_key(void)
{
    struct key key;
    if (getrandom(key.bytes, sizeof key.bytes, 0) != sizeof key.bytes)
        give_up("get random numbers");
    return key;
}

void transport_start(void)
{
    errno = 0;
    if (srtp_init() != srtp_err_status_ok)
        give_up("start libsrtp2");
}

srtp_t transport_session(enum suite suite, const struct key *key, srtp_ssrc_type_t direction)
{
    srtp_policy_t policy = {
        .ssrc = {.type = direction},
        .key = (unsigned char *)key->bytes,
        .window_size = 128,
    };
    if (suite == SUITE_GCM) {
        srtp_crypto_policy_set_aes_gcm_128_16_auth(&policy.rtp);
        srtp_crypto_policy_set_aes_gcm_128_16_auth(&policy.rtcp);
    } else {
        srtp_crypto_policy_set_rtp_default(&policy.rtp);
        srtp_crypto_policy_set_rtcp_default(&policy.rtcp);
    }
    srtp_t session = NULL;
    errno = 0;
    if (srtp_create(&session, &policy) != srtp_err_status_ok)
        give_up("create an SRTP session");
    return session;
}

void write_rtp_header(struct sender *sender, uint8_t *packet)
{
    uint16_t sequence = htons(sender->sequence++);
    uint32_t timestamp = htonl(sender->timestamp);
    uint32_t ssrc = htonl(sender->ssrc);

    packet[0] = 0x80;
    packet[1] = sender->payload_type;
    memcpy(packet + 2, &sequence, sizeof sequence);
    memcpy(packet + 4, &timestamp, sizeof timestamp);
    memcpy(packet + 8, &ssrc, sizeof ssrc);
    sender->timestamp += FRAME_SAMPLES;
}

int is_rtcp(const uint8_t *packet, int length)
{
    return length >= 2 && packet[1] >= 192 && packet[1] <= 223;
}

struct sockaddr_in loopback_address(uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
}

int loopback_socket(uint16_t port, uint16_t *bound)
{
    struct sockaddr_in address = loopback_address(port);
    socklen_t length = sizeof address;
    int descriptor = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (descriptor < 0 || bind(descriptor, (struct sockaddr *)&address, sizeof address) != 0
        || getsockname(descriptor, (struct sockaddr *)&address, &length) != 0)
        give_up("open a UDP socket on 127.0.0.1");
    *bound = ntohs(address.sin_port);
    return descriptor;
}
