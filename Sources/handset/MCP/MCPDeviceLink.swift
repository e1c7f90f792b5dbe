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
        var asks: ControlClient?
        /// The device has ended when this one has.
        var events: ControlClient?
    }

    private let path: String
    private let connections = Mutex(Connections())
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
            let asks = try connected()
            do {
                return try asks.ask(request).reply
            } catch {
                // The answer may come yet, and must not be that of the next request. The device need not have ended.
                connections.withLock { if $0.asks === asks { $0.asks = nil } }
                asks.stop()
                throw error
            }
        }
    }

    /// The connection that asks. On the asking thread.
    private func connected() throws -> ControlClient {
        let there = connections.withLock { $0 }
        if let asks = there.asks, there.events != nil { return asks }
        if there.events == nil { try watch() }
        let asks = try ControlClient(path: path)
        // The device may have ended meanwhile: without events there is nothing to wait for.
        let isWatched = connections.withLock { connections in
            if connections.events != nil { connections.asks = asks }
            return connections.events != nil
        }
        guard isWatched else {
            asks.stop()
            throw ControlFault(.failed, "the device at \(path) has just ended its connections; try again")
        }
        return asks
    }

    private func watch() throws {
        let events = try ControlClient(path: path)
        let (reply, _) = try events.ask(ControlRequest(.watch(levels: false)))
        if let fault = reply.error { throw fault }
        connections.withLock { $0.events = events }
        Task { await watch(events) }
    }

    private func watch(_ events: ControlClient) async {
        while true {
            let line = await Self.watching.run { try? events.nextEvent()?.line }
            guard let line else { break }
            await self.events(.line(line))
        }
        let asks = connections.withLock { connections in
            defer { connections = Connections() }
            return connections.asks
        }
        asks?.stop()
        events.stop()
        await self.events(.lost("the device at \(path) has ended, or closed its connection; its calls ended with it"))
    }
}
