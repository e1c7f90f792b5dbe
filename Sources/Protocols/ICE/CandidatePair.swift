internal import Core

/// A local base, an address of the peer, and the results of checks between them (RFC 8445 §6.1.2).
struct CandidatePair: Sendable {
    /// Identifies a pair.
    struct Key: Hashable, Sendable {
        var base: Base
        var remote: SocketAddress
    }

    enum State: Equatable, Sendable {
        /// Waits for another pair of the same foundation.
        case frozen
        /// Next, when its turn comes.
        case waiting
        /// Being checked; given up at `end`.
        case inProgress(interval: Duration, end: Instant)
        /// It works: answers came, the last at `lastAnswer`.
        case succeeded(lastAnswer: Instant)
        case failed
    }

    /// One check that was sent. Each attempt is a separate transaction, so that its round trip is unambiguous.
    struct Probe: Sendable {
        let id: TransactionID
        let sentAt: Instant
        let nominates: Bool
        let isControlling: Bool
    }

    /// Checks that a pair remembers. Answers to earlier checks are not recognised.
    private static let maximumProbes = 12
    /// How long a failed pair that has worked before waits to be tried again.
    private static let retryInterval = Duration.seconds(30)
    /// A pair that was silent once must answer for this duration before it is preferred again.
    private static let probation = Duration.seconds(5)
    /// Checks that prompt the peer, on each pair.
    private static let maximumPrompts = 3

    let key: Key
    let localType: CandidateType
    let localPriority: UInt32
    let foundation: String
    private(set) var remoteType: CandidateType
    private var remotePriority: UInt32
    private(set) var priority: UInt64 = 0
    private(set) var state = State.waiting
    private var probes: [Probe] = []
    /// When the next check is due, unless the pair waits in the check list.
    private(set) var nextSend: Instant?
    /// When the last check was sent.
    private(set) var lastCheck: Instant?
    /// When a failed pair that has worked before is tried again.
    private var retryAt: Instant?
    /// When the first check since the last answer was sent.
    private(set) var unansweredSince: Instant?
    /// The media on it has fallen silent since the last answer.
    private(set) var isQuiet = false
    /// Since when every check was answered soon enough.
    private var steadySince: Instant?
    /// It has been silent before.
    private var hasFaltered = false
    private(set) var roundTrip: Duration?
    private(set) var smoothedRoundTrip: Duration?
    /// When the peer last asked for this pair to be used.
    private(set) var peerNominatedAt: Instant?
    /// The peer has checked it.
    private var hasBeenChecked = false
    /// Checks that we sent to prompt the peer to nominate it.
    private var prompts = 0
    /// For relays: the server has permitted the peer.
    private(set) var isPermitted: Bool

    init(key: Key, local: Candidate, remote: Candidate) {
        self.key = key
        localType = local.type
        localPriority = local.priority
        remoteType = remote.type
        remotePriority = remote.priority
        foundation = "\(local.foundation):\(remote.foundation)"
        isPermitted = local.type != .relayed
    }

    /// RFC 8445 §6.1.2.3.
    mutating func computePriority(isControlling: Bool) {
        let controlling = UInt64(isControlling ? localPriority : remotePriority)
        let controlled = UInt64(isControlling ? remotePriority : localPriority)
        priority =
            min(controlling, controlled) << 32 &+ 2 &* max(controlling, controlled)
            &+ (controlling > controlled ? 1 : 0)
    }

    /// The peer has signaled the candidate that was learned from a check.
    mutating func replaceRemote(by candidate: Candidate) {
        remoteType = candidate.type
        remotePriority = candidate.priority
    }

    var isValid: Bool {
        switch state {
        case .succeeded: true
        case .frozen, .waiting, .inProgress, .failed: false
        }
    }

    var isInProgress: Bool {
        switch state {
        case .inProgress: true
        case .frozen, .waiting, .succeeded, .failed: false
        }
    }

    /// Not yet known to work or not.
    var isOpen: Bool {
        switch state {
        case .frozen, .waiting, .inProgress: true
        case .succeeded, .failed: false
        }
    }

    var isRelayed: Bool { localType == .relayed || remoteType == .relayed }

    var lastAnswer: Instant? {
        switch state {
        case .succeeded(let lastAnswer): lastAnswer
        case .frozen, .waiting, .inProgress, .failed: nil
        }
    }

    /// How long the pair has been silent, beyond what a round trip takes.
    func silence(at now: Instant) -> Duration {
        guard let unansweredSince else { return .zero }
        return unansweredSince.duration(to: now)
    }

    /// How long a pair may be silent and still count as one that answers.
    private func patience(_ settings: ICEConfiguration) -> Duration {
        max(isQuiet ? settings.quietSwitchDelay : settings.switchDelay, (smoothedRoundTrip ?? .zero) * 3)
    }

    func answers(_ settings: ICEConfiguration, at now: Instant) -> Bool {
        isValid && silence(at: now) < patience(settings)
    }

    /// It has never been silent, or has answered for long enough since.
    func isSteady(at now: Instant) -> Bool {
        !hasFaltered || (steadySince.map { $0.duration(to: now) >= Self.probation } ?? false)
    }

    // MARK: Its turn

    /// Waits until another pair of its foundation works.
    mutating func freeze() { state = .frozen }

    /// Waits for its turn to be checked.
    mutating func awaitTurn() {
        state = .waiting
        nextSend = nil
    }

    /// Its turn has come: checks are repeated after `interval` and longer ones, until `end`.
    mutating func begin(interval: Duration, end: Instant) { state = .inProgress(interval: interval, end: end) }

    mutating func fail() {
        state = .failed
        nextSend = nil
        probes = []
        unansweredSince = nil
        isQuiet = false
        steadySince = nil
        peerNominatedAt = nil
    }

    /// Gives up a pair that is unanswered for too long; one that has worked before is retried later.
    mutating func expire(_ settings: ICEConfiguration, at now: Instant) {
        switch state {
        case .inProgress(_, let end) where now >= end: fail()
        case .succeeded(let lastAnswer) where now >= lastAnswer.advanced(by: settings.consentTimeout): fail()
        case .failed:
            guard let due = retryAt, now >= due else { return }
            retryAt = nil
            awaitTurn()
            return
        case .frozen, .waiting, .inProgress, .succeeded: return
        }
        let hasWorked = smoothedRoundTrip != nil
        retryAt = hasWorked ? now.advanced(by: Self.retryInterval) : nil
    }

    /// For a pair of a relay: the server's answer about the peer.
    mutating func setPermitted(_ isGranted: Bool) {
        isPermitted = isGranted
        if !isGranted, isOpen { fail() }
    }

    // MARK: Checks

    /// Remembers a check that was sent, and plans when it is repeated if it stays unanswered.
    mutating func sent(_ probe: Probe, isNominating: Bool, _ settings: ICEConfiguration) {
        let now = probe.sentAt
        if probes.count >= Self.maximumProbes { probes.removeFirst() }
        probes.append(probe)
        lastCheck = now
        if unansweredSince == nil { unansweredSince = now }
        switch state {
        case .inProgress(let interval, let end):
            nextSend = now.advanced(by: interval)
            // Never sooner than the first interval, which may be long when there are many pairs.
            let longer = min(interval * 2, max(interval, settings.maximumRetransmission))
            state = .inProgress(interval: longer, end: end)
        case .succeeded:
            let quick = max((smoothedRoundTrip ?? .zero) * 2, isNominating ? .milliseconds(50) : .milliseconds(200))
            // Quickly at first, to learn soon whether the path is dead, then as often as consent asks.
            let wait = silence(at: now) < .seconds(3) ? quick : max(quick, .seconds(2))
            nextSend = now.advanced(by: wait)
        case .frozen, .waiting, .failed: nextSend = nil
        }
    }

    /// Plans the next check; nil means none.
    mutating func planCheck(at time: Instant?) { nextSend = time }

    /// The check that was sent with this transaction ID, if it is remembered.
    func probe(_ id: TransactionID) -> Probe? { probes.first { $0.id == id } }

    /// Takes the answer to `probe`, which came at `now`.
    mutating func succeed(_ probe: Probe, at now: Instant) {
        state = .succeeded(lastAnswer: now)
        // Checks that are still under way may be answered or not: only checks that are sent from now on count as
        // unanswered.
        probes.removeAll { $0.sentAt <= probe.sentAt }
        unansweredSince = nil
        isQuiet = false
        if steadySince == nil { steadySince = now }
        let measured = probe.sentAt.duration(to: now)
        roundTrip = measured
        smoothedRoundTrip = smoothedRoundTrip.map { ($0 * 7 + measured) / 8 } ?? measured
    }

    /// `probe` was refused.
    mutating func refused(_ probe: Probe) { probes.removeAll { $0.id == probe.id } }

    /// A valid pair that no longer answers has to prove itself again.
    mutating func noteSilence(_ settings: ICEConfiguration, at now: Instant) {
        guard isValid, !answers(settings, at: now), steadySince != nil else { return }
        steadySince = nil
        hasFaltered = true
    }

    /// The media on it has stopped: checks at once whether it still answers.
    mutating func mediaStopped(at now: Instant) {
        guard isValid else { return }
        isQuiet = true
        if unansweredSince == nil { nextSend = now }
    }

    // MARK: The peer's checks

    /// The peer has checked this pair.
    mutating func peerChecked(nominates: Bool, at now: Instant) {
        hasBeenChecked = true
        if nominates { peerNominatedAt = now }
        // Data that came through the relay shows that the server has a permission for that address.
        isPermitted = true
        guard isInProgress else { return }
        // The path may have opened only now. If our check is still under way, its answer arrives before this time.
        let soon = (probes.last?.sentAt ?? now).advanced(by: .milliseconds(20))
        nextSend = min(nextSend ?? soon, max(now, soon))
    }

    /// Checks the pair again at once, a few times at most, so that the peer nominates it.
    mutating func prompt(at now: Instant) {
        guard hasBeenChecked, prompts < Self.maximumPrompts else { return }
        prompts += 1
        nextSend = now
    }

    // MARK: Deadlines

    /// When a check is due, or the pair is given up or tried again.
    ///
    /// - Parameter earliest: When a check may be sent; nil means at any time.
    func nextCheck(_ settings: ICEConfiguration, notBefore earliest: Instant?) -> Instant? {
        let end: Instant? =
            switch state {
            case .inProgress(_, let end): end
            case .succeeded(let lastAnswer): lastAnswer.advanced(by: settings.consentTimeout)
            case .failed: retryAt
            case .frozen, .waiting: nil
            }
        let send = nextSend.map { max($0, earliest ?? $0) }
        return [send, end].compactMap(\.self).min()
    }

    /// When a valid pair counts as silent, or as steady again.
    func nextChange(_ settings: ICEConfiguration) -> Instant? {
        guard isValid else { return nil }
        if let unansweredSince { return unansweredSince.advanced(by: patience(settings)) }
        return hasFaltered ? steadySince?.advanced(by: Self.probation) : nil
    }
}
