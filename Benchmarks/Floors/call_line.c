#include "call_line.h"

#include "numbers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Base64 of `length` bytes, padded to whole groups of four digits.
static void encode_base64(const uint8_t *bytes, int length, char *text)
{
    for (int at = 0; at < length; at += 3) {
        uint32_t group = (uint32_t)bytes[at] << 16;
        int present = length - at < 3 ? length - at : 3;
        if (present > 1)
            group |= (uint32_t)bytes[at + 1] << 8;
        if (present > 2)
            group |= bytes[at + 2];
        for (int digit = 0; digit < 4; digit++)
            *text++ = digit <= present ? alphabet[group >> (18 - 6 * digit) & 63] : '=';
    }
    *text = '\0';
}

/// Returns whether `text` is base64 of exactly `length` bytes.
static int decode_base64(const char *text, uint8_t *bytes, int length)
{
    uint32_t bits = 0;
    int held = 0, written = 0;

    for (; *text != '\0' && *text != '='; text++) {
        const char *digit = strchr(alphabet, *text);
        if (digit == NULL)
            return 0;
        bits = bits << 6 | (uint32_t)(digit - alphabet);
        held += 6;
        if (held >= 8) {
            if (written == length)
                return 0;
            held -= 8;
            bytes[written++] = (uint8_t)(bits >> held);
        }
    }
    return written == length;
}

int parse_call_line(const char *line, struct call_line *call)
{
    char ip[64], suite[32], send_key[64], receive_key[64];
    unsigned remote_port, local_port, payload_type;

    int fields = sscanf(line, "call %63s %5u %5u %u %3u %31s %63s %63s", ip, &remote_port, &local_port, &call->ssrc,
                        &payload_type, suite, send_key, receive_key);
    if (fields != 8 || remote_port > UINT16_MAX || local_port > UINT16_MAX || payload_type > 127
        || !suite_from_name(suite, &call->suite))
        return 0;

    call->remote = loopback_address((uint16_t)remote_port);
    call->local_port = (uint16_t)local_port;
    call->payload_type = (uint8_t)payload_type;
    return inet_pton(AF_INET, ip, &call->remote.sin_addr) == 1
        && decode_base64(send_key, call->send_key.bytes, key_length(call->suite))
        && decode_base64(receive_key, call->receive_key.bytes, key_length(call->suite));
}

int read_call_lines(FILE *input, struct call_line *calls, int capacity)
{
    char line[512];
    int count = 0;

    while (fgets(line, sizeof line, input) != NULL && strcmp(line, "go\n") != 0) {
        if (count == capacity || !parse_call_line(line, &calls[count])) {
            errno = 0;
            fprintf(stderr, "line %d (of at most %d): %s", count + 1, capacity, line);
            give_up("use this line as a call");
        }
        count++;
    }
    return count;
}

void print_call_line(FILE *output, const struct call_line *call)
{
    char ip[INET_ADDRSTRLEN], send_key[64], receive_key[64];

    inet_ntop(AF_INET, &call->remote.sin_addr, ip, sizeof ip);
    encode_base64(call->send_key.bytes, key_length(call->suite), send_key);
    encode_base64(call->receive_key.bytes, key_length(call->suite), receive_key);
    fprintf(output, "call %s %u %u %u %u %s %s %s\n", ip, ntohs(call->remote.sin_port), call->local_port, call->ssrc,
            call->payload_type, suite_name(call->suite), send_key, receive_key);
}
