#include "transport.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

static SSL_CTX *context;

void transport_use_tls(void) {
    context = SSL_CTX_new(TLS_client_method());
    if (context == NULL || SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1) {
        ERR_print_errors_fp(stderr);
        exit(1);
    }
    // The exchange is what is measured: the devices check no certificate, and keep no buffers while nothing comes.
    SSL_CTX_set_verify(context, SSL_VERIFY_NONE, NULL);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
}

bool transport_uses_tls(void) { return context != NULL; }

struct ssl_st *transport_begin(int socket) {
    if (context == NULL) return NULL;
    SSL *tls = SSL_new(context);
    if (tls == NULL || SSL_set_fd(tls, socket) != 1) {
        ERR_print_errors_fp(stderr);
        exit(1);
    }
    SSL_set_connect_state(tls);
    return tls;
}

void transport_end(struct ssl_st *tls) { SSL_free(tls); }

// What `result` of an operation of OpenSSL means, if it was no success.
static int meaning(SSL *tls, int result) {
    int error = SSL_get_error(tls, result);
    ERR_clear_error();
    return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? TRANSPORT_AGAIN : TRANSPORT_GONE;
}

int transport_shake(struct ssl_st *tls) {
    int result = SSL_do_handshake(tls);
    return result == 1 ? 0 : meaning(tls, result);
}

ssize_t transport_send(int socket, struct ssl_st *tls, const void *data, size_t count) {
    if (tls != NULL) {
        int result = SSL_write(tls, data, (int)count);
        return result > 0 ? result : meaning(tls, result);
    }
    ssize_t sent = send(socket, data, count, MSG_NOSIGNAL);
    if (sent > 0) return sent;
    return sent < 0 && (errno == EAGAIN || errno == EINTR) ? TRANSPORT_AGAIN : TRANSPORT_GONE;
}

ssize_t transport_receive(int socket, struct ssl_st *tls, void *data, size_t count) {
    if (tls != NULL) {
        int result = SSL_read(tls, data, (int)count);
        return result > 0 ? result : meaning(tls, result);
    }
    ssize_t received = recv(socket, data, count, 0);
    if (received > 0) return received;
    return received < 0 && (errno == EAGAIN || errno == EINTR) ? TRANSPORT_AGAIN : TRANSPORT_GONE;
}
