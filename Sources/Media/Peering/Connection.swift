public import Datagrams
public import ICE
public import SecureTransport
public import Timekeeping

/// One call's way to its peer: ICE finds it and keeps it, DTLS on top agrees on the media's keys.
///
/// It does no I/O and reads no clock. Generic over the handshake, so that tests run in virtual time.
public struct Connection<Handshake: DTLSHandshake & ~Copyable>: ProtocolCore, ~Copyable {
    /// What can happen.
    public enum Input: Sendable {
        /// Anything about ICE; the driver brings datagrams of STUN, and what TURN servers send.
        case ice(ICEInput)
        /// A datagram of DTLS arrived.
        case handshake([UInt8])
        /// The peer's certificates: nothing is believed before they are known.
        case expect([DTLSFingerprint])
        /// ``nextDeadline`` has come. Early calls are harmless.
        case timerFired
        /// The call is over.
        case end
    }

    /// What is asked for or told.
    public enum Output: Sendable {
        /// What ICE asks for or tells, but for paths and data, which are below.
        case ice(ICEOutput)
        /// Media goes this way now; nil: no way any more.
        case path(ICEPath?)
        /// Media is protected with these keys.
        case keys(send: SRTPKey, receive: SRTPKey)
        /// It will not come to anything, or has ended by itself; in words for people. Said once.
        case failed(String)
        /// The peer has closed the association.
        case closed
    }

    /// Datagrams of DTLS that came before our side of the handshake could begin.
    private static var earlyLimit: Int { 8 }

    private var agent: ICEAgent
    private var handshake: Handshake?
    private var early: [[UInt8]] = []
    private var hasStarted = false
    private var isOver = false

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

    /// Takes our side of the handshake; it starts once there is a path.
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
        case .ice(let input): tellAgent(input, at: now, into: &outbox)
        case .handshake(let datagram):
            if hasStarted {
                tellHandshake(.received(datagram), at: now, into: &outbox)
            } else if early.count < Self.earlyLimit {
                early.append(datagram)
            }
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
            case .received(let data, _, _): receivedThroughRelay(data, at: now, into: &outbox)
            case .stateChanged(.failed):
                outbox.append(.ice(step))
                outbox.append(.failed("no path to the peer works, or the peer has stopped answering (ICE)"))
            case .transmit, .openServer, .sendToServer, .serverFailed, .closeServer, .localCandidate,
                .gatheringComplete, .unresolvedName, .stateChanged:
                outbox.append(.ice(step))
            }
        }
    }

    /// What comes through a relay before the media thread knows its channel: a handshake, or early media, which can wait.
    private mutating func receivedThroughRelay(_ data: [UInt8], at now: Instant, into outbox: inout [Output]) {
        guard let first = data.first, (20...63).contains(first) else { return }  // RFC 7983 §7
        handle(.handshake(data), at: now, into: &outbox)
    }

    private mutating func startHandshake(at now: Instant, into outbox: inout [Output]) {
        guard !hasStarted, handshake != nil, agent.path != nil else { return }
        hasStarted = true
        tellHandshake(.start, at: now, into: &outbox)
        let waiting = early
        early = []
        for datagram in waiting { tellHandshake(.received(datagram), at: now, into: &outbox) }
    }

    private mutating func tellHandshake(_ input: DTLSInput, at now: Instant, into outbox: inout [Output]) {
        var steps: [DTLSOutput] = []
        handshake?.handle(input, at: now, into: &steps)
        for step in steps {
            switch step {
            case .transmit(let datagram): tellAgent(.send(datagram), at: now, into: &outbox)
            case .established(let send, let receive): outbox.append(.keys(send: send, receive: receive))
            case .failed(let error): outbox.append(.failed("\(error)"))
            case .closed: outbox.append(.closed)
            }
        }
    }
}

extension Connection.Input where Handshake: ~Copyable {
    /// What an ended connection still takes: its TURN servers hear that it is over.
    fileprivate var isForTheEnd: Bool {
        switch self {
        case .ice, .timerFired: true
        case .handshake, .expect, .end: false
        }
    }
}
