// OpenSSL for Swift: random bytes, scrypt and message digests of libcrypto, certificates, and TLS and DTLS of libssl.
#pragma once
#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/srtp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

// The options are macros with a cast, which Swift cannot import.
static inline uint64_t handset_dtls_options(void) {
    return SSL_OP_NO_QUERY_MTU | SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION;
}

// As above.
static inline uint64_t handset_tls_options(void) {
    return SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION;
}

// Stacks are macros and inline functions of a type of their own, which Swift cannot import. All take NULL for an empty one.
static inline int handset_count_certificates(const struct stack_st_X509 *certificates) {
    return certificates == NULL ? 0 : sk_X509_num(certificates);
}
static inline X509 *handset_certificate(const struct stack_st_X509 *certificates, int index) {
    return sk_X509_value(certificates, index);
}
static inline int handset_count_names(const struct stack_st_GENERAL_NAME *names) {
    return names == NULL ? 0 : sk_GENERAL_NAME_num(names);
}
static inline void handset_free_names(struct stack_st_GENERAL_NAME *names) { GENERAL_NAMES_free(names); }
// The bytes of a name's text or address, and its kind (GEN_DNS and so on); NULL for a name of another form.
static inline const unsigned char *handset_name(
    const struct stack_st_GENERAL_NAME *names, int index, int *kind, int *count) {
    const ASN1_STRING *text = (const ASN1_STRING *)GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names, index), kind);
    if (*kind != GEN_DNS && *kind != GEN_URI && *kind != GEN_IPADD) return NULL;
    *count = ASN1_STRING_length(text);
    return ASN1_STRING_get0_data(text);
}

// The name of the parameter is a macro that Swift cannot import. Returns 1 if the library has that digest.
static inline int handset_set_mac_digest(EVP_MAC_CTX *context, const char *digest) {
    const OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)digest, 0), OSSL_PARAM_construct_end()};
    return EVP_MAC_CTX_set_params(context, parameters);
}

// A macro with a cast, which Swift cannot import.
static inline int handset_utf8_string(void) { return MBSTRING_UTF8; }

// The context is a macro and a struct of its own. Returns 1 if the extension was added.
static inline int handset_add_extension(X509 *certificate, X509 *issuer, int kind, const char *value) {
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, kind, value);
    if (extension == NULL) return 0;
    int added = X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
    return added;
}
