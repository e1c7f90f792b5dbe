internal import CallAgent
internal import ControlPlane
internal import ControlWire
internal import Logging
internal import Realtime

/// Lets programs control the accounts of a process over HTTP, at a Unix socket and perhaps on TCP. It has a thread of its own.
final class DeviceHTTPServer: Sendable {
    private let host: ControlHost<ControlDesk>

    private init(_ host: ControlHost<ControlDesk>) { self.host = host }

    /// Accepts clients from now on.
    ///
    /// - Throws: An error that says which address or file cannot be used, and what to try.
    static func start(
        _ socket: ControlSocket, _ configuration: ControlHTTPConfiguration, webhooks: [ControlWebhook],
        _ handler: ControlRequestHandler, _ hub: ControlEventHub, logger: Logger
    ) async throws -> DeviceHTTPServer {
        let host = try await ControlHost.start(
            socket, configuration.network, historyFolder: configuration.historyFolder, webhooks: webhooks,
            logger: logger, levels: { await handler.levels() }
        ) { front, _ in ControlDesk(handler, hub, front) }
        let store = host.store
        hub.add { event, account in
            let time = MonotonicClock.wallNanoseconds / 1_000_000
            store.add(ControlCoding.line(event, of: account, atMilliseconds: time))
        }
        return DeviceHTTPServer(host)
    }

    /// Has other webhooks from now on. Those that remain continue where they are.
    ///
    /// - Returns: False if there is no folder in which events wait for them.
    func adopt(_ webhooks: [ControlWebhook]) async -> Bool { await host.adopt(webhooks) }

    /// What it has counted since the start.
    func figures() async -> ControlFigures { await host.figures() }

    /// Disconnects all clients, accepts no more, and completes the history on disk.
    func close() async { await host.close() }
}
