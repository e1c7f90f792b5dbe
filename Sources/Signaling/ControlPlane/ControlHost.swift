package import ControlWire
internal import HTTPTransport
package import Logging
internal import NIOCore
internal import NIOPosix

/// What a control interface has counted since the start, for metrics.
package struct ControlFigures: Sendable {
    /// Clients of events that were disconnected because they did not read; nil when the interface has ended.
    package let droppedClients: Int?
    /// Writes to the folder of the history that failed.
    package let failedWrites: Int
    /// What has become of events for webhooks, for each server.
    package let webhooks: [WebhookFigures]
}

/// The control interface of a process over HTTP: its server, its history of events with their webhooks, and the thread that has them.
package final class ControlHost<Point: ControlPoint>: Sendable {
    private let server: ControlHTTPServer
    private let group: MultiThreadedEventLoopGroup
    private let point: NIOLoopBound<Point>
    private let front: NIOLoopBound<ControlFront>
    private let door: LoopDoor
    /// Nil without a folder in which events wait for webhooks.
    private let webhooks: WebhookOffice?
    /// The history of the process's events.
    package let store: EventStore

    private init(
        _ server: ControlHTTPServer, _ store: EventStore, _ webhooks: WebhookOffice?,
        _ group: MultiThreadedEventLoopGroup, _ point: NIOLoopBound<Point>, _ front: NIOLoopBound<ControlFront>,
        _ door: LoopDoor
    ) {
        (self.server, self.store, self.webhooks, self.group) = (server, store, webhooks, group)
        (self.point, self.front, self.door) = (point, front, door)
    }

    /// Accepts clients from now on.
    ///
    /// - Parameters:
    ///   - webhooks: Servers that are sent the events, if there is a folder for the history.
    ///   - levels: What a meter shows now; nil if the process has none.
    ///   - make: Makes what carries out requests, on the event loop.
    /// - Throws: An error that says which address or file cannot be used, and what to try.
    package static func start(
        _ socket: ControlSocket, _ network: ControlNetwork?, historyFolder: String?, webhooks: [ControlWebhook],
        logger: Logger, levels: (@Sendable () async -> ControlLevels?)? = nil,
        _ make: @escaping @Sendable (ControlFront, EventStore) -> Point
    ) async throws -> ControlHost {
        let tls = try ControlHTTPServer.tls(of: network)
        let store = await EventStore.open(folder: historyFolder, logger: logger)
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let loop = group.next()
        let office = historyFolder.map { WebhookOffice(store, folder: $0, on: loop, logger: logger) }
        do {
            let (point, front, served) = try await loop.submit {
                let streams = EventStreams(store, on: loop, logger: logger, levels: levels)
                let front = ControlFront(store, streams, office, on: loop)
                let point = make(front, store)
                streams.start()
                return (
                    NIOLoopBound(point, eventLoop: loop), NIOLoopBound(front, eventLoop: loop),
                    NIOLoopBound<any ControlPoint>(point, eventLoop: loop)
                )
            }.get()
            let server = try await ControlHTTPServer.start(
                socket, network, tls: tls, served, on: loop, logger: logger)
            if let office {
                store.onEachEvent { office.wake() }
                await office.adopt(webhooks)
            }
            let door = try await loop.submit { front.value.door }.get()
            return ControlHost(server, store, office, group, point, front, door)
        } catch {
            try? await group.shutdownGracefully()
            throw error
        }
    }

    /// The port on TCP, which the system may have chosen; nil without TCP.
    package var port: Int? { server.port }

    /// Has other webhooks from now on. Those that remain continue where they are.
    ///
    /// - Returns: False if there is no folder in which events wait for them.
    package func adopt(_ webhooks: [ControlWebhook]) async -> Bool {
        guard let office = self.webhooks else { return webhooks.isEmpty }
        await office.adopt(webhooks)
        return true
    }

    /// What it has counted.
    package func figures() async -> ControlFigures {
        let front = front
        let dropped = try? await group.next().submit { front.value.dropped }.get()
        return ControlFigures(
            droppedClients: dropped, failedWrites: store.failedWrites, webhooks: webhooks?.figures ?? [])
    }

    /// Accepts no more clients. Those that there are still receive events.
    package func stopAccepting() async { await server.stopAccepting() }

    /// Looks at what carries out requests, on the event loop; nil when the thread has ended.
    package func look<Value: Sendable>(_ body: @escaping @Sendable (Point) -> Value) async -> Value? {
        let point = point
        return try? await group.next().submit { body(point.value) }.get()
    }

    /// Disconnects all clients, stops webhooks, completes the history on disk, and ends the thread.
    package func close() async {
        await server.stopAccepting()
        await webhooks?.stop()
        await server.disconnectAll()
        await store.close()
        door.close()
        try? await group.shutdownGracefully()
    }
}
