internal import COpenSSL

/// OpenSSL's source and sink of bytes, with the state of its callbacks.
///
/// Owned by one ``TLSSession``; OpenSSL holds unretained references to it in an `SSL` and a BIO that die before it. OpenSSL's own
/// memory BIO would keep the largest buffer that it ever needed.
@safe
final class BytePipe {
    private let check: TLSSession.Check?
    /// Bytes from the peer that OpenSSL has not read; valid during ``with(_:_:)``.
    private var inbound = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    private var outbound: [UInt8] = []
    /// The peer's certificates as they came, its own one first, once they were to be judged.
    private(set) var presented: [TLSCertificate] = []

    /// - Parameter check: Nil at a server.
    init(_ check: TLSSession.Check?) { self.check = check }

    /// Lets OpenSSL read `bytes` during `work`. What it leaves is forgotten: it leaves nothing, unless the connection has ended.
    func with<Result, Failure: Error>(
        _ bytes: UnsafeRawBufferPointer, _ work: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        unsafe inbound = bytes
        defer { unsafe inbound = UnsafeRawBufferPointer(start: nil, count: 0) }
        return try work()
    }

    /// Appends what is to go to the peer.
    func takeOutbound(into bytes: inout [UInt8]) {
        if bytes.isEmpty { swap(&bytes, &outbound) } else { bytes += outbound }
        outbound = []
    }

    /// Makes the BIO of this pipe, and has `ssl` own it; false if there is no memory.
    func attach(to ssl: OpaquePointer) -> Bool {
        guard let method = unsafe Method.shared.handle, let bio = unsafe BIO_new(method) else { return false }
        let own = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe BIO_set_data(bio, own)
        unsafe BIO_set_init(bio, 1)
        unsafe SSL_set_bio(ssl, bio, bio)
        return unsafe SSL_set_ex_data(ssl, 0, own) == 1
    }

    /// The pipe of an `SSL`.
    static func behind(_ ssl: OpaquePointer) -> BytePipe? {
        guard let data = unsafe SSL_get_ex_data(ssl, 0) else { return nil }
        return unsafe Unmanaged<BytePipe>.fromOpaque(data).takeUnretainedValue()
    }

    /// Whether the handshake may continue: 1 or 0, with the reason in the store's context.
    func verify(_ store: OpaquePointer?) -> Int32 {
        switch check {
        case nil, .name?: return unsafe X509_verify_cert(store)
        case .judged(let isServer)?:
            guard unsafe X509_verify_cert(store) == 1 else { return 0 }
            unsafe readPresented(store)
            if isServer(presented) { return 1 }
            unsafe X509_STORE_CTX_set_error(store, X509_V_ERR_HOSTNAME_MISMATCH)
            return 0
        case .shown?:
            unsafe readPresented(store)
            unsafe X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION)
            return 0
        }
    }

    private func readPresented(_ store: OpaquePointer?) {
        let others = unsafe X509_STORE_CTX_get0_untrusted(store)
        let own = unsafe X509_STORE_CTX_get0_cert(store)
        var encodings: [[UInt8]] = []
        if let own = unsafe own, let bytes = unsafe encoding(of: own) { encodings.append(bytes) }
        for index in unsafe 0..<max(0, handset_count_certificates(others)) {
            // The own certificate may be among them.
            guard let other = unsafe handset_certificate(others, index), let bytes = unsafe encoding(of: other),
                bytes != encodings.first
            else { continue }
            encodings.append(bytes)
        }
        presented = encodings.compactMap(TLSCertificate.init(der:))
    }

    fileprivate static func behindBIO(_ bio: OpaquePointer?) -> BytePipe? {
        guard let data = unsafe BIO_get_data(bio) else { return nil }
        return unsafe Unmanaged<BytePipe>.fromOpaque(data).takeUnretainedValue()
    }

    fileprivate func write(_ bytes: UnsafeRawBufferPointer) { unsafe outbound.append(contentsOf: bytes) }

    /// - Returns: How many bytes were copied; 0 if none are there.
    fileprivate func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        let count = unsafe min(inbound.count, buffer.count)
        guard count > 0 else { return 0 }
        unsafe buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: inbound[..<count]))
        unsafe inbound = UnsafeRawBufferPointer(rebasing: inbound[count...])
        return count
    }
}

/// The functions behind the BIO, made once for the process.
@safe
private struct Method: @unchecked Sendable {
    static let shared = Method()
    /// Never changed after it is made.
    let handle: OpaquePointer?

    private init() {
        unsafe handle = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "bytes")
        unsafe BIO_meth_set_write(handle, { bio, bytes, count in unsafe write(bio, bytes, count) })
        unsafe BIO_meth_set_read(handle, { bio, bytes, count in unsafe read(bio, bytes, count) })
        unsafe BIO_meth_set_ctrl(handle, { _, command, _, _ in command == BIO_CTRL_FLUSH ? 1 : 0 })
    }
}

private func write(_ bio: OpaquePointer?, _ bytes: UnsafePointer<CChar>?, _ count: Int32) -> Int32 {
    unsafe BIO_clear_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_WRITE | BIO_FLAGS_SHOULD_RETRY)
    guard let pipe = unsafe BytePipe.behindBIO(bio), count > 0 else { return -1 }
    unsafe pipe.write(UnsafeRawBufferPointer(start: bytes, count: Int(count)))
    return count
}

private func read(_ bio: OpaquePointer?, _ bytes: UnsafeMutablePointer<CChar>?, _ count: Int32) -> Int32 {
    unsafe BIO_clear_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_WRITE | BIO_FLAGS_SHOULD_RETRY)
    guard let pipe = unsafe BytePipe.behindBIO(bio), count > 0 else { return -1 }
    let length = unsafe pipe.read(into: UnsafeMutableRawBufferPointer(start: bytes, count: Int(count)))
    if length > 0 { return Int32(length) }
    unsafe BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY)
    return -1
}
