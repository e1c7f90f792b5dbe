public import Realtime
public import ICE
public import Core
public import SecureTransport

/// One call's connection to its peer: ICE finds and keeps a path, DTLS on top of it agrees on the media's keys.
///
/// A peer that has DTLS and no ICE (RFC 5763) is at the address in its description, or wherever its part of the
/// handshake comes from, because there may be a NAT in between. With ICE, DTLS is taken only from addresses at which an
/// authenticated check has shown the peer to be: an unencrypted record of a stranger would end the handshake.
///
/// It does no I/O and reads no clock. Generic over the handshake, so that tests run in virtual time.
public struct Connection<Handshake: DTLSHandshake & ~Copyable>: ProtocolCore, ~Copyable {
    /// The inputs.
    public enum Input: Sendable {
        /// An input of ICE; the driver passes STUN datagrams, and data from TURN servers.
        case ice(ICEInput)
        /// The peer has no ICE: its description has this address, reached through this socket. ICE ends here.
        case direct(DatagramPath)
        /// A datagram of DTLS arrived at a socket.
        case handshake([UInt8], from: DatagramPath)
        /// The fingerprints of the peer's certificates: no handshake is accepted before they are known.
        case expect([DTLSFingerprint])
        /// ``nextDeadline`` has come. Early calls are harmless.
        case timerFired
        /// The call has ended.
        case end
    }

    /// The outputs.
    public enum Output: Sendable {
        /// An output of ICE, except paths and data, which have their own cases below.
        case ice(ICEOutput)
        /// Media uses this path now; nil: there is no path any more.
        case path(ICEPath?)
        /// Send this datagram of DTLS to a peer without ICE.
        case transmit([UInt8], by: DatagramPath)
        /// Media goes this way, to a peer without ICE, and wherever its authenticated packets come from later.
        case direct(DatagramPath)
        /// Media is protected with these keys.
        case keys(send: SRTPKey, receive: SRTPKey)
        /// It failed, or has ended by itself. Emitted once.
        case failed(ConnectionFailure)
        /// The peer has closed the association.
        case closed
    }

    private var agent: ICEAgent
    private var handshake: Handshake?
    private var early = EarlyHandshakes()
    private var direct: DirectWay?
    private var hasStarted = false
    private var isOver = false
    /// Datagrams of DTLS from addresses at which the peer had not been shown to be when they came. They are used only if a check
    /// shows it later.
    public private(set) var datagramsUnverified = 0

    /// Makes a connection whose role in the handshake is settled later, by ``begin(_:at:into:)``; without one (keys come
    /// from the descriptions) it never is.
    public init(_ agent: ICEAgent) { self.agent = agent }

    /// The path's state, credentials and counters.
    public var ice: ICEAgent { agent }

    /// The earlier of the two protocols' deadlines.
    public var nextDeadline: Instant? {
        var earliest = agent.nextDeadline
        if let deadline = Self.deadline(of: handshake) { earliest = earliest.map { min($0, deadline) } ?? deadline }
        return earliest
    }

    /// Sets our side of the handshake; it starts once there is a path.
    public mutating func begin(_ handshake: consuming Handshake, at now: Instant, into outbox: inout [Output]) {
        guard !isOver else { return }
        self.handshake = consume handshake
        hasStarted = false
        startHandshake(at: now, into: &outbox)
    }

    /// Takes one input.
    public mutating func handle(_ input: Input, at now: Instant, into outbox: inout [Output]) {
        guard !isOver || input.isForTheEnd else { return }
        switch input {
        case .ice(let input):
            if case .anotherPeer = input {
                // What the one before sent is not the next one's, who may be at the same address.
                let before = agent
                _ = early.take { before.hasPeer(at: $0) }
            }
            tellAgent(input, at: now, into: &outbox)
            takeEarly(at: now, into: &outbox)
        case .direct(let promised):
            direct = DirectWay(promised, after: direct)
            tellAgent(.end, at: now, into: &outbox)
            startHandshake(at: now, into: &outbox)
        case .handshake(let datagram, let origin):
            receive(HandshakeDatagram(bytes: datagram, origin: .direct(origin)), at: now, into: &outbox)
        case .expect(let fingerprints): tellHandshake(.expect(fingerprints), at: now, into: &outbox)
        case .timerFired:
            tellAgent(.timerFired, at: now, into: &outbox)
            if let deadline = Self.deadline(of: handshake), deadline <= now {
                tellHandshake(.timerFired, at: now, into: &outbox)
            }
        case .end:
            guard !isOver else { return }
            tellHandshake(.close, at: now, into: &outbox)
            tellAgent(.end, at: now, into: &outbox)
            isOver = true
        }
    }

    private static func deadline(of handshake: borrowing Handshake?) -> Instant? {
        switch handshake {
        case .some(let handshake): handshake.nextDeadline
        case .none: nil
        }
    }

    private mutating func tellAgent(_ input: ICEInput, at now: Instant, into outbox: inout [Output]) {
        var steps: [ICEOutput] = []
        agent.handle(input, at: now, into: &steps)
        for step in steps {
            switch step {
            case .pathSelected(let path):
                outbox.append(.path(path))
                startHandshake(at: now, into: &outbox)
            case .pathLost: outbox.append(.path(nil))
            case .received(let data, let source, _):
                receivedThroughRelay(data, from: source, at: now, into: &outbox)
            case .stateChanged(.failed):
                outbox.append(.ice(step))
                outbox.append(
                    .failed(.init(.noPath, "no path to the peer works, or the peer has stopped answering (ICE)")))
            case .transmit, .openServer, .sendToServer, .serverFailed, .closeServer, .localCandidate,
                .gatheringComplete, .unresolvedName, .stateChanged:
                outbox.append(.ice(step))
            }
        }
    }

    /// Data through a relay before the media thread knows its channel: a handshake, or early media, which can wait.
    private mutating func receivedThroughRelay(
        _ data: [UInt8], from source: SocketAddress, at now: Instant, into outbox: inout [Output]
    ) {
        guard !isOver, let first = data.first, (20...63).contains(first) else { return }  // RFC 7983 §7
        receive(HandshakeDatagram(bytes: data, origin: .relayed(source)), at: now, into: &outbox)
    }

    private mutating func receive(_ datagram: HandshakeDatagram, at now: Instant, into outbox: inout [Output]) {
        if direct != nil, hasStarted {
            guard case .direct(let path) = datagram.origin, direct?.follow(path, datagram.bytes) == true else { return }
            tellHandshake(.received(datagram.bytes), at: now, into: &outbox)
            return
        }
        let isVerified = agent.hasPeer(at: datagram.source)
        if direct == nil, !isVerified { datagramsUnverified += 1 }
        guard hasStarted, isVerified else {
            let current = agent
            early.keep(datagram) { current.hasPeer(at: $0) }
            return
        }
        tellHandshake(.received(datagram.bytes), at: now, into: &outbox)
    }

    /// Uses what came early, once the handshake has begun and the source is known to be the peer's.
    private mutating func takeEarly(at now: Instant, into outbox: inout [Output]) {
        guard hasStarted, !isOver, !early.isEmpty else { return }
        let (current, isDirect) = (agent, direct != nil)
        let usable = early.take { isDirect || current.hasPeer(at: $0) }
        for datagram in usable { receive(datagram, at: now, into: &outbox) }
    }

    private mutating func startHandshake(at now: Instant, into outbox: inout [Output]) {
        guard !hasStarted, handshake != nil, agent.path != nil || direct != nil else { return }
        hasStarted = true
        tellHandshake(.start, at: now, into: &outbox)
        takeEarly(at: now, into: &outbox)
    }

    private mutating func tellHandshake(_ input: DTLSInput, at now: Instant, into outbox: inout [Output]) {
        var steps: [DTLSOutput] = []
        handshake?.handle(input, at: now, into: &steps)
        for step in steps {
            switch step {
            case .transmit(let datagram):
                if let direct {
                    outbox.append(.transmit(datagram, by: direct.path))
                } else {
                    tellAgent(.send(datagram), at: now, into: &outbox)
                }
            case .established(let send, let receive):
                // The side that finished the handshake from there is the peer.
                if let direct { outbox.append(.direct(direct.path)) }
                outbox.append(.keys(send: send, receive: receive))
            case .failed(let error): outbox.append(.failed(ConnectionFailure(error)))
            case .closed: outbox.append(.closed)
            }
        }
    }
}

extension Connection.Input where Handshake: ~Copyable {
    /// Inputs that an ended connection still accepts, to release its allocations at TURN servers.
    fileprivate var isForTheEnd: Bool {
        switch self {
        case .ice, .timerFired: true
        case .direct, .handshake, .expect, .end: false
        }
    }
}

/// The way to a peer without ICE, while its handshake is under way and after.
private struct DirectWay {
    /// Where our datagrams go, and the only source that the peer's are taken from once one has come.
    private(set) var path: DatagramPath
    private let promised: DatagramPath
    private var hasHeard = false

    /// For another association (RFC 8842) the peer stays where it was found, unless its description has another address.
    init(_ promised: DatagramPath, after before: DirectWay?) {
        self.promised = promised
        path = before.flatMap { $0.promised == promised ? $0.path : nil } ?? promised
    }

    /// Takes over where the peer's first part of the handshake comes from; other datagrams, such as a former peer's goodbye,
    /// move nothing. If a stranger began a handshake before the peer, the handshake fails by the certificate.
    ///
    /// - Returns: False if a datagram is to be passed over.
    mutating func follow(_ origin: DatagramPath, _ datagram: [UInt8]) -> Bool {
        guard hasHeard else {
            // A plain record of type handshake (RFC 6347 §4.1).
            guard datagram.count > 5, datagram[0] == 22, datagram[3] == 0, datagram[4] == 0 else { return false }
            hasHeard = true
            path = origin
            return true
        }
        return path.remote == origin.remote
    }
}

/// A call cannot be connected, or its connection has ended by itself.
///
/// Match on `code`; print the error itself.
public struct ConnectionFailure: Error, Equatable, Sendable, CustomStringConvertible {
    /// What went wrong.
    public struct Code: Equatable, Sendable {
        private let number: UInt8
        /// ICE has found no path, or lost all that it had.
        public static let noPath = Code(number: 0)
        /// There is no socket for the peer's address.
        public static let unusableAddress = Code(number: 1)
        /// The handshake failed: see ``ConnectionFailure/handshake``.
        public static let handshake = Code(number: 2)
        /// A library or the machine refused something.
        public static let fault = Code(number: 3)
    }

    /// What went wrong.
    public let code: Code
    /// The handshake's error, if it failed.
    public let handshake: DTLSError?
    /// The details as text, for this device's own log.
    public private(set) var description: String

    /// Makes a failure that prints as `description`.
    public init(_ code: Code, _ description: String) {
        self.code = code
        self.description = description
        handshake = nil
    }

    /// Makes one of a handshake's error.
    public init(_ error: DTLSError) {
        code = .handshake
        handshake = error
        description = "\(error)"
    }

    /// The same with more of the story.
    public func adding(_ more: String?) -> ConnectionFailure {
        guard let more else { return self }
        var failure = self
        failure.description += ": \(more)"
        return failure
    }
}
