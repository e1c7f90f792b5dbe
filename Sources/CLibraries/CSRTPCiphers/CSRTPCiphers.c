// The low-level SHA-1 functions are the only ones of OpenSSL 3 that begin a message without allocating: EVP_MAC_init and
// HMAC_Init_ex allocate twice each time, even with the key that they have.
#define OPENSSL_SUPPRESS_DEPRECATED

#include "CSRTPCiphers.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <srtp2/auth.h>
#include <srtp2/cipher.h>
#include <srtp2/crypto_types.h>
#include <stdlib.h>
#include <string.h>

// Everything is allocated when a call's keys are set. For a packet, nothing is allocated and nothing locked: OpenSSL's
// contexts get a new IV, and no key.

enum { key_bytes = 16, counter_salt_bytes = 14, gcm_salt_bytes = 12, block_bytes = 16 };

static const srtp_cipher_type_t counter_type, gcm_type;
static const srtp_auth_type_t hmac_type;

typedef struct {
    srtp_cipher_t cipher;
    EVP_CIPHER_CTX *context;
    // The salt in counter mode, padded with zeros.
    uint8_t salt[block_bytes];
    int tag_bytes;
} state_t;

static srtp_err_status_t make(srtp_cipher_pointer_t *made, const srtp_cipher_type_t *type, int key_len, int tag_len) {
    state_t *state = calloc(1, sizeof *state);
    if (!state) return srtp_err_status_alloc_fail;
    state->context = EVP_CIPHER_CTX_new();
    if (!state->context) {
        free(state);
        return srtp_err_status_alloc_fail;
    }
    state->tag_bytes = tag_len;
    state->cipher = (srtp_cipher_t){.type = type, .state = state, .key_len = key_len, .algorithm = (int)type->id};
    *made = &state->cipher;
    return srtp_err_status_ok;
}

static srtp_err_status_t drop(srtp_cipher_pointer_t cipher) {
    state_t *state = cipher->state;
    EVP_CIPHER_CTX_free(state->context);
    OPENSSL_cleanse(state, sizeof *state);
    free(state);
    return srtp_err_status_ok;
}

// MARK: - AES in counter mode

static srtp_err_status_t counter_alloc(srtp_cipher_pointer_t *made, int key_len, int tag_len) {
    if (key_len != key_bytes + counter_salt_bytes) return srtp_err_status_bad_param;
    return make(made, &counter_type, key_len, tag_len);
}

static srtp_err_status_t counter_init(void *opaque, const uint8_t *key) {
    state_t *state = opaque;
    memcpy(state->salt, key + key_bytes, counter_salt_bytes);
    int done = EVP_EncryptInit_ex(state->context, EVP_aes_128_ctr(), NULL, key, NULL);
    return done == 1 ? srtp_err_status_ok : srtp_err_status_init_fail;
}

static srtp_err_status_t counter_set_iv(void *opaque, uint8_t *iv, srtp_cipher_direction_t direction) {
    (void)direction;
    state_t *state = opaque;
    uint8_t counter[block_bytes];
    for (int i = 0; i < block_bytes; i++) counter[i] = state->salt[i] ^ iv[i];
    int done = EVP_EncryptInit_ex(state->context, NULL, NULL, NULL, counter);
    return done == 1 ? srtp_err_status_ok : srtp_err_status_cipher_fail;
}

static srtp_err_status_t counter_apply(void *opaque, uint8_t *bytes, unsigned int *count) {
    state_t *state = opaque;
    int written = 0;
    if (*count == 0) return srtp_err_status_ok;
    if (EVP_EncryptUpdate(state->context, bytes, &written, bytes, (int)*count) != 1) return srtp_err_status_cipher_fail;
    *count = (unsigned int)written;
    return srtp_err_status_ok;
}

// RFC 3711 B.2. The offset of there is the salt.
static const uint8_t counter_key[key_bytes + counter_salt_bytes] = {
    0x2b, 0x7e, 0x15, 0x16, 0x28, 0xae, 0xd2, 0xa6, 0xab, 0xf7, 0x15, 0x88, 0x09, 0xcf, 0x4f, 0x3c,
    0xf0, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa, 0xfb, 0xfc, 0xfd,
};
static uint8_t counter_index[block_bytes];
static const uint8_t counter_plain[48];
static const uint8_t counter_stream[48] = {
    0xe0, 0x3e, 0xad, 0x09, 0x35, 0xc9, 0x5e, 0x80, 0xe1, 0x66, 0xb1, 0x6d, 0xd9, 0x2b, 0x4e, 0xb4,
    0xd2, 0x35, 0x13, 0x16, 0x2b, 0x02, 0xd0, 0xf7, 0x2a, 0x43, 0xa2, 0xfe, 0x4a, 0x5f, 0x97, 0xab,
    0x41, 0xe9, 0x5b, 0x3b, 0xb0, 0xa2, 0xe8, 0xdd, 0x47, 0x79, 0x01, 0xe4, 0xfc, 0xa8, 0x94, 0xc0,
};
static const srtp_cipher_test_case_t counter_test = {
    sizeof counter_key, counter_key, counter_index, sizeof counter_plain, counter_plain,
    sizeof counter_stream, counter_stream, 0, NULL, 0, NULL,
};

static const srtp_cipher_type_t counter_type = {
    .alloc = counter_alloc,
    .dealloc = drop,
    .init = counter_init,
    .encrypt = counter_apply,
    .decrypt = counter_apply,
    .set_iv = counter_set_iv,
    .description = "AES-128 counter mode on OpenSSL",
    .test_data = &counter_test,
    .id = SRTP_AES_ICM_128,
};

// MARK: - AES-GCM

static srtp_err_status_t gcm_alloc(srtp_cipher_pointer_t *made, int key_len, int tag_len) {
    if (key_len != key_bytes + gcm_salt_bytes) return srtp_err_status_bad_param;
    if (tag_len != 8 && tag_len != 16) return srtp_err_status_bad_param;
    return make(made, &gcm_type, key_len, tag_len);
}

static srtp_err_status_t gcm_init(void *opaque, const uint8_t *key) {
    state_t *state = opaque;
    int done = EVP_CipherInit_ex(state->context, EVP_aes_128_gcm(), NULL, key, NULL, 1);
    return done == 1 ? srtp_err_status_ok : srtp_err_status_init_fail;
}

static srtp_err_status_t gcm_set_iv(void *opaque, uint8_t *iv, srtp_cipher_direction_t direction) {
    state_t *state = opaque;
    int done = EVP_CipherInit_ex(state->context, NULL, NULL, NULL, iv, direction == srtp_direction_encrypt);
    return done == 1 ? srtp_err_status_ok : srtp_err_status_cipher_fail;
}

static srtp_err_status_t gcm_set_aad(void *opaque, const uint8_t *aad, uint32_t count) {
    state_t *state = opaque;
    int written = 0;
    if (EVP_CipherUpdate(state->context, NULL, &written, aad, (int)count) != 1) return srtp_err_status_algo_fail;
    return srtp_err_status_ok;
}

static srtp_err_status_t gcm_encrypt(void *opaque, uint8_t *bytes, unsigned int *count) {
    state_t *state = opaque;
    int written = 0;
    if (*count == 0) return srtp_err_status_ok;
    if (EVP_CipherUpdate(state->context, bytes, &written, bytes, (int)*count) != 1) return srtp_err_status_cipher_fail;
    *count = (unsigned int)written;
    return srtp_err_status_ok;
}

static srtp_err_status_t gcm_get_tag(void *opaque, uint8_t *tag, uint32_t *count) {
    state_t *state = opaque;
    uint8_t rest[block_bytes];
    int written = 0;
    if (EVP_CipherFinal_ex(state->context, rest, &written) != 1) return srtp_err_status_algo_fail;
    if (EVP_CIPHER_CTX_ctrl(state->context, EVP_CTRL_AEAD_GET_TAG, state->tag_bytes, tag) != 1)
        return srtp_err_status_algo_fail;
    *count = (uint32_t)state->tag_bytes;
    return srtp_err_status_ok;
}

// The tag stands behind the ciphertext. OpenSSL says nothing in its error queue, which would allocate, when it is wrong.
static srtp_err_status_t gcm_decrypt(void *opaque, uint8_t *bytes, unsigned int *count) {
    state_t *state = opaque;
    if (*count < (unsigned int)state->tag_bytes) return srtp_err_status_bad_param;
    int plain = (int)*count - state->tag_bytes, written = 0;
    uint8_t rest[block_bytes];
    if (EVP_CIPHER_CTX_ctrl(state->context, EVP_CTRL_AEAD_SET_TAG, state->tag_bytes, bytes + plain) != 1)
        return srtp_err_status_algo_fail;
    if (plain > 0 && EVP_CipherUpdate(state->context, bytes, &written, bytes, plain) != 1)
        return srtp_err_status_cipher_fail;
    if (EVP_CipherFinal_ex(state->context, rest, &written) != 1) return srtp_err_status_auth_fail;
    *count = (unsigned int)plain;
    return srtp_err_status_ok;
}

// RFC 7714 §16.1 and §17.1.
static const uint8_t gcm_key[key_bytes + gcm_salt_bytes] = {
    0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f,
    0x51, 0x75, 0x69, 0x64, 0x20, 0x70, 0x72, 0x6f, 0x20, 0x71, 0x75, 0x6f,
};
static uint8_t rtp_iv[12] = {0x51, 0x75, 0x3c, 0x65, 0x80, 0xc2, 0x72, 0x6f, 0x20, 0x71, 0x84, 0x14};
static const uint8_t rtp_aad[] = {0x80, 0x40, 0xf1, 0x7b, 0x80, 0x41, 0xf8, 0xd3, 0x55, 0x01, 0xa0, 0xb2};
static const uint8_t rtp_plain[] = {
    0x47, 0x61, 0x6c, 0x6c, 0x69, 0x61, 0x20, 0x65, 0x73, 0x74, 0x20, 0x6f, 0x6d,
    0x6e, 0x69, 0x73, 0x20, 0x64, 0x69, 0x76, 0x69, 0x73, 0x61, 0x20, 0x69, 0x6e,
    0x20, 0x70, 0x61, 0x72, 0x74, 0x65, 0x73, 0x20, 0x74, 0x72, 0x65, 0x73,
};
static const uint8_t rtp_cipher[] = {
    0xf2, 0x4d, 0xe3, 0xa3, 0xfb, 0x34, 0xde, 0x6c, 0xac, 0xba, 0x86, 0x1c, 0x9d, 0x7e, 0x4b, 0xca, 0xbe, 0x63,
    0x3b, 0xd5, 0x0d, 0x29, 0x4e, 0x6f, 0x42, 0xa5, 0xf4, 0x7a, 0x51, 0xc7, 0xd1, 0x9b, 0x36, 0xde, 0x3a, 0xdf,
    0x88, 0x33, 0x89, 0x9d, 0x7f, 0x27, 0xbe, 0xb1, 0x6a, 0x91, 0x52, 0xcf, 0x76, 0x5e, 0xe4, 0x39, 0x0c, 0xce,
};
static uint8_t rtcp_iv[12] = {0x51, 0x75, 0x24, 0x05, 0x52, 0x03, 0x72, 0x6f, 0x20, 0x71, 0x70, 0xbb};
static const uint8_t rtcp_aad[] = {0x81, 0xc8, 0x00, 0x0d, 0x4d, 0x61, 0x72, 0x73, 0x80, 0x00, 0x05, 0xd4};
static const uint8_t rtcp_plain[] = {
    0x4e, 0x54, 0x50, 0x31, 0x4e, 0x54, 0x50, 0x32, 0x52, 0x54, 0x50, 0x20, 0x00, 0x00, 0x04,
    0x2a, 0x00, 0x00, 0xe9, 0x30, 0x4c, 0x75, 0x6e, 0x61, 0xde, 0xad, 0xbe, 0xef, 0xde, 0xad,
    0xbe, 0xef, 0xde, 0xad, 0xbe, 0xef, 0xde, 0xad, 0xbe, 0xef, 0xde, 0xad, 0xbe, 0xef,
};
static const uint8_t rtcp_cipher[] = {
    0x63, 0xe9, 0x48, 0x85, 0xdc, 0xda, 0xb6, 0x7c, 0xa7, 0x27, 0xd7, 0x66, 0x2f, 0x6b, 0x7e,
    0x99, 0x7f, 0xf5, 0xc0, 0xf7, 0x6c, 0x06, 0xf3, 0x2d, 0xc6, 0x76, 0xa5, 0xf1, 0x73, 0x0d,
    0x6f, 0xda, 0x4c, 0xe0, 0x9b, 0x46, 0x86, 0x30, 0x3d, 0xed, 0x0b, 0xb9, 0x27, 0x5b, 0xc8,
    0x4a, 0xa4, 0x58, 0x96, 0xcf, 0x4d, 0x2f, 0xc5, 0xab, 0xf8, 0x72, 0x45, 0xd9, 0xea, 0xde,
};
static const srtp_cipher_test_case_t rtcp_test = {
    sizeof gcm_key, gcm_key, rtcp_iv, sizeof rtcp_plain, rtcp_plain,
    sizeof rtcp_cipher, rtcp_cipher, sizeof rtcp_aad, rtcp_aad, 16, NULL,
};
static const srtp_cipher_test_case_t gcm_test = {
    sizeof gcm_key, gcm_key, rtp_iv, sizeof rtp_plain, rtp_plain,
    sizeof rtp_cipher, rtp_cipher, sizeof rtp_aad, rtp_aad, 16, &rtcp_test,
};

static const srtp_cipher_type_t gcm_type = {
    .alloc = gcm_alloc,
    .dealloc = drop,
    .init = gcm_init,
    .set_aad = gcm_set_aad,
    .encrypt = gcm_encrypt,
    .decrypt = gcm_decrypt,
    .set_iv = gcm_set_iv,
    .get_tag = gcm_get_tag,
    .description = "AES-128-GCM on OpenSSL",
    .test_data = &gcm_test,
    .id = SRTP_AES_GCM_128,
};

// MARK: - HMAC-SHA1 (RFC 2104)

typedef struct {
    srtp_auth_t auth;
    // What the key makes of the two hashes before anything else is in them.
    SHA_CTX inner, outer;
    SHA_CTX message;
} hmac_t;

static srtp_err_status_t hmac_alloc(srtp_auth_pointer_t *made, int key_len, int tag_len) {
    if (key_len < 0 || key_len > SHA_CBLOCK || tag_len < 0 || tag_len > SHA_DIGEST_LENGTH)
        return srtp_err_status_bad_param;
    hmac_t *hmac = calloc(1, sizeof *hmac);
    if (!hmac) return srtp_err_status_alloc_fail;
    hmac->auth = (srtp_auth_t){.type = &hmac_type, .state = hmac, .out_len = tag_len, .key_len = key_len};
    *made = &hmac->auth;
    return srtp_err_status_ok;
}

static srtp_err_status_t hmac_dealloc(srtp_auth_pointer_t auth) {
    OPENSSL_cleanse(auth->state, sizeof(hmac_t));
    free(auth->state);
    return srtp_err_status_ok;
}

static void hash_pad(SHA_CTX *hash, const uint8_t *key, int count, uint8_t mask) {
    uint8_t pad[SHA_CBLOCK];
    memset(pad, mask, sizeof pad);
    for (int i = 0; i < count; i++) pad[i] ^= key[i];
    SHA1_Init(hash);
    SHA1_Update(hash, pad, sizeof pad);
    OPENSSL_cleanse(pad, sizeof pad);
}

static srtp_err_status_t hmac_init(void *opaque, const uint8_t *key, int key_len) {
    hmac_t *hmac = opaque;
    if (key_len < 0 || key_len > SHA_CBLOCK) return srtp_err_status_bad_param;
    hash_pad(&hmac->inner, key, key_len, 0x36);
    hash_pad(&hmac->outer, key, key_len, 0x5c);
    hmac->message = hmac->inner;
    return srtp_err_status_ok;
}

static srtp_err_status_t hmac_start(void *opaque) {
    hmac_t *hmac = opaque;
    hmac->message = hmac->inner;
    return srtp_err_status_ok;
}

static srtp_err_status_t hmac_update(void *opaque, const uint8_t *bytes, int count) {
    hmac_t *hmac = opaque;
    SHA1_Update(&hmac->message, bytes, (size_t)count);
    return srtp_err_status_ok;
}

static srtp_err_status_t hmac_compute(void *opaque, const uint8_t *bytes, int count, int tag_len, uint8_t *tag) {
    hmac_t *hmac = opaque;
    uint8_t digest[SHA_DIGEST_LENGTH];
    if (tag_len < 0 || tag_len > SHA_DIGEST_LENGTH) return srtp_err_status_bad_param;
    SHA1_Update(&hmac->message, bytes, (size_t)count);
    SHA1_Final(digest, &hmac->message);
    SHA_CTX outer = hmac->outer;
    SHA1_Update(&outer, digest, sizeof digest);
    SHA1_Final(digest, &outer);
    memcpy(tag, digest, (size_t)tag_len);
    return srtp_err_status_ok;
}

// RFC 2202 §3, the first.
static const uint8_t hmac_key[] = {
    0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b,
    0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b,
};
static const uint8_t hmac_data[] = {'H', 'i', ' ', 'T', 'h', 'e', 'r', 'e'};
static const uint8_t hmac_tag[] = {
    0xb6, 0x17, 0x31, 0x86, 0x55, 0x05, 0x72, 0x64, 0xe2, 0x8b,
    0xc0, 0xb6, 0xfb, 0x37, 0x8c, 0x8e, 0xf1, 0x46, 0xbe, 0x00,
};
static const srtp_auth_test_case_t hmac_test = {
    sizeof hmac_key, hmac_key, sizeof hmac_data, hmac_data, sizeof hmac_tag, hmac_tag, NULL,
};

static const srtp_auth_type_t hmac_type = {
    .alloc = hmac_alloc,
    .dealloc = hmac_dealloc,
    .init = hmac_init,
    .compute = hmac_compute,
    .update = hmac_update,
    .start = hmac_start,
    .description = "HMAC-SHA1 on OpenSSL",
    .test_data = &hmac_test,
    .id = SRTP_HMAC_SHA1,
};

srtp_err_status_t handset_srtp_use_openssl(void) {
    srtp_err_status_t status = srtp_replace_cipher_type(&counter_type, SRTP_AES_ICM_128);
    if (status == srtp_err_status_ok) status = srtp_replace_cipher_type(&gcm_type, SRTP_AES_GCM_128);
    if (status == srtp_err_status_ok) status = srtp_replace_auth_type(&hmac_type, SRTP_HMAC_SHA1);
    return status;
}
