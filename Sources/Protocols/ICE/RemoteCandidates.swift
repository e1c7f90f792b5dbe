internal import Core

/// The peer's candidates that can be paired: each address once, at most ``ICEConfiguration/maximumRemoteCandidates``.
struct RemoteCandidates: Sendable {
    /// What is to be paired with the local candidates.
    enum Addition: Sendable {
        case new
        /// It was learned from a check, and is now signaled.
        case signaled
    }

    private(set) var all: [Candidate] = []
    /// Candidates that have only a name, which were reported for resolution.
    private var names: [Candidate] = []
    /// The peer has no more.
    private(set) var hasEnded = false

    mutating func end() { hasEnded = true }

    /// The candidate with this address.
    func candidate(at address: SocketAddress) -> Candidate? { all.first { $0.address == address } }

    /// Takes a candidate, learned from a check or signaled.
    ///
    /// - Parameter fragment: The peer's user name fragment, if it is known.
    /// - Returns: nil if it is known, or one that is not taken.
    mutating func add(
        _ candidate: Candidate, fragment: String?, _ statistics: inout ICEStatistics
    ) -> Addition? {
        guard let address = candidate.address, !address.isUnusableAsPeer, candidate.component == 1,
            candidate.transport == "udp",
            isAwaited(candidate) || !hasEnded || candidate.type == .peerReflexive
        else {
            statistics.candidatesIgnored += 1
            return nil
        }
        if let own = candidate.usernameFragment, let fragment, own != fragment {
            statistics.candidatesIgnored += 1
            return nil
        }
        if let known = all.firstIndex(where: { $0.address == address }) {
            // The signaled candidate replaces the one that was learned from a check.
            guard all[known].type == .peerReflexive, candidate.type != .peerReflexive else { return nil }
            all[known] = candidate
            return .signaled
        }
        guard all.count < ICEConfiguration.maximumRemoteCandidates else {
            statistics.candidatesOverLimit += 1
            return nil
        }
        all.append(candidate)
        return .new
    }

    /// Whether a candidate that has only a name is worth looking up. A flood of names stops at the limit, too.
    mutating func takesName(of candidate: Candidate, _ statistics: inout ICEStatistics) -> Bool {
        guard candidate.component == 1, candidate.transport == "udp", !hasEnded else {
            statistics.candidatesIgnored += 1
            return false
        }
        guard names.count < ICEConfiguration.maximumRemoteCandidates else {
            statistics.candidatesOverLimit += 1
            return false
        }
        names.append(candidate)
        return true
    }

    /// Whether a candidate was signaled in time by name, and is now resolved.
    private func isAwaited(_ candidate: Candidate) -> Bool {
        guard let address = candidate.address else { return false }
        return names.contains { $0.resolved(to: address) == candidate }
    }

    /// The peer's fragment is now known: removes the candidates of other generations, and returns them.
    mutating func removeAll(except fragment: String, _ statistics: inout ICEStatistics) -> [Candidate] {
        let stale = all.filter { $0.usernameFragment.map { $0 != fragment } ?? false }
        all.removeAll { stale.contains($0) }
        statistics.candidatesIgnored += stale.count
        return stale
    }
}
