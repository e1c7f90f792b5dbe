import Foundation
import Glibc
import Synchronization

/// A datagram socket of the Unix family that keeps what comes: what a service manager listens at.
///
/// A thread reads it, because the system keeps ten datagrams for one that nobody reads, and senders that do not wait lose others.
public final class DatagramInbox: Sendable {
    private final class Received: Sendable {
        private let state = Mutex<(texts: [String], isOver: Bool)>(([], false))

        /// Takes what has come; false once nobody wants it.
        @discardableResult
        func drain(_ descriptor: Int32) -> Bool {
            var buffer = [UInt8](repeating: 0, count: 4_096)
            return state.withLock { state in
                while !state.isOver, case let count = recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT)),
                    count > 0
                {
                    state.texts.append(String(decoding: buffer[..<count], as: UTF8.self))
                }
                return !state.isOver
            }
        }

        var texts: [String] { state.withLock { $0.texts } }

        func end() { state.withLock { $0.isOver = true } }
    }

    private let descriptor: Int32
    private let path: String?
    private let received = Received()

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
        Thread.detachNewThread { [descriptor, received] in
            var one = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            repeat { poll(&one, 1, -1) } while received.drain(descriptor)
            close(descriptor)
        }
    }

    deinit {
        // Wakes the thread, which closes the socket.
        received.end()
        shutdown(descriptor, Int32(SHUT_RDWR))
        if let path { unlink(path) }
    }

    /// All datagrams that have come, as text, in order.
    public var texts: [String] {
        received.drain(descriptor)
        return received.texts
    }
}
