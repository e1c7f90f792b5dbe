public import Core

/// One handshake of DTLS 1.2 that ends in SRTP keys, or in a reason why not (RFC 5764, RFC 8827 §6.5, RFC 8842).
///
/// The peer is the owner of the certificate whose fingerprint came with the session description; only the peer gets keys.
/// There is no resumption, no renegotiation and no compression. Keep it until the call ends: it retransmits its last
/// flight if that was lost, and receives the peer's close_notify.
///
/// DTLS 1.2 accepts an unencrypted record as the peer's if its numbers fit, so an attacker who can send from the peer's
/// address can end a handshake in progress; afterwards only the peer can end the association.
///
/// For an ordinary thread; it allocates. OpenSSL's retransmission timer reads the machine's time of day, so a handshake
/// cannot run on virtual time, and when the machine's clock is set back during one, lost flights are sent again by the
/// peer alone.
public struct DTLSEndpoint: DTLSHandshake, ~Copyable, Sendable {
    private enum State {
        case idle
        case handshaking(givingUpAt: Instant)
        /// The handshake is complete, and the peer's description is not here yet.
        case unverified(givingUpAt: Instant)
        case established
        /// Failed or closed.
        case finished
    }

    /// Which side this is.
    public let role: DTLSRole
    /// When the next input must come at the latest; nil means never.
    public private(set) var nextDeadline: Instant?

    private let patience: Duration
    private var session: DTLSSession
    private var state: State = .idle

    /// Makes an endpoint that does nothing before ``DTLSInput/start``.
    ///
    /// - Throws: ``DTLSError`` with ``DTLSError/Code/library``.
    public init(
        _ role: DTLSRole, identity: DTLSIdentity, configuration: DTLSConfiguration = DTLSConfiguration()
    ) throws(DTLSError) {
        precondition(!configuration.suites.isEmpty, "a handshake offers at least one suite")
        precondition(configuration.maximumDatagramBytes >= 256, "OpenSSL fits no flight into less than 256 bytes")
        precondition(
            configuration.firstRetransmission >= .milliseconds(20)
                && configuration.firstRetransmission <= DTLSConfiguration.longestRetransmission,
            "the first retransmission is due in 20 ms...4 s")
        self.role = role
        patience = configuration.patience
        session = try DTLSSession(role, identity, configuration)
    }

    /// Takes one input. Nothing that arrives can trap; what is not a record of this association changes nothing.
    public mutating func handle(_ input: DTLSInput, at now: Instant, into outbox: inout [DTLSOutput]) {
        switch (state, input) {
        case (.idle, .start):
            state = .handshaking(givingUpAt: now.advanced(by: patience))
            conclude(session.advance(), into: &outbox)

        case (.idle, .expect(let fingerprints)), (.handshaking, .expect(let fingerprints)):
            session.expect(fingerprints)

        case (.unverified, .expect(let fingerprints)):
            session.expect(fingerprints)
            finishHandshake(into: &outbox)

        case (.handshaking, .received(let datagram)), (.unverified, .received(let datagram)),
            (.established, .received(let datagram)):
            guard let first = datagram.first, (20...63).contains(first) else { break }
            conclude(session.advance(with: datagram), into: &outbox)

        case (.handshaking(let givingUpAt), .timerFired):
            if now >= givingUpAt {
                fail(timedOut("the peer did not answer"), into: &outbox)
            } else {
                conclude(session.timerFired(), into: &outbox)
            }

        case (.unverified(let givingUpAt), .timerFired):
            if now >= givingUpAt { fail(timedOut("the peer's description did not come"), into: &outbox) }

        case (.idle, .close), (.handshaking, .close), (.unverified, .close), (.established, .close):
            session.close()
            transmit(into: &outbox)
            state = .finished

        case (.idle, .received), (.idle, .timerFired), (.established, .timerFired):
            break
        case (.handshaking, .start), (.unverified, .start), (.established, .start), (.established, .expect):
            break
        case (.finished, _):
            break
        }
        updateDeadline(at: now)
    }

    /// Draws the conclusion from what OpenSSL came to, after sending what it wants sent.
    private mutating func conclude(_ progress: consuming DTLSSession.Progress, into outbox: inout [DTLSOutput]) {
        transmit(into: &outbox)
        switch progress {
        case .handshaking: break
        case .complete: finishHandshake(into: &outbox)
        case .closedByPeer: closed(into: &outbox)
        case .failed(let error): fail(error, into: &outbox)
        }
    }

    /// Exports the keys if the handshake is complete and the peer's certificate is the promised one.
    private mutating func finishHandshake(into outbox: inout [DTLSOutput]) {
        let givingUpAt: Instant
        switch state {
        case .handshaking(let instant), .unverified(let instant): givingUpAt = instant
        case .idle, .established, .finished: return
        }
        guard let suite = session.suite else { return fail(.noCommonProfile, into: &outbox) }
        guard let isPeerExpected = session.isPeerExpected else {
            state = .unverified(givingUpAt: givingUpAt)
            return
        }
        guard isPeerExpected else { return fail(.fingerprintMismatch, into: &outbox) }
        do throws(DTLSError) {
            let keys = try session.makeKeys(suite)
            state = .established
            switch role {
            case .active: outbox.append(.established(send: keys.active, receive: keys.passive))
            case .passive: outbox.append(.established(send: keys.passive, receive: keys.active))
            }
        } catch {
            fail(error, into: &outbox)
        }
    }

    private mutating func closed(into outbox: inout [DTLSOutput]) {
        guard case .established = state else {
            return fail(DTLSError(.refusedByPeer, "the peer closed the DTLS association early."), into: &outbox)
        }
        session.close()
        transmit(into: &outbox)
        state = .finished
        outbox.append(.closed)
    }

    private mutating func fail(_ error: DTLSError, into outbox: inout [DTLSOutput]) {
        // Sends close_notify after the handshake; before, OpenSSL has sent the alert that fits.
        session.close()
        transmit(into: &outbox)
        state = .finished
        outbox.append(.failed(error))
    }

    private mutating func transmit(into outbox: inout [DTLSOutput]) {
        for datagram in session.takeOutbound() { outbox.append(.transmit(datagram)) }
    }

    private mutating func updateDeadline(at now: Instant) {
        switch state {
        case .handshaking(let givingUpAt):
            // No longer than the longest wait, even if the machine's clock was set back.
            let wait = session.timeToRetransmission.map { min($0, DTLSConfiguration.longestRetransmission) }
            nextDeadline = wait.map { min(now.advanced(by: $0), givingUpAt) } ?? givingUpAt
        case .unverified(let givingUpAt): nextDeadline = givingUpAt
        case .idle, .established, .finished: nextDeadline = nil
        }
    }

    private func timedOut(_ reason: String) -> DTLSError {
        DTLSError(.timedOut, "the DTLS handshake failed: \(reason) within \(patience.seconds) s.")
    }
}

extension DTLSError {
    static var fingerprintMismatch: DTLSError {
        DTLSError(
            .fingerprintMismatch,
            "the DTLS handshake failed: the peer's certificate has not the fingerprint that its description promised. "
                + "The description belongs to another peer, or the connection is intercepted.")
    }

    static var noCommonProfile: DTLSError {
        DTLSError(
            .noCommonProfile,
            "the DTLS handshake failed: the peer has none of our SRTP profiles, so media would go unprotected.")
    }
}
