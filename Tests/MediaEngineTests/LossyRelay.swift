import Datagrams
import Glibc
import Synchronization
import TestSupport
import Timekeeping

/// Two ports on the loopback between two engines: what comes to one leaves from the other, if a seeded chain does not lose
/// it. RTCP is not lost. Runs on a thread of its own until it is stopped.
final class LossyRelay: Sendable {
    /// Where the first engine sends to, and the second.
    let ports: [UInt16]
    private let sockets: [Int32]
    private let state: Mutex<State>

    private struct State: Sendable {
        var networks: [SimulatedNetwork]
        var targets: [UInt16] = [0, 0]
        var lost = 0
        var passed = 0
        var isRunning = true
    }

    init(_ loss: NetworkProfile.Loss, seed: UInt64) {
        var profile = NetworkProfile()
        profile.loss = loss
        let made = [Self.open(), Self.open()]
        sockets = made.map(\.descriptor)
        ports = made.map(\.port)
        state = Mutex(
            State(networks: [SimulatedNetwork(profile, seed: seed), SimulatedNetwork(profile, seed: seed + 1)]))
    }

    /// Datagrams of media that were lost, and all others.
    var counts: (lost: Int, passed: Int) { state.withLock { ($0.lost, $0.passed) } }

    /// Joins the ports of two engines.
    func join(_ one: SocketAddress, _ other: SocketAddress) {
        state.withLock { $0.targets = [one.port, other.port] }
    }

    /// Relays until ``stop()``; blocks the thread that calls it.
    func run() {
        var bytes = [UInt8](repeating: 0, count: 2_048)
        while state.withLock({ $0.isRunning }) {
            var ready = sockets.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            guard poll(&ready, 2, 50) > 0 else { continue }
            for side in 0..<2 where ready[side].revents != 0 {
                let count = recv(sockets[side], &bytes, bytes.count, Int32(MSG_DONTWAIT))
                if count > 1 { forward(bytes[..<count], from: side) }
            }
        }
        for socket in sockets { close(socket) }
    }

    func stop() { state.withLock { $0.isRunning = false } }

    /// What the first engine sends comes to the first port, and goes from the second to the second engine.
    private func forward(_ bytes: ArraySlice<UInt8>, from side: Int) {
        let isControl = (192...223).contains(bytes[bytes.startIndex + 1])
        let target: UInt16? = state.withLock { state in
            if !isControl, state.networks[side].send(at: .zero).arrival == nil {
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
