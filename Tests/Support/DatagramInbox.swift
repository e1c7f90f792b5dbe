import Foundation
import Glibc
import Synchronization

/// A datagram socket of the Unix family that keeps what comes: what a service manager listens at.
public final class DatagramInbox: Sendable {
    private let descriptor: Int32
    private let path: String?
    private let received = Mutex<[String]>([])

    /// Binds a name; one that begins with `@` is abstract.
    public init(_ name: String) throws {
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        path = name.hasPrefix("@") ? nil : name
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        var bytes = Array(name.utf8)
        if name.hasPrefix("@") { bytes[0] = 0 }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        let length = socklen_t(MemoryLayout<sa_family_t>.size + bytes.count)
        let status = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, length) }
        }
        guard status == 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
    }

    deinit {
        close(descriptor)
        if let path { unlink(path) }
    }

    /// All datagrams that have come, as text, in order.
    public var texts: [String] {
        var buffer = [UInt8](repeating: 0, count: 4_096)
        return received.withLock { received in
            while case let count = recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT)), count >= 0 {
                received.append(String(decoding: buffer[..<count], as: UTF8.self))
            }
            return received
        }
    }
}
