public import Core

/// Notices that the peer of an established call has vanished (contract CALL-4), where no consent checks do (RFC 7675).
///
/// When nothing has arrived for a period, neither RTP nor RTCP, the peer is probed over signaling, and again after each further
/// period of silence. While the call is on hold only probes count. The peer is lost when a probe fails and nothing has arrived
/// since it was sent. While packets come that may be a stranger's, several probes in a row must fail: they may be the peer's, and a
/// telephone behind a translator may be heard better by media than by signaling.
public struct SilenceWatch: ProtocolCore, Sendable {
    /// The inputs.
    public enum Input: Hashable, Sendable {
        /// The call is established.
        case begin
        /// The answer to ``Output/observe``.
        case observed(Observation)
        /// The answer to ``Output/probe(isOnHold:)``; nil if the probe could not be sent, which says nothing of the peer.
        case probed(PeerProbe?)
        /// `nextDeadline` has come. Early calls are harmless.
        case timerFired
    }

    /// What the call's media shows of the peer.
    public enum Observation: Hashable, Sendable {
        /// The call has ICE, whose consent checks notice a peer that vanishes.
        case covered
        /// Nothing is expected from the peer: the call is on hold.
        case onHold
        /// The peer's newest packet arrived then, or none has arrived; and the newest that may be a stranger's, if that is newer.
        case expecting(newest: Instant?, guessed: Instant? = nil)
    }

    /// The outputs.
    public enum Output: Hashable, Sendable {
        /// Look at the call's media.
        case observe
        /// Probe the peer.
        case probe(isOnHold: Bool)
        /// The peer is lost. Nothing comes after this.
        case lost(PeerProbe.Cause)
    }

    private enum State: Hashable, Sendable {
        case idle
        /// Since that time nothing is known to have come from the peer.
        case waiting(since: Instant)
        case observing(since: Instant)
        case probing(since: Instant)
        /// The probe has failed: whether anything has arrived since it was sent is being looked at.
        case judging(since: Instant, PeerProbe.Cause)
        case over
    }

    /// After this time a probe without a result counts as not sent: twice the longest transaction of SIP over UDP.
    static let patience = Duration.seconds(64)

    /// Probes in a row that must fail while packets come that may be a stranger's: one in each period.
    static let mostFailures = 3

    private let period: Duration
    private var state = State.idle
    /// Probes in a row that failed meanwhile.
    private var failures = 0

    /// - Parameter period: How long nothing may arrive before the peer is probed; more than zero.
    public init(period: Duration) {
        precondition(period > .zero, "a watch without a period would probe without a pause")
        self.period = period
    }

    /// When ``handle(_:at:into:)`` must next be called even if nothing happens.
    public var nextDeadline: Instant? {
        switch state {
        case .idle, .observing, .judging, .over: nil
        case .waiting(let since): since.advanced(by: period)
        case .probing(let since): since.advanced(by: Self.patience)
        }
    }

    /// Takes one input.
    public mutating func handle(_ input: Input, at now: Instant, into outbox: inout [Output]) {
        switch (state, input) {
        case (.idle, .begin):
            state = .waiting(since: now)
        case (.waiting(let since), .timerFired) where since.advanced(by: period) <= now:
            state = .observing(since: since)
            outbox.append(.observe)
        case (.observing(let since), .observed(let observation)):
            consider(observation, since: since, at: now, into: &outbox)
        case (.probing, .probed(.answered)):
            failures = 0
            state = .waiting(since: now)
        case (.probing, .probed(nil)):
            state = .waiting(since: now)
        case (.probing(let since), .probed(.failed(let cause))):
            state = .judging(since: since, cause)
            outbox.append(.observe)
        case (.probing(let since), .timerFired) where since.advanced(by: Self.patience) <= now:
            state = .waiting(since: now)
        case (.judging(let since, let cause), .observed(let observation)):
            judge(cause, observation, since: since, at: now, into: &outbox)
        case (.idle, _), (.waiting, _), (.observing, _), (.probing, _), (.judging, _), (.over, _):
            break  // Woken early, or late.
        }
    }

    private mutating func consider(
        _ observation: Observation, since: Instant, at now: Instant, into outbox: inout [Output]
    ) {
        switch observation {
        case .covered: state = .waiting(since: now)
        case .onHold:
            state = .probing(since: now)
            outbox.append(.probe(isOnHold: true))
        case .expecting(let newest, _):
            let last = max(since, newest ?? since)
            guard last.advanced(by: period) <= now else { return state = .waiting(since: last) }
            state = .probing(since: now)
            outbox.append(.probe(isOnHold: false))
        }
    }

    private mutating func judge(
        _ cause: PeerProbe.Cause, _ observation: Observation, since: Instant, at now: Instant,
        into outbox: inout [Output]
    ) {
        switch observation {
        case .covered: state = .waiting(since: now)
        case .expecting(let newest?, _) where newest > since:
            failures = 0
            state = .waiting(since: newest)
        case .expecting(_, let guessed?)
        where guessed.advanced(by: period) > since && failures + 1 < Self.mostFailures:
            failures += 1
            state = .waiting(since: now)
        case .onHold, .expecting:
            state = .over
            outbox.append(.lost(cause))
        }
    }
}

/// What came of a probe: a question over signaling that shows whether a call's peer is still there (contract CALL-4).
public enum PeerProbe: Hashable, Sendable {
    /// The peer, or the service on its behalf, has answered. A refusal, or an answer that the question is unknown, is an answer.
    /// With the host that it came from, if that is known: it has received what we sent to it.
    case answered(from: String? = nil)
    /// No answer came in time, or the answer is that there is no such call.
    case failed(Cause)

    /// Why a probe failed.
    public enum Cause: String, CaseIterable, Hashable, Sendable {
        /// No answer came in time.
        case noAnswer = "the peer does not answer"
        /// The peer, or the service, does not know the call.
        case unknownCall = "the peer does not know the call"
        /// The peer lost its connection to the service, and can no longer resume its session.
        case peerGone = "the peer has no connection to the service"
    }
}
