// What carries a device's bytes: TCP, or TLS 1.3 on it, by OpenSSL.
#ifndef TRANSPORT_H
#define TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct ssl_st;

// Has all connections made from now on speak TLS 1.3, with any certificate at the other end; without it they speak plain text.
void transport_use_tls(void);
bool transport_uses_tls(void);

// TLS for a connected socket that does not block; NULL for plain text.
struct ssl_st *transport_begin(int socket);
void transport_end(struct ssl_st *tls);

enum { TRANSPORT_AGAIN = -1, TRANSPORT_GONE = -2 };

// Goes on with the handshake: 0 when it is over, TRANSPORT_AGAIN, or TRANSPORT_GONE.
int transport_shake(struct ssl_st *tls);
// As send and recv: a number of bytes, TRANSPORT_AGAIN, or TRANSPORT_GONE.
ssize_t transport_send(int socket, struct ssl_st *tls, const void *data, size_t count);
ssize_t transport_receive(int socket, struct ssl_st *tls, void *data, size_t count);

#endif
