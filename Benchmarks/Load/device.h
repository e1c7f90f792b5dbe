// One device: a WebSocket to the exchange, its login, and what it says and hears (docs/protocol.md).
#ifndef DEVICE_H
#define DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum device_state {
    DEVICE_IDLE,        // Not asked to be there.
    DEVICE_WAITING,     // Lost its connection, or got none; tries again at `due`.
    DEVICE_CONNECTING,  // TCP.
    DEVICE_SHAKING,     // TLS, if there is any.
    DEVICE_UPGRADING,   // HTTP.
    DEVICE_STARTING,    // session.start is on its way.
    DEVICE_REGISTERING, // device.register is.
    DEVICE_READY,
};

// Ids of requests.
enum { ID_START = 1, ID_REGISTER, ID_INVITE, ID_ACCEPT, ID_END, ID_COUNT };

struct bytes {
    char *data;
    size_t count, capacity;
};

struct device {
    enum device_state state;
    int socket;
    struct ssl_st *tls;  // NULL for plain text.
    const char *user, *token;
    char session[64];    // The session to go on with; empty for none.
    uint64_t sequence;   // The newest event that was heard.
    bool was_resumed;    // The last start went on with the session before.
    bool was_lost;       // It had a session when its connection was lost.
    unsigned burdens;    // Attempts in a row that the exchange took up in vain, for the backoff.
    double lost_at;      // Since when it has no session.
    double due;          // When it tries again.
    double ready_at;     // When it was last ready.
    uint16_t port;       // Where it connects.
    bool tried_one;      // One of two exchanges has refused it in this round.
    // Requests without an answer, by their ids: they are repeated after a lost connection, as docs/protocol.md has it.
    char *unanswered[ID_COUNT];
    struct bytes in;     // What came and is not whole.
    struct bytes out;    // What the socket did not take.
    // The invite under way, of a caller: when it was to be sent, and which one of its calls it is.
    double invited_at;
    bool is_busy;
};

// What the devices of this process share, and how often what happened.
struct fleet {
    struct device *devices;
    size_t count;
    int epoll;
    uint16_t ports[2];     // The exchanges; the second is 0 if there is one alone.
    size_t ready, pending; // Devices that are ready; that are on the way there.
    uint64_t refusals, losses, resumed, fresh, moved, repeated;
};

extern struct fleet fleet;

double now_seconds(void);

// Begins to connect.
void device_connect(struct device *device);
// Its socket has something to say; `events` as of epoll.
void device_event(struct device *device, uint32_t events);
// Sends one request, whose id tells what it was.
void device_request(struct device *device, int id, const char *format, ...) __attribute__((format(printf, 3, 4)));

// Called with each message of a ready device: an answer to request `id`, or an event of `type`.
void traffic_answer(struct device *device, int id, bool is_refusal, const char *message);
void traffic_event(struct device *device, const char *type, const char *message);

// Copies the text member `key` of a JSON message; false if it has none, or one longer than `size`.
bool json_text(const char *message, const char *key, char *text, size_t size);
bool json_number(const char *message, const char *key, uint64_t *number);

#endif
