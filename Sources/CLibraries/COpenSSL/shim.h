// OpenSSL for Swift: random bytes, scrypt and message digests of libcrypto, certificates, and DTLS of libssl.
#pragma once
#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <openssl/srtp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

// The options are macros with a cast, which Swift cannot import.
static inline uint64_t handset_dtls_options(void) {
    return SSL_OP_NO_QUERY_MTU | SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION;
}

// The name of the parameter is a macro that Swift cannot import. Returns 1 if the library has that digest.
static inline int handset_set_mac_digest(EVP_MAC_CTX *context, const char *digest) {
    const OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)digest, 0), OSSL_PARAM_construct_end()};
    return EVP_MAC_CTX_set_params(context, parameters);
}
