import ControlPlane
import HTTPTransport
import Logging
import NIOCore
import NIOPosix
import Realtime

/// The control interface of a running exchange, with a thread of its own.
final class ExchangeControlServer: Sendable {
    private let server: ControlHTTPServer
    private let store: EventStore
    private let feed: ExchangeFeed
    /// The way to the group's event loop.
    private let door: LoopDoor
    private let group: MultiThreadedEventLoopGroup

    private init(
        _ server: ControlHTTPServer, _ store: EventStore, _ feed: ExchangeFeed, _ door: LoopDoor,
        _ group: MultiThreadedEventLoopGroup
    ) {
        (self.server, self.store, self.feed, self.door, self.group) = (server, store, feed, door, group)
    }

    /// Accepts clients from now on, and notes what happens in the exchange.
    ///
    /// - Throws: ``ExchangeError`` that says which socket or address cannot be used, and what to try.
    static func start(
        _ configuration: ExchangeControlConfiguration, of hub: NIOLoopBound<ExchangeHub>,
        on exchangeLoop: any EventLoop,
        _ facts: ExchangeControl.Facts, logger: Logger
    ) async throws(ExchangeError) -> ExchangeControlServer {
        let socket = try listen(configuration)
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        do {
            return try await start(configuration, socket, of: hub, on: exchangeLoop, facts, group, logger)
        } catch {
            try? await group.shutdownGracefully()
            throw (error as? ListenError).map { ExchangeError($0) }
                ?? ExchangeError(.addressNotUsable, "control: \(error)")
        }
    }

    private static func listen(
        _ configuration: ExchangeControlConfiguration
    ) throws(ExchangeError) -> ControlSocket {
        do throws(ControlSocketError) {
            return try ControlSocket(path: configuration.path, access: configuration.access)
        } catch {
            var error = error
            error.owner = .exchange
            throw ExchangeError(error.code == .inUse ? .portInUse : .controlNotUsable, error.description)
        }
    }

    private static func start(
        _ configuration: ExchangeControlConfiguration, _ socket: ControlSocket, of hub: NIOLoopBound<ExchangeHub>,
        on exchangeLoop: any EventLoop, _ facts: ExchangeControl.Facts, _ group: MultiThreadedEventLoopGroup,
        _ logger: Logger
    ) async throws -> ExchangeControlServer {
        let tls = try ControlHTTPServer.tls(of: configuration.network)
        let store = await EventStore.open(folder: configuration.historyFolder, logger: logger)
        let loop = group.next()
        let door = LoopDoor(to: loop)
        let feed = ExchangeFeed(store, through: door)
        let point = try await loop.submit {
            let streams = EventStreams(store, on: loop, logger: logger)
            let control = ExchangeControl(hub, on: exchangeLoop, facts, store, streams, feed, loop: loop, door: door)
            streams.start()
            return NIOLoopBound<any ControlPoint>(control, eventLoop: loop)
        }.get()
        let server = try await ControlHTTPServer.start(
            socket, configuration.network, tls: tls, point, on: loop, logger: logger)
        try await exchangeLoop.submit { hub.value.observer = { feed.add($0) } }.get()
        return ExchangeControlServer(server, store, feed, door, group)
    }

    /// The port on TCP; nil without TCP.
    var port: Int? { server.port }

    /// Accepts no more clients. Those that there are still receive events.
    func stopAccepting() async { await server.stopAccepting() }

    /// Disconnects all clients, and completes the history on disk.
    func close() async {
        let feed = feed
        try? await group.next().submit { feed.drain() }.get()
        await server.disconnectAll()
        await store.close()
        door.close()
        try? await group.shutdownGracefully()
    }
}
