internal import Realtime
internal import HTTPTransport
internal import NIOCore
internal import NIOPosix
internal import NIOTLS
internal import Core
internal import SIP
internal import SIPSignaling
internal import ICE
internal import TLS

/// This program's type of an address; NIO has one of its own.
typealias PeerAddress = Core.SocketAddress

/// Receives the events of an account's sockets.
protocol SIPEdgeOwner: AnyObject {
    /// A flow is established.
    func opened(_ flow: SIPFlow)
    /// The flow of that number could not be opened, or has ended.
    func failed(_ number: Int, _ reason: FlowFailure)
    func received(_ message: SIPMessage, _ flow: SIPFlow)
    func ponged(_ number: Int)
    /// The server said from where our datagrams come.
    func mapped(_ number: Int, _ address: PeerAddress)
    /// A response with that status came to the flow of that number from its server's host, but from another port, and was dropped.
    func misplaced(_ status: Int, from peer: PeerAddress, by number: Int)
    /// A message of the server cannot be read, and was dropped, or answered if it was a request.
    func unreadable(_ fault: SIPParseError, from peer: PeerAddress)
    /// Whether a message that did not come from the server is looked at. The flow has the peer's address, and no number yet.
    func admits(_ message: SIPMessage, by flow: SIPFlow) -> Bool
    /// Whether messages from that address may be of a call.
    func expects(_ host: SIPHost) -> Bool
    /// Whether a call goes by the flow of that number.
    func isInUse(_ number: Int) -> Bool
}

/// The sockets of an account: a UDP socket with a flow for each peer, connections and WebSockets with one each. It frames, parses and stamps
/// what comes, and knows no rule of SIP beyond that. Everything happens on one event loop.
///
/// Capacity: flows of peers other than the server as ``PeerFlows`` says, whose datagrams are read as ``DatagramGate`` says;
/// ``mostUnsentBytes`` that a connection's peer does not read, after which the flow is dead, or that a socket does not take, after which
/// datagrams are lost; pings of a peer are answered ``pongLimit`` times a second, and not beyond.
final class SIPEdge {
    private enum Way {
        case opening((any Channel)?)
        case stream(any Channel, SIPFlow)
        case webSocket(WebSocket, SIPFlow?, peer: PeerAddress)
        case datagrams(any Channel, SIPFlow, peer: PeerAddress)
        /// A UDP socket that the account has given up, and that calls with other peers still go by.
        case retired(any Channel, SIPFlow)
    }

    /// How often is looked whether a retired socket carries a call.
    private static let retiredFor = TimeAmount.seconds(30)

    /// Some hundred messages. A server that leaves this much unread has failed.
    private static let mostUnsentBytes = 256 * 1_024

    private let loop: any EventLoop
    private let trust: TLSTrust
    private let server: SIPServiceConfiguration.Server
    private let localPort: UInt16
    private weak var owner: (any SIPEdgeOwner)?
    private var ways: [Int: Way] = [:]
    private var strangers = PeerFlows()
    private var servers: [PeerAddress] = []
    /// The binding request that was sent last by each flow (RFC 5626 §3.5.2); answers to others are not believed.
    private var bindings: [Int: ICE.TransactionID] = [:]
    private var gate: DatagramGate
    private var pongLimit = LogLimit(burst: 10, perSecond: 2)
    /// Datagrams that were dropped unread.
    private(set) var droppedDatagrams = 0
    /// Those of them that were responses from the server's host, but from another port than requests go to.
    private(set) var misplacedResponses = 0
    /// Messages by flows that are gone.
    private(set) var unsentMessages = 0

    init(
        on loop: any EventLoop, trust: TLSTrust, server: SIPServiceConfiguration.Server, localPort: UInt16,
        acceptsStrangers: Bool = false
    ) {
        self.loop = loop
        gate = DatagramGate(acceptsStrangers: acceptsStrangers)
        self.trust = trust
        self.server = server
        self.localPort = localPort
    }

    func attach(to owner: any SIPEdgeOwner) { self.owner = owner }

    /// Why the certificate that we show is not the one in its files.
    var certificateFault: CertificateFault? { trust.fault }

    /// What comes from these hosts comes from the server.
    func trust(_ targets: [SIPTarget]) { servers = targets.map(\.address) }

    // MARK: Flows

    func open(_ number: Int, _ target: SIPTarget) {
        ways[number] = .opening(nil)
        switch target.transport {
        case .udp: bind(number, target.address)
        case .tcp, .tls: connect(number, target)
        case .ws, .wss: upgrade(number, target)
        }
    }

    func close(_ number: Int) {
        bindings[number] = nil
        switch ways.removeValue(forKey: number) {
        case .opening(let channel?)?, .stream(let channel, _)?: channel.close(promise: nil)
        case .datagrams(let channel, let flow, _)?:
            if number > 0 { retire(number, channel, flow) } else { strangers.forget { $0 == number } }
        case .retired(let channel, _)?: channel.close(promise: nil)
        case .webSocket(let socket, nil, _)?: socket.abandon()
        case .webSocket(let socket, .some, _)?: socket.close(1_000)
        case .opening(nil)?, nil: break
        }
    }

    private func fail(_ number: Int, _ reason: String) { fail(number, FlowFailure(reason)) }

    private func fail(_ number: Int, _ reason: FlowFailure) {
        guard ways[number] != nil else { return }
        close(number)
        owner?.failed(number, reason)
    }

    private func bind(_ number: Int, _ server: PeerAddress) {
        guard let source = server.localSource(), let host = SIPHost(source.host),
            let address = try? NIOCore.SocketAddress(ipAddress: source.host, port: Int(localPort))
        else { return later(number, "there is no route to \(server.host)") }
        let bound = NIOLoopBound(self, eventLoop: loop)
        DatagramBootstrap(group: loop)
            .channelOption(.socketOption(.so_reuseaddr), value: 1)
            // Datagrams of SIP may be as large as there are any.
            .channelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 65_536))
            .channelOption(
                .writeBufferWaterMark,
                value: .init(low: Self.mostUnsentBytes / 2, high: Self.mostUnsentBytes)
            )
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(DatagramHandler(bound.value, number))
                }
            }
            .bind(to: address)
            .assumeIsolated()
            .whenComplete { [self] result in
                switch result {
                case .success(let channel):
                    guard case .opening? = ways[number] else { return channel.close(promise: nil) }
                    let port = channel.localAddress?.port.flatMap { UInt16(exactly: $0) }
                    let flow = SIPFlow(
                        id: number, transport: .udp, localHost: host, localPort: port,
                        remoteHost: SIPHost(server.host))
                    ways[number] = .datagrams(channel, flow, peer: server)
                    owner?.opened(flow)
                case .failure(let error): fail(number, "the socket cannot be opened: \(error)")
                }
            }
    }

    private func connect(_ number: Int, _ target: SIPTarget) {
        guard let address = try? NIOCore.SocketAddress(ipAddress: target.address.host, port: Int(target.address.port))
        else { return later(number, "\(target.address) is not an address") }
        let bound = NIOLoopBound(self, eventLoop: loop)
        let serverName = server.host
        ClientBootstrap(group: loop)
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .channelOption(
                .writeBufferWaterMark,
                value: .init(low: Self.mostUnsentBytes / 2, high: Self.mostUnsentBytes)
            )
            .connectTimeout(.seconds(10))
            .channelInitializer { [trust] channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    if target.transport == .tls {
                        let check = TLSSession.Check.judged { chain in
                            chain.first.map { ServerIdentity($0, of: serverName).isServer } ?? false
                        }
                        try pipeline.addTLS(to: serverName, trusting: trust, check: check)
                    }
                    try pipeline.addHandler(StreamHandler(bound.value, number, target))
                }
            }
            .connect(to: address)
            .assumeIsolated()
            .whenComplete { [self] result in
                switch result {
                case .success(let channel):
                    guard case .opening? = ways[number] else {
                        if ways[number] == nil { channel.close(promise: nil) }
                        return
                    }
                    ways[number] = .opening(channel)
                case .failure(let error): fail(number, Self.failure(error, target.address))
                }
            }
    }

    /// Opens a WebSocket (RFC 7118). TLS and HTTP use the server's name, regardless of its address.
    private func upgrade(_ number: Int, _ target: SIPTarget) {
        let host = server.host.contains(":") ? "[\(server.host)]" : server.host
        let scheme = target.transport == .wss ? "wss" : "ws"
        guard let endpoint = try? HTTPEndpoint("\(scheme)://\(host):\(target.address.port)\(server.path)"),
            let address = try? NIOCore.SocketAddress(ipAddress: target.address.host, port: Int(target.address.port))
        else { return later(number, "\(target) is not an address of a WebSocket") }
        let socket = WebSocket(Self.socketSettings) { [weak self] event in
            self?.receive(event, number, target, endpoint)
        }
        ways[number] = .webSocket(socket, nil, peer: target.address)
        let destination = WebSocket.Destination(
            endpoint, subprotocols: ["sip"], trust: trust, openingTime: .seconds(10), address: address)
        let bound = NIOLoopBound(self, eventLoop: loop)
        WebSocket.connect(socket, to: destination, on: loop).assumeIsolated().whenComplete { result in
            switch result {
            case .success("sip"?): break
            case .success: bound.value.fail(number, "\(endpoint.authority) does not speak SIP over its WebSocket")
            case .failure(let error):
                let failure = TransportFailure(error, to: endpoint)
                bound.value.fail(number, FlowFailure(failure.cause, isUntrusted: failure.isUntrusted))
            }
        }
    }

    private func receive(_ event: WebSocket.Event, _ number: Int, _ target: SIPTarget, _ endpoint: HTTPEndpoint) {
        switch event {
        case .opened(let socket):
            guard case .webSocket(_, nil, let peer)? = ways[number],
                let local = socket.localAddress.flatMap(PeerAddress.init), let host = SIPHost(local.host)
            else { return socket.abandon() }
            let flow = SIPFlow(
                id: number, transport: target.transport, localHost: host, localPort: local.port,
                remoteHost: SIPHost(target.address.host))
            ways[number] = .webSocket(socket, flow, peer: peer)
            owner?.opened(flow)
        case .text(let bytes), .binary(let bytes): receivedFrame(bytes, by: number)
        case .pong: owner?.ponged(number)
        case .closed: fail(number, "the server closed the WebSocket")
        case .failed(let error): fail(number, FlowFailure(TransportFailure(error, to: endpoint).cause))
        case .lifeSign, .silent, .refused, .fault: break
        }
    }

    /// A message of a WebSocket is one of SIP, or line ends (RFC 7118 §5, §6).
    private func receivedFrame(_ bytes: [UInt8], by number: Int) {
        guard case .webSocket(_, let flow?, let peer)? = ways[number] else { return }
        if bytes.count <= 4, bytes.allSatisfy({ $0 == 13 || $0 == 10 }) { return }
        do throws(SIPParseError) {
            owner?.received(stamped(try SIPMessage(parsing: bytes), peer), flow)
        } catch {
            owner?.unreadable(error, from: peer)
            if let answer = error.answer { transmit(.response(answer), flow) }
        }
    }

    /// A message has the size that a datagram could have.
    private static let socketSettings = WebSocket.Settings(
        .client, messageBytes: SIPLimits.messageBytes, closingTime: .seconds(1), outboundBytes: 1 << 20)

    /// Fails a flow after the call that opens it has returned.
    private func later(_ number: Int, _ reason: String) {
        let bound = NIOLoopBound(self, eventLoop: loop)
        loop.execute { bound.value.fail(number, reason) }
    }

    fileprivate static func failure(_ error: any Error, _ address: PeerAddress) -> FlowFailure {
        guard let endpoint = try? HTTPEndpoint("https://\(address)") else { return FlowFailure("\(error)") }
        let failure = TransportFailure(error, to: endpoint)
        return FlowFailure(failure.cause, isUntrusted: failure.isUntrusted)
    }

    // MARK: Sending

    /// - Returns: Whether there is such a flow. Its loss is reported, but a message by it may have nothing that waits for it, such as
    ///   a response; it is counted.
    @discardableResult
    func transmit(_ message: SIPMessage, _ flow: SIPFlow) -> Bool {
        let isOpen = isOpen(flow.id)
        if !isOpen { unsentMessages += 1 }
        send(message.bytes, by: flow.id)
        return isOpen
    }

    private func isOpen(_ number: Int) -> Bool {
        switch ways[number] {
        case .stream?, .webSocket(_, .some, _)?, .datagrams?: true
        case .opening?, .webSocket(_, nil, _)?, .retired?, nil: false
        }
    }

    /// Keeps a NAT's mapping and a connection (RFC 5626 §3.5).
    func ping(_ flow: SIPFlow, _ keepalive: LinkMachine.Keepalive) {
        switch keepalive {
        case .lineEnds: send([13, 10, 13, 10], by: flow.id)
        case .binding:
            var generator = SystemRandomNumberGenerator()
            let id = bindings[flow.id] ?? ICE.TransactionID(using: &generator)
            bindings[flow.id] = id
            send(STUNBuilder(.request, .binding, id).finish(), by: flow.id)
        case .webSocketPing:
            if case .webSocket(let socket, .some, _)? = ways[flow.id] { socket.ping() }
        }
    }

    /// The address from which packets to the server of that flow would leave now; nil if there is no route.
    func source(to target: SIPTarget) -> SIPHost? { target.address.localSource().flatMap { SIPHost($0.host) } }

    private func send(_ bytes: [UInt8], by number: Int) {
        switch ways[number] {
        case .stream(let channel, _)?:
            // If the peer reads nothing, messages would accumulate here.
            guard channel.isWritable else { return later(number, "the peer takes nothing more") }
            channel.writeAndFlush(ByteBuffer(bytes: bytes), promise: nil)
        case .webSocket(let socket, .some, _)?: socket.send(bytes)
        case .datagrams(let channel, _, let peer)?:
            guard let address = try? NIOCore.SocketAddress(ipAddress: peer.host, port: Int(peer.port)) else { return }
            // What the socket does not take is lost, as datagrams may be, rather than kept.
            guard channel.isWritable else { return }
            let envelope = AddressedEnvelope(remoteAddress: address, data: ByteBuffer(bytes: bytes))
            let written = channel.eventLoop.makePromise(of: Void.self)
            channel.writeAndFlush(envelope, promise: written)
            guard number > 0 else { return }
            let bound = NIOLoopBound(self, eventLoop: loop)
            written.futureResult.whenFailure { error in
                bound.value.fail(number, "a datagram cannot be sent: \(error)")
            }
        // Reports to the sender that the flow has ended, if it was not reported before.
        case .opening?, .webSocket(_, nil, _)?, .retired?, nil: later(number, "the flow has ended")
        }
    }

    // MARK: Receiving

    fileprivate func streamOpened(_ number: Int, _ target: SIPTarget, _ channel: any Channel) {
        guard case .opening? = ways[number], let host = channel.localAddress?.ipAddress.flatMap({ SIPHost($0) }) else {
            return channel.close(promise: nil)
        }
        let port = channel.localAddress?.port.flatMap { UInt16(exactly: $0) }
        let flow = SIPFlow(
            id: number, transport: target.transport, localHost: host, localPort: port,
            remoteHost: SIPHost(target.address.host))
        ways[number] = .stream(channel, flow)
        owner?.opened(flow)
    }

    fileprivate func streamEnded(_ number: Int, _ reason: FlowFailure) { fail(number, reason) }

    fileprivate func received(_ element: SIPStreamFramer.Element, by number: Int) {
        guard case .stream(let channel, let flow)? = ways[number] else { return }
        switch element {
        case .ping:
            let now = Instant(nanoseconds: Int64(clamping: NIODeadline.now().uptimeNanoseconds))
            if pongLimit.admit(at: now) != nil { send([13, 10], by: number) }
        case .pong: owner?.ponged(number)
        case .message(let bytes):
            guard let peer = channel.remoteAddress.flatMap(PeerAddress.init) else { return }
            do throws(SIPParseError) {
                owner?.received(stamped(try SIPMessage(parsing: bytes), peer), flow)
            } catch {
                owner?.unreadable(error, from: peer)
                if let answer = error.answer { transmit(.response(answer), flow) }
            }
        }
    }

    /// The stream cannot be followed any more.
    fileprivate func malformed(_ error: SIPParseError, by number: Int) {
        guard case .stream(_, let flow)? = ways[number] else { return }
        if let answer = error.answer { transmit(.response(answer), flow) }
        later(number, "\(error)")
    }

    fileprivate func receivedDatagram(_ bytes: [UInt8], from peer: PeerAddress, by number: Int, at now: Instant) {
        let (channel, flow): (any Channel, SIPFlow)
        var server: PeerAddress?
        switch ways[number] {
        case .datagrams(let current, let known, let peer)?: (channel, flow, server) = (current, known, peer)
        case .retired(let former, let known)?: (channel, flow) = (former, known)
        case .opening?, .stream?, .webSocket?, nil: return
        }
        let isFromServer = server.map { peer.isSame(as: $0) } ?? false
        if bytes.first == 13 || bytes.first == 10, bytes.count <= 4 {
            if isFromServer { owner?.ponged(number) }
            return
        }
        if let first = bytes.first, first < 4 {
            if isFromServer { receivedSTUN(bytes, by: number) }
            return
        }
        let isServer = servers.contains { $0.hasSameHost(as: peer) }
        if !isServer {
            let isOfCall = SIPHost(peer.host).map { owner?.expects($0) == true } ?? false
            guard gate.admits(bytes, from: peer, isOfCall: isOfCall, at: now) else {
                droppedDatagrams += 1
                return
            }
        }
        do throws(SIPParseError) {
            let message = try SIPMessage(parsing: bytes)
            guard isServer || owner?.admits(message, by: flow.ofStranger(0, at: peer)) == true else {
                droppedDatagrams += 1
                return
            }
            let isRequest = if case .request = message { true } else { false }
            let way = isFromServer ? flow : self.flow(to: peer, channel, like: flow, isRequest: isRequest)
            guard let way else {
                droppedDatagrams += 1
                if let server, server.hasSameHost(as: peer), case .response(let response) = message {
                    misplacedResponses += 1
                    owner?.misplaced(response.status, from: peer, by: number)
                }
                return
            }
            owner?.received(stamped(message, peer), way)
        } catch {
            droppedDatagrams += 1
            if isServer { owner?.unreadable(error, from: peer) }
            guard isServer, let answer = error.answer,
                let way = isFromServer ? flow : self.flow(to: peer, channel, like: flow, isRequest: true)
            else { return }
            transmit(.response(answer), way)
        }
    }

    /// The answer to a binding request; bits of SIP's messages never begin like one (RFC 5626 §8).
    private func receivedSTUN(_ bytes: [UInt8], by number: Int) {
        guard let answer = try? STUNMessage(parsing: bytes), answer.method == .binding,
            answer.messageClass == .success, answer.transactionID == bindings[number]
        else { return }
        bindings[number] = nil
        guard let address = answer.address(.xorMappedAddress) ?? answer.address(.mappedAddress) else {
            owner?.ponged(number)
            return
        }
        owner?.mapped(number, address)
    }

    /// Notes where a request came from (RFC 3581 §4).
    private func stamped(_ message: SIPMessage, _ peer: PeerAddress) -> SIPMessage {
        guard case .request(var request) = message, var via = request.headers.topVia else { return message }
        via.stamp(sourceHost: peer.host, sourcePort: peer.port)
        request.headers.setTopVia(via)
        return .request(request)
    }

    // MARK: Peers other than the server's target

    private func flow(to peer: PeerAddress, _ channel: any Channel, like flow: SIPFlow, isRequest: Bool) -> SIPFlow? {
        switch strangers.admit(peer, isRequest: isRequest, isInUse: { owner?.isInUse($0) ?? false }) {
        case .refused: return nil
        case .known(let number):
            guard case .datagrams(_, let known, _)? = ways[number] else { return nil }
            return known
        case .new(let number, let evicted):
            if let evicted { fail(evicted, "there are too many peers") }
            let stranger = flow.ofStranger(number, at: peer)
            ways[number] = .datagrams(channel, stranger, peer: peer)
            return stranger
        }
    }

    /// Closes a socket, but not before calls with other nodes of the server or with strangers that go by it have ended: they have
    /// nothing to do with the server's address that is given up.
    private func retire(_ number: Int, _ channel: any Channel, _ flow: SIPFlow) {
        forgetStrangers(of: channel)
        let isInUse = strangers.numbers.contains { stranger in
            if case .datagrams(let other, _, _)? = ways[stranger] { other === channel } else { false }
        }
        guard isInUse else { return channel.close(promise: nil) }
        ways[number] = .retired(channel, flow)
        let bound = NIOLoopBound(self, eventLoop: loop)
        loop.scheduleTask(in: Self.retiredFor) {
            let edge = bound.value
            guard case .retired? = edge.ways[number] else { return }
            edge.ways[number] = nil
            edge.retire(number, channel, flow)
        }
    }

    /// Forgets the peers of a socket that have no call.
    private func forgetStrangers(of channel: any Channel) {
        for number in strangers.numbers {
            guard case .datagrams(let other, _, _)? = ways[number], other === channel,
                !(owner?.isInUse(number) ?? false)
            else { continue }
            ways[number] = nil
            owner?.failed(number, FlowFailure("the socket is closed"))
        }
        let gone = Set(strangers.numbers.filter { ways[$0] == nil })
        strangers.forget { gone.contains($0) }
    }
}

extension SIPFlow {
    /// The flow by the same socket to another peer.
    fileprivate func ofStranger(_ number: Int, at peer: PeerAddress) -> SIPFlow {
        SIPFlow(
            id: number, transport: .udp, localHost: localHost, localPort: localPort, remoteHost: SIPHost(peer.host))
    }
}

extension Core.SocketAddress {
    /// Converts NIO's address.
    fileprivate init?(_ address: NIOCore.SocketAddress) {
        guard let host = address.ipAddress, let port = address.port.flatMap({ UInt16(exactly: $0) }) else { return nil }
        self.init(host: host, port: port)
    }
}

/// Gives the edge what a UDP socket receives.
private final class DatagramHandler: ChannelInboundHandler {
    typealias InboundIn = AddressedEnvelope<ByteBuffer>

    private let edge: SIPEdge
    private let number: Int

    init(_ edge: SIPEdge, _ number: Int) {
        self.edge = edge
        self.number = number
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let envelope = unwrapInboundIn(data)
        guard let peer = PeerAddress(envelope.remoteAddress) else { return }
        let now = Instant(nanoseconds: Int64(clamping: NIODeadline.now().uptimeNanoseconds))
        edge.receivedDatagram(Array(envelope.data.readableBytesView), from: peer, by: number, at: now)
    }

    /// For example an ICMP error of an earlier datagram; the transaction's timer handles its effect.
    func errorCaught(context: ChannelHandlerContext, error: any Error) {}
}

/// Cuts a connection's bytes into messages.
private final class StreamHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let edge: SIPEdge
    private let number: Int
    private let target: SIPTarget
    private var framer = SIPStreamFramer()
    private var reason = FlowFailure("the server closed the connection")

    init(_ edge: SIPEdge, _ number: Int, _ target: SIPTarget) {
        self.edge = edge
        self.number = number
        self.target = target
    }

    func channelActive(context: ChannelHandlerContext) {
        if target.transport != .tls { edge.streamOpened(number, target, context.channel) }
        context.fireChannelActive()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .handshakeCompleted? = event as? TLSUserEvent {
            edge.streamOpened(number, target, context.channel)
        }
        context.fireUserInboundEventTriggered(event)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var elements: [SIPStreamFramer.Element] = []
        do throws(SIPParseError) {
            try framer.take(Array(unwrapInboundIn(data).readableBytesView), into: &elements)
            for element in elements { edge.received(element, by: number) }
        } catch {
            for element in elements { edge.received(element, by: number) }
            edge.malformed(error, by: number)
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        edge.streamEnded(number, reason)
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        reason = SIPEdge.failure(error, target.address)
        context.close(promise: nil)
    }
}
