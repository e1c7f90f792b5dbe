// The ciphers of libsrtp2 on the system's OpenSSL.
#pragma once
#include <srtp2/srtp.h>

/// Gives libsrtp2 AES-128 in counter mode (RFC 3711 §4.1.1), AES-128-GCM (RFC 7714) and HMAC-SHA1 (RFC 3711 §4.2.1) on
/// OpenSSL, in place of those that it was built with. Call it once, after srtp_init and before the first srtp_create.
///
/// libsrtp2 tries each of them with test vectors of its own and of this file, and takes none that fails.
srtp_err_status_t handset_srtp_use_openssl(void);
