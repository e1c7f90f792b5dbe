internal import COpenSSL
internal import Files

/// The certificate authorities that a client trusts.
public enum TrustRoots: Hashable, Sendable {
    /// The system's authorities. (OpenSSL's environment variables SSL_CERT_FILE and SSL_CERT_DIR name others.)
    case system
    /// The system's authorities, and these certificates.
    case systemAnd([TLSCertificate])
    /// These certificates, and no others.
    case only([TLSCertificate])
    /// The authorities in a PEM file, and no others.
    case file(String)

    /// Reads what a connection would read.
    ///
    /// - Throws: ``TLSError`` if there is no authority in it, or it cannot be read.
    public func check() throws(TLSError) { _ = try TLSContext.client(trusting: self) }
}

/// What connections share: trusted authorities, read once, or what a server shows. TLS 1.2 and 1.3 with forward secrecy and
/// authenticated encryption, and nothing else (RFC 9325 §4.2).
@safe
public final class TLSContext: @unchecked Sendable {
    // Several threads may make connections of an `SSL_CTX` at a time. It is set up by the initialiser, and not changed later.
    let handle: OpaquePointer
    /// The names of the protocols that a server speaks (RFC 7301), as OpenSSL takes them; allocated here.
    private var protocols: UnsafeMutableBufferPointer<UInt8>?

    /// TLS 1.3 has no other.
    private static let ciphers = "ECDHE+AESGCM:ECDHE+CHACHA20"

    private init(_ method: OpaquePointer?) throws(TLSError) {
        ERR_clear_error()
        guard let handle = unsafe SSL_CTX_new(method) else { throw .unusable("making a TLS context") }
        unsafe self.handle = handle
        unsafe protocols = nil
        _ = unsafe SSL_CTX_ctrl(handle, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(TLS1_2_VERSION), nil)
        _ = unsafe SSL_CTX_set_options(handle, handset_tls_options())
        // An idle connection keeps no buffers. What is sent may be encrypted from another address when OpenSSL asks again.
        let modes = Int(SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER)
        _ = unsafe SSL_CTX_ctrl(handle, SSL_CTRL_MODE, modes, nil)
        // No session is resumed: a context's ticket keys never change, so that tickets would undo forward secrecy (RFC 9325 §4.3.2),
        // and a resumed session checks no certificate.
        _ = unsafe SSL_CTX_ctrl(handle, SSL_CTRL_SET_SESS_CACHE_MODE, Int(SSL_SESS_CACHE_OFF), nil)
        _ = unsafe SSL_CTX_set_num_tickets(handle, 0)
        guard unsafe SSL_CTX_set_cipher_list(handle, Self.ciphers) == 1 else { throw .unusable("choosing ciphers") }
        unsafe SSL_CTX_set_cert_verify_callback(handle, { store, _ in unsafe verify(store) }, nil)
    }

    deinit {
        unsafe SSL_CTX_free(handle)
        unsafe protocols?.deallocate()
    }

    /// Sets up connections to servers. Their certificates must lead to a trusted authority.
    ///
    /// - Parameter identity: What servers that ask for a certificate get.
    public static func client(
        trusting roots: TrustRoots, showing identity: TLSIdentity? = nil
    ) throws(TLSError) -> TLSContext {
        let context = unsafe try TLSContext(TLS_client_method())
        unsafe SSL_CTX_set_verify(context.handle, SSL_VERIFY_PEER, nil)
        try context.trust(roots)
        if let identity, unsafe !identity.install(in: context.handle) { throw .unusable("using a certificate") }
        return context
    }

    /// Sets up connections of clients.
    ///
    /// - Parameters:
    ///   - protocols: Names of the protocols that are spoken, the best first (RFC 7301). A client that names only others
    ///     gets no answer to that.
    ///   - authorities: Unless empty, each client must show a certificate that leads to one of these.
    public static func server(
        _ identity: TLSIdentity, protocols: [String] = [], demanding authorities: [TLSCertificate] = []
    ) throws(TLSError) -> TLSContext {
        let context = unsafe try TLSContext(TLS_server_method())
        guard unsafe identity.install(in: context.handle) else { throw .unusable("using a certificate") }
        context.offer(protocols)
        guard !authorities.isEmpty else { return context }
        unsafe SSL_CTX_set_verify(context.handle, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nil)
        try context.trust(.only(authorities))
        return context
    }

    // MARK: Setting up

    private func trust(_ roots: TrustRoots) throws(TLSError) {
        switch roots {
        case .system: try trustSystem()
        case .systemAnd(let certificates):
            try trustSystem()
            try trust(certificates)
        case .only(let certificates): try trust(certificates)
        case .file(let path):
            // OpenSSL would wait for a named pipe, and this may be the thread of all connections.
            do throws(RegularFileError) {
                try RegularFile.check(path)
            } catch {
                throw TLSError(
                    .unusable,
                    "reading trusted certificates from \"\(path)\" failed: \(error.message). It must be a file of PEM that "
                        + "this user may read.")
            }
            guard unsafe SSL_CTX_load_verify_file(handle, path) == 1 else {
                throw .unusable("reading trusted certificates from \"\(path)\"")
            }
        }
    }

    private func trustSystem() throws(TLSError) {
        guard unsafe SSL_CTX_set_default_verify_paths(handle) == 1 else {
            throw .unusable("reading the system's trusted certificates")
        }
    }

    private func trust(_ certificates: [TLSCertificate]) throws(TLSError) {
        let store = unsafe SSL_CTX_get_cert_store(handle)
        for certificate in certificates {
            guard let certificate = X509Handle(der: certificate.der),
                unsafe X509_STORE_add_cert(store, certificate.certificate) == 1
            else { throw .unusable("trusting a certificate") }
        }
    }

    private func offer(_ names: [String]) {
        let list = protocolList(names)
        guard !list.isEmpty else { return }
        let memory = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: list.count)
        _ = unsafe memory.initialize(from: list)
        unsafe protocols = memory
        let own = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe SSL_CTX_set_alpn_select_cb(
            handle,
            { _, chosen, length, offered, count, own in
                // The context outlives its connections, each of which refers to it.
                guard let own = unsafe own else { return SSL_TLSEXT_ERR_NOACK }
                let context = unsafe Unmanaged<TLSContext>.fromOpaque(own).takeUnretainedValue()
                return unsafe context.choose(chosen, length, offered, count)
            }, own)
    }

    private func choose(
        _ chosen: UnsafeMutablePointer<UnsafePointer<UInt8>?>?, _ length: UnsafeMutablePointer<UInt8>?,
        _ offered: UnsafePointer<UInt8>?, _ count: UInt32
    ) -> Int32 {
        guard let protocols = unsafe protocols, let chosen = unsafe chosen else { return SSL_TLSEXT_ERR_NOACK }
        var name: UnsafeMutablePointer<UInt8>?
        let result = unsafe SSL_select_next_proto(
            &name, length, protocols.baseAddress, UInt32(protocols.count), offered, count)
        guard result == OPENSSL_NPN_NEGOTIATED else { return SSL_TLSEXT_ERR_NOACK }
        unsafe chosen.pointee = unsafe UnsafePointer(name)
        return SSL_TLSEXT_ERR_OK
    }
}

/// Names of protocols as they are sent (RFC 7301 §3.1).
func protocolList(_ names: [String]) -> [UInt8] {
    names.flatMap { name in [UInt8(truncatingIfNeeded: name.utf8.count)] + name.utf8 }
}

/// Checks a peer's certificates, and has the session judge them.
private func verify(_ store: OpaquePointer?) -> Int32 {
    let ssl = unsafe X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx())
    guard let ssl = unsafe ssl, let pipe = unsafe BytePipe.behind(OpaquePointer(ssl)) else { return 0 }
    return unsafe pipe.verify(store)
}
