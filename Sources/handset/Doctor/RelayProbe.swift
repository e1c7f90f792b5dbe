internal import CallControl
internal import Core
internal import DeviceDiagnosis
internal import HTTPTransport
internal import ICE
internal import NIOCore
internal import NIOPosix
internal import NIOTLS
internal import Realtime
internal import TLS

/// Asks TURN servers for a relayed address, with the login that a call would have, and gives it back at once.
struct RelayProbe: Sendable {
    /// A server to ask.
    struct Server: Sendable {
        let url: String
        let location: ICEServerURL
        let address: Core.SocketAddress
        /// Secrets.
        let username, password: String
        /// Whether the configuration names it, rather than the service.
        let isConfigured: Bool
    }

    let trust: TLSTrust

    /// The servers that can be asked, and why the others are not.
    ///
    /// - Parameters:
    ///   - count: How many servers of the list the configuration names; the service names those behind them.
    ///   - names: The addresses of their names.
    static func servers(
        of list: [CallControl.ICEServer], configured count: Int, _ names: NameSurvey.Answers
    ) -> (asked: [Server], others: [RelayFacts]) {
        var (asked, others): ([Server], [RelayFacts]) = ([], [])
        for (index, server) in list.enumerated() {
            for url in server.urls {
                guard let location = ICEServerURL(url), location.scheme.isRelay else { continue }
                let isConfigured = index < count
                let addresses = names[location.host]?.addresses ?? []
                guard let address = addresses.first(where: { !$0.isIPv6 }) ?? addresses.first else {
                    others.append(
                        RelayFacts(url, isConfigured, .notTried("not asked, because its address is not known")))
                    continue
                }
                guard let username = server.username, let password = server.credential else {
                    others.append(RelayFacts(url, isConfigured, .notTried("not asked, because it has no login here")))
                    continue
                }
                asked.append(
                    Server(
                        url: url, location: location, address: address.withPort(location.port), username: username,
                        password: password, isConfigured: isConfigured))
            }
        }
        return (asked, others)
    }

    /// Asks them all at a time.
    func ask(_ servers: [Server]) async -> [RelayFacts] {
        await withTaskGroup(of: (Int, RelayFacts).self) { group in
            for (index, server) in servers.enumerated() {
                group.addTask { (index, RelayFacts(server.url, server.isConfigured, await ask(server))) }
            }
            var facts: [Int: RelayFacts] = [:]
            for await (index, fact) in group { facts[index] = fact }
            return servers.indices.compactMap { facts[$0] }
        }
    }

    private func ask(_ server: Server) async -> RelayFacts.Result {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let promise = loop.makePromise(of: RelayFacts.Result.self)
        let deadline = loop.scheduleTask(in: .seconds(Int64(DoctorBounds.relay))) {
            promise.succeed(.silent(seconds: DoctorBounds.relay))
        }
        let result: RelayFacts.Result
        do {
            let target = try NIOCore.SocketAddress(ipAddress: server.address.host, port: Int(server.address.port))
            let connecting = connect(to: target, server, on: loop, promise)
            connecting.cascadeFailure(to: promise)
            promise.futureResult.whenComplete { _ in connecting.whenSuccess { $0.close(promise: nil) } }
            result = try await promise.futureResult.get()
        } catch HTTPFetch.Failure.tooLate, ChannelError.connectTimeout {
            result = .silent(seconds: DoctorBounds.relay)
        } catch {
            result = .unreachable(Self.words(error, server.location))
            promise.succeed(result)
        }
        deadline.cancel()
        return result
    }

    private static func words(_ error: any Error, _ location: ICEServerURL) -> String {
        let host = location.host.contains(":") ? "[\(location.host)]" : location.host
        let scheme = location.scheme.isSecure ? "https" : "http"
        guard let endpoint = try? HTTPEndpoint("\(scheme)://\(host):\(location.port)") else { return "\(error)" }
        return TransportFailure(error, to: endpoint).cause
    }

    private func connect(
        to target: NIOCore.SocketAddress, _ server: Server, on loop: any EventLoop,
        _ promise: EventLoopPromise<RelayFacts.Result>
    ) -> EventLoopFuture<any Channel> {
        let trust = trust
        let isStream = server.location.transport != .udp
        guard isStream else {
            return DatagramBootstrap(group: loop)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        let pipeline = channel.pipeline.syncOperations
                        try pipeline.addHandler(DatagramBytes())
                        try pipeline.addHandler(RelayTrial(server, promise))
                    }
                }
                .connect(to: target)
        }
        return ClientBootstrap(group: loop)
            .connectTimeout(.seconds(Int64(DoctorBounds.relay)))
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    if server.location.scheme.isSecure {
                        try pipeline.addTLS(to: server.location.host, trusting: trust)
                    }
                    try pipeline.addHandler(RelayTrial(server, promise))
                }
            }
            .connect(to: target)
    }
}

/// Drives one TURN client over one channel: an allocation, and its end.
private final class RelayTrial: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private var client: TURNClient
    private let awaitsTLS: Bool
    private let promise: EventLoopPromise<RelayFacts.Result>
    private var timer: DeadlineTimer?
    private var relay: Core.SocketAddress?

    init(_ server: RelayProbe.Server, _ promise: EventLoopPromise<RelayFacts.Result>) {
        client = TURNClient(
            username: server.username, password: server.password, isStream: server.location.transport != .udp,
            generator: SystemRandomNumberGenerator())
        awaitsTLS = server.location.scheme.isSecure
        self.promise = promise
    }

    func handlerAdded(context: ChannelHandlerContext) { timer = DeadlineTimer(on: context.eventLoop) }

    func handlerRemoved(context: ChannelHandlerContext) { timer?.cancel() }

    func channelActive(context: ChannelHandlerContext) { if !awaitsTLS { handle(.opened, context) } }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if awaitsTLS, case .handshakeCompleted? = event as? TLSUserEvent { handle(.opened, context) }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        handle(.bytes(Array(unwrapInboundIn(data).readableBytesView)), context)
    }

    func channelInactive(context: ChannelHandlerContext) { promise.fail(HTTPFetch.Failure.closed) }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        promise.fail(error)
        context.close(promise: nil)
    }

    private func handle(_ input: TURNInput, _ context: ChannelHandlerContext) {
        var outputs: [TURNOutput] = []
        client.handle(input, at: MonotonicClock.now, into: &outputs)
        for output in outputs { carryOut(output, context) }
        context.flush()
        timer?.set(client.nextDeadline) { [weak self] in self?.handle(.timerFired, context) }
    }

    private func carryOut(_ output: TURNOutput, _ context: ChannelHandlerContext) {
        switch output {
        case .transmit(let bytes): context.write(wrapOutboundOut(ByteBuffer(bytes: bytes)), promise: nil)
        case .allocated(let relay):
            // A server may give one address of each family.
            guard self.relay == nil else { return }
            self.relay = relay
            handle(.end, context)
        case .redirected(let other): promise.succeed(.redirected(to: other))
        case .failed(let failure): promise.succeed(Self.result(failure))
        case .ended: promise.succeed(relay.map { .relayed($0) } ?? .refused("it gives no address"))
        case .permitted, .refused, .channelBound, .received: break
        }
    }
}

extension RelayTrial {
    private static func result(_ failure: TURNFailure) -> RelayFacts.Result {
        let answer = failure.code.map { "it answers \($0) \(failure.serverText.debugDescription)" }
        return switch failure.reason {
        case .timeout: .silent(seconds: DoctorBounds.relay)
        case .unauthorized: .unauthorized(answer ?? "it asks for the login again")
        case .notTURN: .refused("its answer is not TURN")
        case .connectionInUse, .allocationLost, .refused, .redirectedTooOften: .refused(answer ?? failure.description)
        }
    }
}

/// Datagrams of a connected socket as plain bytes.
private final class DatagramBytes: ChannelDuplexHandler {
    typealias InboundIn = AddressedEnvelope<ByteBuffer>
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = AddressedEnvelope<ByteBuffer>

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        context.fireChannelRead(wrapInboundOut(unwrapInboundIn(data).data))
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard let address = context.remoteAddress else {
            promise?.fail(ChannelError.unknownLocalAddress)
            return
        }
        let envelope = AddressedEnvelope(remoteAddress: address, data: unwrapOutboundIn(data))
        context.write(wrapOutboundOut(envelope), promise: promise)
    }
}
