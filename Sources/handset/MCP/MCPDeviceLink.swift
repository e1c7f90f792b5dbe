internal import BlockingWork
internal import ControlWire
internal import DeviceControl
internal import Synchronization

/// The two connections of an agent's door to a device: one asks, and one watches. They are made when they are needed, and again after
/// the device was started again.
final class MCPDeviceLink: Sendable {
    /// One thread, because answers come in the order of requests.
    private static let asking = BlockingThreads(name: "mcp-ask", most: 1)
    /// One for a connection that ends, and one for that after it.
    private static let watching = BlockingThreads(name: "mcp-watch", most: 2)

    private struct Connections {
        let asks: ControlClient
        let events: ControlClient
    }

    private let path: String
    private let connections = Mutex<Connections?>(nil)
    private let events: @Sendable (Event) async -> Void

    /// What comes without being asked for.
    enum Event: Sendable {
        case line(String)
        /// The device has gone, and why.
        case lost(String)
    }

    /// - Parameters:
    ///   - path: The device's control socket.
    ///   - events: Is called for each event, in order.
    init(path: String, events: @escaping @Sendable (Event) async -> Void) {
        self.path = path
        self.events = events
    }

    /// Asks the device; connects first if there is no connection.
    ///
    /// - Throws: ``ControlSocketError``, and ``ControlFault`` if the device takes no further client.
    func ask(_ request: ControlRequest) async throws -> ControlReply {
        try await Self.asking.run { [self] in
            let connections = try connected()
            do {
                return try connections.asks.ask(request).reply
            } catch {
                // The answer may come yet, and must not be that of the next request.
                drop(connections)
                throw error
            }
        }
    }

    /// On the asking thread.
    private func connected() throws -> Connections {
        if let there = connections.withLock({ $0 }) { return there }
        let events = try ControlClient(path: path)
        let (reply, _) = try events.ask(ControlRequest(.watch(levels: false)))
        if let fault = reply.error { throw fault }
        let new = Connections(asks: try ControlClient(path: path), events: events)
        connections.withLock { $0 = new }
        Task { await watch(new) }
        return new
    }

    private func watch(_ connections: Connections) async {
        while true {
            let line = await Self.watching.run { try? connections.events.nextEvent()?.line }
            guard let line else { break }
            await events(.line(line))
        }
        drop(connections)
        await events(.lost("the device at \(path) has ended, or closed its connection; its calls ended with it"))
    }

    private func drop(_ old: Connections) {
        connections.withLock { now in
            if now?.asks === old.asks { now = nil }
        }
        old.asks.stop()
        old.events.stop()
    }
}
