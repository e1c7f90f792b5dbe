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
    static let maximumProbes = 12

    let key: Key
    let localType: CandidateType
    let localPriority: UInt32
    var remoteType: CandidateType
    var remotePriority: UInt32
    let foundation: String
    var priority: UInt64 = 0
    var state = State.waiting
    var probes: [Probe] = []
    /// When the next check is due, unless the pair waits in the check list.
    var nextSend: Instant?
    /// When a failed pair that has worked before is tried again.
    var retryAt: Instant?
    /// When the first check since the last answer was sent.
    var unansweredSince: Instant?
    /// The media on it has fallen silent since the last answer.
    var isQuiet = false
    /// Since when every check was answered soon enough.
    var steadySince: Instant?
    /// It has been silent before.
    var hasFaltered = false
    var roundTrip: Duration?
    var smoothedRoundTrip: Duration?
    /// When the peer last asked for this pair to be used.
    var peerNominatedAt: Instant?
    /// The peer has checked it.
    var hasBeenChecked = false
    /// Checks that we sent to prompt the peer to nominate it.
    var prompts = 0
    /// For relays: the server has permitted the peer.
    var isPermitted: Bool

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
    func patience(_ settings: ICEConfiguration) -> Duration {
        max(isQuiet ? settings.quietSwitchDelay : settings.switchDelay, (smoothedRoundTrip ?? .zero) * 3)
    }

    mutating func fail() {
        state = .failed
        nextSend = nil
        probes = []
        unansweredSince = nil
        isQuiet = false
        steadySince = nil
        peerNominatedAt = nil
    }

    mutating func note(_ probe: Probe) {
        if probes.count >= Self.maximumProbes { probes.removeFirst() }
        probes.append(probe)
        if unansweredSince == nil { unansweredSince = probe.sentAt }
    }

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
}
