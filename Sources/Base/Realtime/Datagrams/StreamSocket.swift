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
