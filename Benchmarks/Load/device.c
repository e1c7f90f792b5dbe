#include "device.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "transport.h"

#ifndef IP_BIND_ADDRESS_NO_PORT
#define IP_BIND_ADDRESS_NO_PORT 24
#endif

struct fleet fleet;

double now_seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void *or_die(void *memory) {
    if (memory == NULL) {
        perror("devices: no memory");
        exit(1);
    }
    return memory;
}

static void append(struct bytes *bytes, const void *data, size_t count) {
    if (bytes->count + count > bytes->capacity) {
        bytes->capacity = 2 * (bytes->count + count);
        bytes->data = or_die(realloc(bytes->data, bytes->capacity));
    }
    memcpy(bytes->data + bytes->count, data, count);
    bytes->count += count;
}

static void consume(struct bytes *bytes, size_t count) {
    bytes->count -= count;
    if (bytes->count > 0) {
        memmove(bytes->data, bytes->data + count, bytes->count);
        return;
    }
    free(bytes->data); // Thousands of devices with nothing to keep should cost nothing.
    *bytes = (struct bytes){0};
}

bool json_text(const char *message, const char *key, char *text, size_t size) {
    char pattern[64];
    int length = snprintf(pattern, sizeof pattern, "\"%s\":\"", key);
    const char *start = strstr(message, pattern);
    if (start == NULL) return false;
    start += length;
    const char *end = strchr(start, '"');
    if (end == NULL || (size_t)(end - start) >= size) return false;
    memcpy(text, start, (size_t)(end - start));
    text[end - start] = 0;
    return true;
}

bool json_number(const char *message, const char *key, uint64_t *number) {
    char pattern[64];
    int length = snprintf(pattern, sizeof pattern, "\"%s\":", key);
    const char *start = strstr(message, pattern);
    if (start == NULL || start[length] < '0' || start[length] > '9') return false;
    *number = strtoull(start + length, NULL, 10);
    return true;
}

// MARK: - The connection

static bool is_pending(enum device_state state) { return state > DEVICE_WAITING && state < DEVICE_READY; }

static void enter(struct device *device, enum device_state state) {
    if (is_pending(device->state)) fleet.pending--;
    if (device->state == DEVICE_READY) fleet.ready--;
    device->state = state;
    if (is_pending(state)) fleet.pending++;
    if (state != DEVICE_READY) return;
    fleet.ready++;
    device->ready_at = now_seconds();
}

static void watch(struct device *device, int operation, uint32_t events) {
    struct epoll_event event = {.events = events, .data.ptr = device};
    if (epoll_ctl(fleet.epoll, operation, device->socket, &event) != 0) {
        perror("devices: epoll_ctl");
        exit(1);
    }
}

// Whether the other exchange is asked at once: this one was not there, or is a standby (docs/standby.md).
static bool asks_other(struct device *device, bool was_refused) {
    if (fleet.ports[1] == 0 || device->tried_one || !was_refused) return device->tried_one = false;
    device->port = device->port == fleet.ports[0] ? fleet.ports[1] : fleet.ports[0];
    return device->tried_one = true;
}

// The connection is gone, or there was none. The next try comes after a wait as docs/protocol.md has it: evenly from 0
// up to as long as the device has been away, and longer for an exchange that took attempts up in vain.
static void lose_at(struct device *device, bool is_standby) {
    bool was_refused = is_standby || device->state == DEVICE_CONNECTING;
    double now = now_seconds();
    bool was_ready = device->state == DEVICE_READY;
    if (was_ready) {
        fleet.losses++;
        device->was_lost = true;
        device->lost_at = now;
    }
    bool is_burden = device->state != DEVICE_CONNECTING;
    if (was_ready && now - device->ready_at >= 10) {
        device->burdens = 0;
        is_burden = false;
    }
    transport_end(device->tls);
    device->tls = NULL;
    close(device->socket);
    consume(&device->in, device->in.count);
    consume(&device->out, device->out.count);
    double bound = 0.5 * (double)(1u << (device->burdens < 6 ? device->burdens : 6));
    if (bound < now - device->lost_at) bound = now - device->lost_at;
    device->due = now + (bound < 30 ? bound : 30) * drand48();
    if (is_burden && !is_standby) device->burdens++;
    if (asks_other(device, was_refused)) device->due = now;
    enter(device, DEVICE_WAITING);
}

static void lose(struct device *device) { lose_at(device, false); }

// The exchange asks it to connect elsewhere (CONN-12): an idle device may close its connection and go there at once.
static void move(struct device *device, const char *message) {
    char url[128];
    unsigned port;
    if (json_text(message, "websocket_url", url, sizeof url)) {
        const char *colon = strrchr(url, ':');
        if (colon != NULL && sscanf(colon, ":%u", &port) == 1) device->port = (uint16_t)port;
    }
    fleet.moved++;
    lose(device);
    device->due = 0;
}

void device_connect(struct device *device) {
    size_t index = (size_t)(device - fleet.devices);
    device->socket = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (device->socket < 0) {
        perror("devices: no socket (ulimit -n?)");
        exit(1);
    }
    int on = 1;
    setsockopt(device->socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    // Several addresses, for more ports than one has; chosen when the connection is made.
    setsockopt(device->socket, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000002u + (uint32_t)(index % 8))};
    if (bind(device->socket, (struct sockaddr *)&address, sizeof address) != 0) perror("devices: bind");
    address = (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(device->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    enter(device, DEVICE_CONNECTING);
    watch(device, EPOLL_CTL_ADD, EPOLLIN | EPOLLOUT | EPOLLRDHUP);
    if (connect(device->socket, (struct sockaddr *)&address, sizeof address) != 0 && errno != EINPROGRESS) {
        lose(device);
    }
}

// False if the connection was lost.
static bool flush(struct device *device) {
    while (device->out.count > 0) {
        ssize_t sent = transport_send(device->socket, device->tls, device->out.data, device->out.count);
        if (sent == TRANSPORT_AGAIN) {
            watch(device, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT | EPOLLRDHUP);
            return true;
        }
        if (sent == TRANSPORT_GONE) {
            lose(device);
            return false;
        }
        consume(&device->out, (size_t)sent);
    }
    return true;
}

// One frame of a client: masked, as it must be, with a key of zeros (RFC 6455 §5.3), which changes nothing.
static void send_frame(struct device *device, unsigned opcode, const char *data, size_t count) {
    unsigned char head[8] = {(unsigned char)(0x80 | opcode)};
    size_t length = 2;
    if (count < 126) {
        head[1] = (unsigned char)(0x80 | count);
    } else {
        head[1] = 0x80 | 126;
        head[2] = (unsigned char)(count >> 8);
        head[3] = (unsigned char)count;
        length = 4;
    }
    bool was_empty = device->out.count == 0;
    append(&device->out, head, length);
    append(&device->out, "\0\0\0\0", 4);
    append(&device->out, data, count);
    if (was_empty) flush(device);
}

void device_request(struct device *device, int id, const char *format, ...) {
    char text[4096];
    int length = snprintf(text, sizeof text, "{\"jsonrpc\":\"2.0\",\"id\":%d,", id);
    va_list arguments;
    va_start(arguments, format);
    length += vsnprintf(text + length, sizeof text - (size_t)length, format, arguments);
    va_end(arguments);
    if ((size_t)length >= sizeof text - 1) {
        fprintf(stderr, "devices: a request is too long\n");
        exit(1);
    }
    text[length++] = '}';
    text[length] = 0;
    free(device->unanswered[id]);
    device->unanswered[id] = id > ID_REGISTER ? or_die(strdup(text)) : NULL;
    // One that is not connected sends it when it is again.
    if (device->state >= DEVICE_STARTING) send_frame(device, 1, text, (size_t)length);
}

static void answered(struct device *device, size_t id) {
    if (id >= ID_COUNT) return;
    free(device->unanswered[id]);
    device->unanswered[id] = NULL;
}

static void be_ready(struct device *device) {
    device->tried_one = false;
    enter(device, DEVICE_READY);
    for (int id = ID_INVITE; id < ID_COUNT && device->state == DEVICE_READY; id++) {
        const char *text = device->unanswered[id];
        if (text == NULL) continue;
        fleet.repeated++;
        send_frame(device, 1, text, strlen(text));
    }
}

// MARK: - Logging in

static void upgrade(struct device *device) {
    char text[512];
    int length = snprintf(
        text, sizeof text,
        "GET /v1/rtc HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        device->port);
    enter(device, DEVICE_UPGRADING);
    append(&device->out, text, (size_t)length);
    flush(device);
}

static void start(struct device *device) {
    char resume[160] = "";
    if (device->session[0] != 0) {
        snprintf(
            resume, sizeof resume, ",\"resume\":{\"session\":\"%s\",\"after\":%llu}", device->session,
            (unsigned long long)device->sequence);
    }
    enter(device, DEVICE_STARTING);
    device_request(
        device, ID_START,
        "\"method\":\"session.start\",\"params\":{\"token\":\"%s\",\"device\":{\"id\":\"d\",\"name\":\"Device\","
        "\"capabilities\":[\"audio\"]}%s}",
        device->token, resume);
}

static void started(struct device *device, const char *message) {
    device->was_resumed = strstr(message, "\"resumed\":true") != NULL;
    json_text(message, "session", device->session, sizeof device->session);
    if (device->was_lost) {
        if (device->was_resumed) fleet.resumed++;
        else fleet.fresh++;
        device->was_lost = false;
    }
    if (device->was_resumed) {
        be_ready(device);
        return;
    }
    json_number(message, "sequence", &device->sequence);
    enter(device, DEVICE_REGISTERING);
    device_request(
        device, ID_REGISTER,
        "\"method\":\"device.register\",\"params\":{\"device\":{\"id\":\"d\",\"name\":\"Device\",\"capabilities\":["
        "\"audio\"]}}");
}

// MARK: - What comes

static void take_message(struct device *device, const char *message) {
    char type[64];
    uint64_t id;
    if (strstr(message, "\"method\":\"event\"") != NULL) {
        json_number(message, "sequence", &device->sequence);
        // The event's own type stands behind its data, in which there are others.
        const char *rest = message, *last = NULL;
        while ((rest = strstr(rest, "\"type\":")) != NULL) last = rest++;
        if (last == NULL || !json_text(last, "type", type, sizeof type)) return;
        if (strcmp(type, "moveRequested") == 0) move(device, message);
        else traffic_event(device, type, message);
        return;
    }
    bool is_refusal = strstr(message, "\"error\":") != NULL;
    if (is_refusal) {
        fleet.refusals++;
        if (fleet.refusals <= 5) fprintf(stderr, "devices: %s was refused: %s\n", device->user, message);
    }
    if (!json_number(message, "id", &id)) return;
    switch (id) {
    case ID_START:
        if (is_refusal) {
            device->session[0] = 0;
            lose(device);
        } else {
            started(device, message);
        }
        break;
    case ID_REGISTER:
        if (is_refusal) lose(device);
        else be_ready(device);
        break;
    default:
        answered(device, id);
        traffic_answer(device, (int)id, is_refusal, message);
    }
}

// Takes whole frames from `in`; false if the connection is gone.
static bool take_frames(struct device *device) {
    static char message[65536 + 1];
    size_t done = 0;
    while (device->state >= DEVICE_STARTING && device->in.count - done >= 2) {
        const unsigned char *head = (const unsigned char *)device->in.data + done;
        size_t left = device->in.count - done, header = 2, count = head[1] & 0x7f;
        if (count == 126) {
            if (left < 4) break;
            header = 4;
            count = (size_t)head[2] << 8 | head[3];
        } else if (count == 127) {
            lose(device); // No message of the exchange is so long.
            return false;
        }
        if (left < header + count) break;
        unsigned opcode = head[0] & 0x0f;
        memcpy(message, head + header, count);
        message[count] = 0;
        done += header + count;
        if (opcode == 9) send_frame(device, 10, message, count);
        else if (opcode == 1) take_message(device, message);
        if (opcode == 8 && device->state > DEVICE_WAITING) lose(device);
        if (device->state <= DEVICE_WAITING) return false; // `in` is gone with the connection.
    }
    if (done > 0) consume(&device->in, done);
    return true;
}

static void take_upgrade(struct device *device) {
    char *end = memmem(device->in.data, device->in.count, "\r\n\r\n", 4);
    if (end == NULL) return;
    if (device->in.count < 12 || memcmp(device->in.data, "HTTP/1.1 101", 12) != 0) {
        // A standby's refusal costs it nothing (docs/standby.md).
        bool is_standby = memmem(device->in.data, device->in.count, "\"standby\"", 9) != NULL;
        if (!is_standby) fprintf(stderr, "devices: no WebSocket: %.*s\n", 12, device->in.data);
        lose_at(device, is_standby);
        return;
    }
    consume(&device->in, (size_t)(end + 4 - device->in.data));
    start(device);
}

static void shake(struct device *device) {
    switch (transport_shake(device->tls)) {
    case 0: upgrade(device); break;
    case TRANSPORT_GONE: lose(device); break;
    default: break;
    }
}

void device_event(struct device *device, uint32_t events) {
    static char buffer[65536];
    if (device->state <= DEVICE_WAITING) return;
    if (device->state == DEVICE_CONNECTING) {
        int error = 0;
        socklen_t size = sizeof error;
        getsockopt(device->socket, SOL_SOCKET, SO_ERROR, &error, &size);
        if (error != 0) {
            lose(device);
            return;
        }
        if ((events & EPOLLOUT) == 0) return;
        watch(device, EPOLL_CTL_MOD, EPOLLIN | EPOLLRDHUP);
        device->tls = transport_begin(device->socket);
        if (device->tls == NULL) {
            upgrade(device);
            return;
        }
        enter(device, DEVICE_SHAKING);
    }
    if (device->state == DEVICE_SHAKING) {
        shake(device);
        return;
    }
    if ((events & EPOLLOUT) != 0) {
        watch(device, EPOLL_CTL_MOD, EPOLLIN | EPOLLRDHUP);
        if (!flush(device)) return;
    }
    if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) == 0) return;
    // A record of TLS holds more than one read may take, and what is left in it wakes nobody.
    for (;;) {
        ssize_t count = transport_receive(device->socket, device->tls, buffer, sizeof buffer);
        if (count == TRANSPORT_AGAIN) return;
        if (count == TRANSPORT_GONE) {
            lose(device);
            return;
        }
        append(&device->in, buffer, (size_t)count);
        if (device->state == DEVICE_UPGRADING) take_upgrade(device);
        if (device->state >= DEVICE_STARTING && !take_frames(device)) return;
        if (device->state <= DEVICE_WAITING || device->tls == NULL) return;
    }
}
