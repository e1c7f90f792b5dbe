internal import CRealtime
public import Core

/// One end of a TCP connection that we have asked for. Never blocks.
public struct StreamSocket: ~Copyable, Sendable {
    /// The descriptor to watch: writable once the connection is made or has failed, readable when bytes wait.
    public let descriptor: Int32

    /// Bytes that may wait in the kernel for their first transmission: what is older should be dropped by its owner,
    /// who knows what it is worth.
    private static let unsentLimit: Int32 = 4_096

    /// The result of reading or writing.
    public enum Progress: Equatable, Sendable {
        /// This number of bytes was read or written; at least one.
        case bytes(Int)
        /// Nothing can be done now.
        case wait
        /// The connection is lost, with the reason as text for people.
        case gone(String)
    }

    /// Begins to connect.
    public init(connectingTo remote: SocketAddress) throws(RealtimeError) {
        descriptor = handset_stream_open(remote.raw, UDPSocket.expeditedForwarding, Self.unsentLimit)
        guard descriptor >= 0 else { throw RealtimeError(doing: "connecting to \(remote)", errno: -descriptor) }
    }

    deinit { handset_close(descriptor) }

    /// Why the connection could not be made; nil if it was. To be asked when the descriptor has become writable.
    public func connectionError(with remote: SocketAddress) -> RealtimeError? {
        let errno = handset_stream_error(descriptor)
        return errno == 0 ? nil : RealtimeError(doing: "connecting to \(remote)", errno: errno)
    }

    /// Reads into the front of `buffer`.
    public func read(into buffer: inout [UInt8]) -> Progress {
        let count = unsafe buffer.withUnsafeMutableBufferPointer {
            unsafe handset_stream_read(descriptor, $0.baseAddress, $0.count)
        }
        return count == 0 ? .gone("the other side has closed the connection") : Self.progress(count)
    }

    /// Writes as much of `bytes`, which is not empty, as fits.
    public func write(_ bytes: [UInt8]) -> Progress {
        Self.progress(
            unsafe bytes.withUnsafeBufferPointer {
                unsafe handset_stream_write(descriptor, $0.baseAddress, $0.count)
            })
    }

    private static func progress(_ count: Int) -> Progress {
        guard count <= 0 else { return .bytes(count) }
        let errno = Int32(truncatingIfNeeded: -count)
        if errno == 0 || errno == again { return .wait }
        return .gone("\(RealtimeError(doing: "keeping the connection", errno: errno))")
    }

    /// EAGAIN.
    private static var again: Int32 { 11 }
}

/// Descriptors that one thread waits for together, each under a token that its owner chooses.
public struct DescriptorSet: ~Copyable {
    /// Readable when something can be done with a member.
    public let descriptor: Int32

    /// A member that something can be done with.
    public struct Ready: Sendable {
        /// Its token.
        public let token: UInt64
        /// A read returns bytes, the end, or an error.
        public let isReadable: Bool
        /// Writing makes progress, or fails.
        public let isWritable: Bool
    }

    /// Makes an empty set.
    public init() throws(RealtimeError) {
        descriptor = handset_set_open()
        if descriptor < 0 { throw RealtimeError(doing: "opening a set of descriptors (epoll)", errno: -descriptor) }
    }

    deinit { handset_close(descriptor) }

    /// Takes a descriptor in. It leaves by itself when it is closed.
    public func insert(_ member: Int32, token: UInt64, forWriting: Bool) throws(RealtimeError) {
        let result = handset_set_watch(descriptor, member, token, forWriting, true)
        if result < 0 { throw RealtimeError(doing: "watching a socket (epoll)", errno: -result) }
    }

    /// Changes whether a member is watched for writing as well as for reading.
    public func update(_ member: Int32, token: UInt64, forWriting: Bool) {
        _ = handset_set_watch(descriptor, member, token, forWriting, false)
    }

    /// Members that something can be done with now; at most 64 at once. Does not wait.
    public func ready() -> [Ready] {
        unsafe withUnsafeTemporaryAllocation(of: handset_ready.self, capacity: 64) { buffer in
            let count = unsafe handset_set_ready(descriptor, buffer.baseAddress, 64)
            return (0..<max(0, Int(count))).map { index in
                let entry = unsafe buffer[index]
                return Ready(token: entry.token, isReadable: entry.readable, isWritable: entry.writable)
            }
        }
    }
}
