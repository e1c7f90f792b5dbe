internal import CallAgent
internal import ControlPlane
internal import ControlWire
internal import Logging
internal import Realtime

/// Lets programs control the accounts of a process over HTTP, at a Unix socket and perhaps on TCP. It has a thread of its own.
final class DeviceHTTPServer: Sendable {
    private let host: ControlHost<ControlDesk>
    private let webhooks: WebhookOffice?

    private init(_ host: ControlHost<ControlDesk>, _ webhooks: WebhookOffice?) {
        self.host = host
        self.webhooks = webhooks
    }

    /// Accepts clients from now on.
    ///
    /// - Throws: An error that says which address or file cannot be used, and what to try.
    static func start(
        _ socket: ControlSocket, _ configuration: ControlHTTPConfiguration, webhooks: [ControlWebhook],
        _ handler: ControlRequestHandler, _ hub: ControlEventHub, logger: Logger
    ) async throws -> DeviceHTTPServer {
        let folder = configuration.historyFolder
        let host = try await ControlHost.start(
            socket, configuration.network, historyFolder: folder, logger: logger, levels: { await handler.levels() }
        ) { front, store in
            let office = folder.map { WebhookOffice(store, folder: $0, on: front.loop, logger: logger) }
            return ControlDesk(handler, hub, front, office)
        }
        let office = await host.look { $0.webhooks } ?? nil
        let store = host.store
        hub.add { event, account in
            let time = MonotonicClock.wallNanoseconds / 1_000_000
            store.add(ControlCoding.line(event, of: account, atMilliseconds: time))
            office?.wake()
        }
        await office?.adopt(webhooks)
        return DeviceHTTPServer(host, office)
    }

    /// Has other webhooks from now on. Those that remain continue where they are.
    ///
    /// - Returns: False if there is no folder in which events wait for them.
    func adopt(_ webhooks: [ControlWebhook]) async -> Bool {
        guard let office = self.webhooks else { return webhooks.isEmpty }
        await office.adopt(webhooks)
        return true
    }

    /// What has become of events for webhooks.
    var webhookFigures: [WebhookFigures] { webhooks?.figures ?? [] }

    /// Writes to the folder of the history that failed since the start.
    var failedWrites: Int { host.store.failedWrites }

    /// Clients of events that were disconnected because they did not read; nil when the server has ended.
    func droppedEventClients() async -> Int? { await host.look { $0.droppedClients } }

    /// Disconnects all clients, accepts no more, and completes the history on disk.
    func close() async {
        await host.stopAccepting()
        await webhooks?.stop()
        await host.close()
    }
}
