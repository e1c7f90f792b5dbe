import Glibc
import Synchronization
public import TestSupport
internal import Core

/// Two ports on the loopback between two programs: what comes to one leaves from the other, if it is not media that a
/// seeded chain loses. RTCP, STUN and DTLS are not lost. Runs on a thread of its own until it is stopped.
public final class LossyRelay: Sendable {
    /// Where the first program sends to, and the second.
    public let ports: [UInt16]
    private let sockets: [Int32]
    private let state: Mutex<State>

    private struct State: Sendable {
        var networks: [SimulatedNetwork]
        /// Where the two programs are; 0 for one that has not sent yet.
        var targets: [UInt16] = [0, 0]
        /// Whether the first one is whoever sends to it.
        var followsFirst = false
        var lost = 0
        var passed = 0
        var isRunning = true
    }

    /// Binds the ports; nothing is relayed before ``run()``.
    public init(_ loss: NetworkProfile.Loss, seed: UInt64) {
        var profile = NetworkProfile()
        profile.loss = loss
        let made = [Self.open(), Self.open()]
        sockets = made.map(\.descriptor)
        ports = made.map(\.port)
        state = Mutex(
            State(networks: [SimulatedNetwork(profile, seed: seed), SimulatedNetwork(profile, seed: seed + 1)]))
    }

    /// Datagrams of media that were lost, and all others.
    public var counts: (lost: Int, passed: Int) { state.withLock { ($0.lost, $0.passed) } }

    /// Relays between two programs on these ports of the loopback.
    public func join(_ one: UInt16, _ other: UInt16) {
        state.withLock { $0.targets = [one, other] }
    }

    /// Relays between the server on this port and one client, whose address is where it last sent from.
    public func stand(before server: UInt16) {
        state.withLock { state in
            state.targets = [0, server]
            state.followsFirst = true
        }
    }

    /// Relays until ``stop()``; blocks the thread that calls it.
    public func run() {
        var bytes = [UInt8](repeating: 0, count: 2_048)
        while state.withLock({ $0.isRunning }) {
            var ready = sockets.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            guard poll(&ready, 2, 50) > 0 else { continue }
            for side in 0..<2 where ready[side].revents != 0 {
                let (count, port) = receive(from: sockets[side], into: &bytes)
                if side == 0 { state.withLock { if $0.followsFirst { $0.targets[0] = port } } }
                if count > 1 { forward(bytes[..<count], from: side) }
            }
        }
        for socket in sockets { close(socket) }
    }

    /// Ends ``run()``.
    public func stop() { state.withLock { $0.isRunning = false } }

    private func receive(from socket: Int32, into bytes: inout [UInt8]) -> (count: Int, port: UInt16) {
        var name = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let size = bytes.count
        let count = withUnsafeMutablePointer(to: &name) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                recvfrom(socket, &bytes, size, Int32(MSG_DONTWAIT), $0, &length)
            }
        }
        return (count, UInt16(bigEndian: name.sin_port))
    }

    /// Whether this is RTP (RFC 7983), by itself or in a channel of TURN (RFC 8656, section 12.4).
    private static func isMedia(_ bytes: ArraySlice<UInt8>) -> Bool {
        guard let first = bytes.first else { return false }
        if (64...79).contains(first) { return isMedia(bytes.dropFirst(4)) }
        return (128...191).contains(first) && !(192...223).contains(bytes.dropFirst().first ?? 192)
    }

    /// What the first program sends comes to the first port, and goes from the second to the second program.
    private func forward(_ bytes: ArraySlice<UInt8>, from side: Int) {
        let isMedia = Self.isMedia(bytes)
        let target: UInt16? = state.withLock { state in
            if isMedia, state.networks[side].send(at: .zero).arrival == nil {
                state.lost += 1
                return nil
            }
            state.passed += 1
            return state.targets[1 - side]
        }
        guard let target, target > 0 else { return }
        var name = Self.loopback(port: target)
        _ = bytes.withUnsafeBytes { payload in
            withUnsafePointer(to: &name) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    sendto(
                        sockets[1 - side], payload.baseAddress, payload.count, 0, $0,
                        socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
        }
    }

    private static func loopback(port: UInt16) -> sockaddr_in {
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        name.sin_port = port.bigEndian
        return name
    }

    private static func open() -> (descriptor: Int32, port: UInt16) {
        let descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
        var name = loopback(port: 0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let result = withUnsafeMutablePointer(to: &name) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { name in
                bind(descriptor, name, length) + getsockname(descriptor, name, &length)
            }
        }
        precondition(result == 0, "the loopback has a free port")
        return (descriptor, UInt16(bigEndian: name.sin_port))
    }
}
