package import ControlWire
internal import HTTPTransport
package import Logging
internal import NIOCore
internal import NIOPosix

/// The control interface of a process over HTTP: its server, its history of events, and the thread that has both.
package final class ControlHost<Point: ControlPoint>: Sendable {
    private let server: ControlHTTPServer
    private let group: MultiThreadedEventLoopGroup
    private let point: NIOLoopBound<Point>
    private let door: LoopDoor
    /// The history of the process's events.
    package let store: EventStore
    private init(
        _ server: ControlHTTPServer, _ store: EventStore, _ group: MultiThreadedEventLoopGroup,
        _ point: NIOLoopBound<Point>, _ door: LoopDoor
    ) {
        (self.server, self.store, self.group, self.point, self.door) = (server, store, group, point, door)
    }

    /// Accepts clients from now on.
    ///
    /// - Parameters:
    ///   - levels: What a meter shows now; nil if the process has none.
    ///   - make: Makes what carries out requests, on the event loop.
    /// - Throws: An error that says which address or file cannot be used, and what to try.
    package static func start(
        _ socket: ControlSocket, _ network: ControlNetwork?, historyFolder: String?, logger: Logger,
        levels: (@Sendable () async -> ControlLevels?)? = nil,
        _ make: @escaping @Sendable (ControlFront, EventStore) -> Point
    ) async throws -> ControlHost {
        let tls = try ControlHTTPServer.tls(of: network)
        let store = await EventStore.open(folder: historyFolder, logger: logger)
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let loop = group.next()
        do {
            let (point, served, door) = try await loop.submit {
                let streams = EventStreams(store, on: loop, logger: logger, levels: levels)
                let front = ControlFront(store, streams, on: loop)
                let point = make(front, store)
                streams.start()
                return (
                    NIOLoopBound(point, eventLoop: loop), NIOLoopBound<any ControlPoint>(point, eventLoop: loop),
                    front.door
                )
            }.get()
            let server = try await ControlHTTPServer.start(
                socket, network, tls: tls, served, on: loop, logger: logger)
            return ControlHost(server, store, group, point, door)
        } catch {
            try? await group.shutdownGracefully()
            throw error
        }
    }

    /// The port on TCP, which the system may have chosen; nil without TCP.
    package var port: Int? { server.port }

    /// Accepts no more clients. Those that there are still receive events.
    package func stopAccepting() async { await server.stopAccepting() }

    /// Looks at what carries out requests, on the event loop; nil when the thread has ended.
    package func look<Value: Sendable>(_ body: @escaping @Sendable (Point) -> Value) async -> Value? {
        let point = point
        return try? await group.next().submit { body(point.value) }.get()
    }

    /// Disconnects all clients, completes the history on disk, and ends the thread.
    package func close() async {
        await server.stopAccepting()
        await server.disconnectAll()
        await store.close()
        door.close()
        try? await group.shutdownGracefully()
    }
}
