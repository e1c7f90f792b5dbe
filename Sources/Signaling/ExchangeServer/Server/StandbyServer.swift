import Core
import ExchangeCore
import HTTPTransport
import Logging
import NIOCore
import NIOHTTP1
import SignalWire
import Synchronization
import TLS

/// Listens in the place of an exchange that waits for its database, and refuses all requests, so that a client asks the next server at
/// once, and a balancer sees that this one does not serve.
final class StandbyServer: Sendable {
    /// Bytes of requests that are not complete, in all.
    private static let requestMemory = 1 << 20

    private let configuration: ExchangeConfiguration
    private let address: NIOCore.SocketAddress
    private let tls: TLSContext?
    private let loop: any EventLoop
    private let service: NIOLoopBoundBox<StandbyService>
    private let channel = Mutex<(any Channel)?>(nil)

    init(
        _ configuration: ExchangeConfiguration, at address: NIOCore.SocketAddress, _ certificate: PreparedCertificate,
        on loop: any EventLoop, logger: Logger
    ) {
        self.configuration = configuration
        self.address = address
        self.loop = loop
        tls = certificate.identity?.context
        service = NIOLoopBoundBox.makeBoxSendingValue(
            StandbyService(
                connections: configuration.connectionBounds(isEncrypted: tls != nil).total, logger: logger),
            eventLoop: loop)
    }

    /// Refuses requests from now on, naming the exchange that owns the database.
    ///
    /// - Throws: ``ExchangeError`` if it cannot listen.
    func stand(by owner: PostgresStore.Owner) async throws(ExchangeError) {
        do {
            let listener = try await loop.submit { [service, tls, loop] in
                service.value.owner = owner
                let listener = HTTPListener(
                    service.value, tls: tls, budget: InboundBudget(limit: Self.requestMemory),
                    bounds: StrangerBounds(bodyBytes: 1, messageBytes: 1), messageBytes: 1)
                return NIOLoopBound(listener, eventLoop: loop)
            }.get()
            guard channel.withLock({ $0 == nil }) else { return }
            let channel = try await HTTPListener.listen(at: address, with: listener, on: loop)
            self.channel.withLock { $0 = channel }
        } catch {
            throw ExchangeError(configuration.listenAddress.explain(error))
        }
    }

    /// Leaves the address, with all connections, to the exchange.
    func stop() async {
        guard let channel = channel.withLock({ $0.take() }) else { return }
        try? await channel.close()
        try? await loop.submit { [service] in service.value.connections.closeAll() }.get()
    }
}

/// Refuses requests. On its server's event loop.
private final class StandbyService: PlainService {
    let connections: OpenChannels
    /// The exchange that owns the database.
    var owner = PostgresStore.Owner(name: "another exchange")
    let acceptLog: AcceptLog

    init(connections: Int, logger: Logger) {
        self.connections = OpenChannels(most: connections)
        acceptLog = AcceptLog(logger, for: "the standby")
    }

    func accept(_ channel: any Channel) throws -> any ConnectionService {
        connections.track(channel)
        return self
    }

    func answer(_ request: HTTPRequest, on channel: any Channel, then reply: @escaping (HTTPAnswer) -> Void) {
        reply(standby(request.number))
    }

    /// A login has a body, which is not read.
    func refusal(
        _ refusal: InboundMeter.Refusal, limit: Int, of head: HTTPRequestHead, _ request: HTTPRequest.Number
    ) -> HTTPAnswer {
        standby(request)
    }

    private func standby(_ request: HTTPRequest.Number) -> HTTPAnswer {
        let trace = TraceID(request.value)
        return .failure(
            .standby, "This exchange is a standby: \(owner.name) owns the database.", trace: trace, owner: owner.url)
    }
}
