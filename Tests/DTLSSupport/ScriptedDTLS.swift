// DTLSSupport: a handshake that runs on virtual time, and two sides of one with a wire between.

public import SecureTransport
import TestSupport
public import Core

/// Acts like a DTLS handshake, on virtual time and without any secrecy: four flights, retransmission from 50 ms
/// doubling to 4 s, 30 s of patience, fingerprints that must be the promised ones, keys that both sides share.
///
/// Its datagrams begin with the bytes of DTLS, so that they are told apart from others as real ones are.
public struct ScriptedDTLS: DTLSHandshake, ~Copyable {
    private enum State {
        case idle
        case shaking
        /// The peer has sent all that it has to.
        case unverified
        case established
        case finished
    }

    /// Which side this is.
    public let role: DTLSRole
    /// What the peer must expect.
    public let fingerprint: DTLSFingerprint
    private let random: UInt64
    private let suites: [SRTPSuite]
    private var state: State = .idle
    private var expected: [DTLSFingerprint]?
    private var peer: Message?
    private var lastFlight: UInt8 = 0
    private var interval = Duration.milliseconds(50)
    private var resendAt: Instant?
    private var giveUpAt = Instant.zero

    /// A side whose fingerprint and whose part of the keys follow from `seed`.
    public init(_ role: DTLSRole, seed: UInt64, suites: [SRTPSuite] = [.aeadAES128GCM, .aesCM128HMACSHA1]) {
        self.role = role
        self.suites = suites
        var generator = SeededGenerator(seed: seed)
        random = generator.next()
        let bytes = (0..<32).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        guard let fingerprint = DTLSFingerprint(.sha256, bytes: bytes) else {
            preconditionFailure("32 bytes are right")
        }
        self.fingerprint = fingerprint
    }

    /// When the next input must come at the latest.
    public var nextDeadline: Instant? {
        switch state {
        case .idle, .established, .finished: nil
        case .shaking: resendAt.map { min($0, giveUpAt) } ?? giveUpAt
        case .unverified: giveUpAt
        }
    }

    /// Takes one input.
    public mutating func handle(_ input: DTLSInput, at now: Instant, into outbox: inout [DTLSOutput]) {
        switch (state, input) {
        case (.idle, .start):
            state = .shaking
            giveUpAt = now.advanced(by: .seconds(30))
            if role == .active { send(flight: 1, at: now, into: &outbox) }
        case (.idle, .expect(let fingerprints)), (.shaking, .expect(let fingerprints)):
            expected = fingerprints
        case (.unverified, .expect(let fingerprints)):
            expected = fingerprints
            finish(into: &outbox)
        case (.shaking, .received(let datagram)), (.unverified, .received(let datagram)),
            (.established, .received(let datagram)):
            receive(datagram, at: now, into: &outbox)
        case (.shaking, .timerFired), (.unverified, .timerFired):
            timerFired(at: now, into: &outbox)
        case (.established, .close):
            outbox.append(.transmit(Message.goodbye))
            state = .finished
        case (.idle, .close), (.shaking, .close), (.unverified, .close):
            state = .finished
        case (.idle, .received), (.idle, .timerFired), (.established, .timerFired), (.established, .expect),
            (.shaking, .start), (.unverified, .start), (.established, .start), (.finished, _):
            break
        }
    }

    private mutating func receive(_ datagram: [UInt8], at now: Instant, into outbox: inout [DTLSOutput]) {
        if datagram == Message.goodbye {
            guard case .established = state else { return }
            state = .finished
            return outbox.append(.closed)
        }
        guard let message = Message(datagram) else { return }
        // The active side sends flights 1 and 3, the passive side answers with 2 and 4.
        let isOurs = (message.flight % 2 == 1) == (role == .active)
        guard !isOurs, message.flight >= lastFlight else {
            // The peer has not got our last flight.
            if !isOurs, lastFlight == message.flight + 1 { transmit(into: &outbox) }
            return
        }
        guard message.flight == lastFlight + 1 else { return }
        peer = message
        resendAt = nil
        interval = .milliseconds(50)
        if message.flight < 4 { send(flight: message.flight + 1, at: now, into: &outbox) }
        guard message.flight >= 3, case .shaking = state else { return }
        resendAt = nil
        state = .unverified
        finish(into: &outbox)
    }

    private mutating func finish(into outbox: inout [DTLSOutput]) {
        guard let peer, let expected else { return }
        guard expected.contains(peer.fingerprint) else {
            return fail(.fingerprintMismatch, "not the promised fingerprint", into: &outbox)
        }
        let offers = role == .passive ? (suites, peer.suites) : (peer.suites, suites)
        guard let suite = offers.0.first(where: offers.1.contains) else {
            return fail(.noCommonProfile, "no common profile", into: &outbox)
        }
        var generator = SeededGenerator(seed: random ^ peer.random)
        let active = SRTPKey.random(suite, using: &generator)
        let passive = SRTPKey.random(suite, using: &generator)
        state = .established
        let isActive = role == .active
        outbox.append(.established(send: isActive ? active : passive, receive: isActive ? passive : active))
    }

    private mutating func timerFired(at now: Instant, into outbox: inout [DTLSOutput]) {
        if now >= giveUpAt { return fail(.timedOut, "no answer within 30 s", into: &outbox) }
        guard let resendAt, now >= resendAt else { return }
        interval = min(interval * 2, .seconds(4))
        self.resendAt = now.advanced(by: interval)
        transmit(into: &outbox)
    }

    private mutating func send(flight: UInt8, at now: Instant, into outbox: inout [DTLSOutput]) {
        lastFlight = flight
        resendAt = now.advanced(by: interval)
        transmit(into: &outbox)
    }

    private mutating func transmit(into outbox: inout [DTLSOutput]) {
        let message = Message(flight: lastFlight, random: random, fingerprint: fingerprint, suites: suites)
        outbox.append(.transmit(message.bytes))
    }

    private mutating func fail(_ code: DTLSError.Code, _ reason: String, into outbox: inout [DTLSOutput]) {
        state = .finished
        outbox.append(.failed(DTLSError(code, "the scripted handshake failed: \(reason).")))
    }
}

/// One flight: all of it in one datagram.
private struct Message {
    static let goodbye: [UInt8] = [21, 0xFE, 0xFD, 0]

    var flight: UInt8
    var random: UInt64
    var fingerprint: DTLSFingerprint
    var suites: [SRTPSuite]

    init(flight: UInt8, random: UInt64, fingerprint: DTLSFingerprint, suites: [SRTPSuite]) {
        self.flight = flight
        self.random = random
        self.fingerprint = fingerprint
        self.suites = suites
    }

    init?(_ datagram: [UInt8]) {
        guard datagram.starts(with: Self.header), let flight = datagram.dropFirst(5).first, (1...4).contains(flight),
            datagram.count >= 46, let fingerprint = DTLSFingerprint(.sha256, bytes: Array(datagram[14..<46]))
        else { return nil }
        self.flight = flight
        random = datagram[6..<14].reduce(0) { $0 << 8 | UInt64($1) }
        self.fingerprint = fingerprint
        suites = datagram[46...].compactMap { byte in
            SRTPSuite.allCases.indices.contains(Int(byte)) ? SRTPSuite.allCases[Int(byte)] : nil
        }
    }

    var bytes: [UInt8] {
        Self.header + [flight] + (0..<8).map { UInt8(truncatingIfNeeded: random >> (56 - 8 * $0)) }
            + fingerprint.bytes + suites.map { UInt8(SRTPSuite.allCases.firstIndex(of: $0) ?? 0) }
    }

    /// A plain record of type handshake.
    private static let header: [UInt8] = [22, 0xFE, 0xFD, 0, 0]
}
