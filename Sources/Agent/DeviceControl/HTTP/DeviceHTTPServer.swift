internal import CallAgent
internal import ControlPlane
internal import ControlWire
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import Realtime

/// Lets programs control the accounts of a process over HTTP, at a Unix socket and perhaps on TCP. It has a thread of its own.
final class DeviceHTTPServer: Sendable {
    private let server: ControlHTTPServer
    private let store: EventStore
    private let webhooks: WebhookOffice?
    private let group: MultiThreadedEventLoopGroup
    private let desk: NIOLoopBound<ControlDesk>

    private init(
        _ server: ControlHTTPServer, _ store: EventStore, _ webhooks: WebhookOffice?,
        _ group: MultiThreadedEventLoopGroup, _ desk: NIOLoopBound<ControlDesk>
    ) {
        self.server = server
        self.store = store
        self.webhooks = webhooks
        self.group = group
        self.desk = desk
    }

    /// Accepts clients from now on.
    ///
    /// - Throws: An error that says which address or file cannot be used, and what to try.
    static func start(
        _ socket: ControlSocket, _ configuration: ControlHTTPConfiguration, webhooks: [ControlWebhook],
        _ handler: ControlRequestHandler, _ hub: ControlEventHub, logger: Logger
    ) async throws -> DeviceHTTPServer {
        let tls = try ControlHTTPServer.tls(of: configuration.network)
        let store = await EventStore.open(folder: configuration.historyFolder, logger: logger)
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let loop = group.next()
        let office = configuration.historyFolder.map { WebhookOffice(store, folder: $0, on: loop, logger: logger) }
        let (desk, point) = try await loop.submit {
            let streams = EventStreams(store, on: loop, logger: logger) { await handler.levels() }
            let desk = ControlDesk(handler, hub, store, streams, office, on: loop)
            streams.start()
            return (
                NIOLoopBound(desk, eventLoop: loop), NIOLoopBound<any ControlPoint>(desk, eventLoop: loop)
            )
        }.get()
        let server: ControlHTTPServer
        do {
            server = try await ControlHTTPServer.start(
                socket, configuration.network, tls: tls, point, on: loop, logger: logger)
        } catch {
            try? await group.shutdownGracefully()
            throw error
        }
        hub.add { event, account in
            let time = MonotonicClock.wallNanoseconds / 1_000_000
            store.add(ControlCoding.line(event, of: account, atMilliseconds: time))
            office?.wake()
        }
        await office?.adopt(webhooks)
        return DeviceHTTPServer(server, store, office, group, desk)
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
    var failedWrites: Int { store.failedWrites }

    /// Clients of events that were disconnected because they did not read; nil when the server has ended.
    func droppedEventClients() async -> Int? {
        let desk = desk
        return try? await group.next().submit { desk.value.droppedClients }.get()
    }

    /// Disconnects all clients, accepts no more, and completes the history on disk.
    func close() async {
        await server.stopAccepting()
        await webhooks?.stop()
        await server.disconnectAll()
        await store.close()
        try? await group.shutdownGracefully()
    }
}
