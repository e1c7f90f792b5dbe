internal import ControlPlane
internal import ControlWire
internal import Synchronization

/// An agent's way to a device, over HTTP: requests one after the other, and events. The events are those since the first request, and
/// since the first one after the device was started again.
final class MCPDeviceLink: Sendable {
    private struct State {
        /// The request that was sent last.
        var last: Task<ControlReply, any Error>?
        var isWatching = false
    }

    private let path: String
    private let client: DeviceClient
    private let state = Mutex(State())
    private let events: @Sendable (Event) async -> Void

    /// What comes without being asked for.
    enum Event: Sendable {
        case line(String)
        /// The device has gone, and why.
        case lost(String)
    }

    /// - Parameters:
    ///   - path: The device's socket for HTTP.
    ///   - events: Is called for each event, in order.
    init(path: String, events: @escaping @Sendable (Event) async -> Void) {
        self.path = path
        self.events = events
        client = DeviceClient(ControlHTTPClient(path: path, owner: .device))
    }

    /// Asks the device, when earlier requests have their answers.
    ///
    /// - Throws: ``ControlSocketError``, and ``ControlFault`` if the device takes no further client of events.
    func ask(_ request: ControlRequest) async throws -> ControlReply {
        let task = state.withLock { state in
            let earlier = state.last
            let task = Task {
                _ = await earlier?.result
                try await self.watch()
                return try await self.client.ask(request).reply
            }
            state.last = task
            return task
        }
        return try await task.value
    }

    /// Receives events from now on, unless it does already. Of the requests only one is here at a time.
    private func watch() async throws {
        guard !state.withLock({ $0.isWatching }) else { return }
        let (reply, line) = try await client.ask(ControlRequest(.status))
        if let fault = reply.error { throw fault }
        state.withLock { $0.isWatching = true }
        Task { await receive(after: line) }
    }

    private func receive(after line: String) async {
        var why = "has ended, or closed its connection; its calls ended with it"
        do {
            try await client.receive(after: line, account: nil, levels: false) { event in
                await events(.line(event.json))
            }
        } catch let fault as ControlFault {
            why = "sends no events: \(fault.message)"
        } catch {
            // It was there a moment ago.
        }
        state.withLock { $0.isWatching = false }
        await events(.lost("the device at \(path) \(why)"))
    }
}
