internal import COpenSSL

/// OpenSSL's source and sink of datagrams, with the state of its callbacks.
///
/// Owned by one ``DTLSSession``; OpenSSL holds an unretained reference to it in a BIO that dies before it. OpenSSL's
/// own memory BIO would concatenate datagrams.
final class DatagramPipe {
    /// The most datagrams of one flight. One of our flights has some 700 bytes, so 4 of the smallest datagrams; further
    /// ones are dropped as if lost.
    static let capacity = 64

    let maximumDatagramBytes: Int
    let firstRetransmissionMicroseconds: UInt32
    /// Read once, then gone.
    var inbound: [UInt8]?
    /// Filled by OpenSSL, emptied by the endpoint after each call.
    private(set) var outbound: [[UInt8]] = []
    /// Nil while the peer's description is not here.
    var expected: [DTLSFingerprint]?
    /// The peer's certificate came while `expected` was known, and is not among them.
    private(set) var hasRefusedCertificate = false

    init(maximumDatagramBytes: Int, firstRetransmissionMicroseconds: UInt32) {
        self.maximumDatagramBytes = maximumDatagramBytes
        self.firstRetransmissionMicroseconds = firstRetransmissionMicroseconds
    }

    /// Datagrams that were written since the last call.
    func takeOutbound() -> [[UInt8]] {
        defer { outbound = [] }
        return outbound
    }

    /// Makes the BIO of this pipe; nil if there is no memory.
    func makeBIO() -> OpaquePointer? {
        guard let method = unsafe Method.shared.handle, let bio = unsafe BIO_new(method) else { return nil }
        unsafe BIO_set_data(bio, Unmanaged.passUnretained(self).toOpaque())
        unsafe BIO_set_init(bio, 1)
        return unsafe bio
    }

    /// The pipe behind a BIO made by ``makeBIO()``.
    static func behind(_ bio: OpaquePointer?) -> DatagramPipe? {
        guard let data = unsafe BIO_get_data(bio) else { return nil }
        return unsafe Unmanaged<DatagramPipe>.fromOpaque(data).takeUnretainedValue()
    }

    /// Whether the handshake may continue with this certificate; while the description is not here it may.
    func accepts(_ certificate: OpaquePointer) -> Bool {
        guard let expected else { return true }
        let isExpected = expected.accept { hash in unsafe DTLSFingerprint(hash, of: certificate) }
        if !isExpected { hasRefusedCertificate = true }
        return isExpected
    }

    /// Takes one datagram from OpenSSL.
    fileprivate func write(_ datagram: UnsafeRawBufferPointer) {
        if outbound.count < Self.capacity { outbound.append(unsafe Array(datagram)) }
    }

    /// Gives the waiting datagram to OpenSSL.
    ///
    /// - Returns: Its length; nil if none waits.
    fileprivate func read(into buffer: UnsafeMutableRawBufferPointer) -> Int? {
        guard let datagram = inbound else { return nil }
        inbound = nil
        // Bytes that do not fit are lost, as with a socket; the record is then too short and dropped.
        let count = min(datagram.count, buffer.count)
        unsafe buffer.copyBytes(from: datagram.prefix(count))
        return count
    }

    fileprivate func control(_ command: Int32) -> Int {
        switch command {
        case BIO_CTRL_FLUSH: 1
        case BIO_CTRL_DGRAM_QUERY_MTU, BIO_CTRL_DGRAM_GET_FALLBACK_MTU: maximumDatagramBytes
        case BIO_CTRL_DGRAM_GET_MTU_OVERHEAD: 28  // IPv4 and UDP.
        default: 0
        }
    }
}

/// The functions behind the BIO, made once for the process.
@safe
private struct Method: @unchecked Sendable {
    static let shared = Method()
    /// Never changed after it is made.
    let handle: OpaquePointer?

    private init() {
        unsafe handle = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "datagrams")
        unsafe BIO_meth_set_write(handle, { bio, bytes, count in unsafe write(bio, bytes, count) })
        unsafe BIO_meth_set_read(handle, { bio, bytes, count in unsafe read(bio, bytes, count) })
        unsafe BIO_meth_set_ctrl(handle, { bio, command, _, _ in unsafe control(bio, command) })
    }
}

private func write(_ bio: OpaquePointer?, _ bytes: UnsafePointer<CChar>?, _ count: Int32) -> Int32 {
    unsafe BIO_clear_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_WRITE | BIO_FLAGS_SHOULD_RETRY)
    guard let pipe = unsafe DatagramPipe.behind(bio), count > 0 else { return -1 }
    unsafe pipe.write(UnsafeRawBufferPointer(start: bytes, count: Int(count)))
    return count
}

private func read(_ bio: OpaquePointer?, _ bytes: UnsafeMutablePointer<CChar>?, _ count: Int32) -> Int32 {
    unsafe BIO_clear_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_WRITE | BIO_FLAGS_SHOULD_RETRY)
    guard let pipe = unsafe DatagramPipe.behind(bio), count > 0 else { return -1 }
    let buffer = unsafe UnsafeMutableRawBufferPointer(start: bytes, count: Int(count))
    if let length = unsafe pipe.read(into: buffer) { return Int32(length) }
    unsafe BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY)
    return -1
}

private func control(_ bio: OpaquePointer?, _ command: Int32) -> Int {
    unsafe DatagramPipe.behind(bio)?.control(command) ?? 0
}
