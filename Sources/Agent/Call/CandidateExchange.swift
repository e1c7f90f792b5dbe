internal import CallControl

/// Candidates on their way between a call's two sides (contract CALL-1; docs/protocol.md, "Calls with WebRTC"): local
/// ones are held until the peer can assign them to this device, the peer's until the connection knows the peer.
struct CandidateExchange: Sendable {
    private var ours: [CallCandidate] = []
    private var theirs: [CallCandidate] = []
    private var canSend = false
    private var canTake = false

    /// Candidates held in either direction; more are dropped, because no honest peer has as many.
    private static let limit = 64

    /// A local candidate was found, given as the value of a `candidate` attribute; nil means that there are no more.
    ///
    /// - Returns: What is to be sent now.
    mutating func found(_ candidate: String?, mid: String) -> [CallCandidate] {
        let found = candidate.map { CallCandidate.candidate("candidate:" + $0, mid: mid) } ?? .end(mid: mid)
        guard canSend else {
            if ours.count < Self.limit { ours.append(found) }
            return []
        }
        return [found]
    }

    /// The peer can assign our candidates: returns those to send now.
    mutating func peerKnowsCall() -> [CallCandidate] {
        canSend = true
        defer { ours = [] }
        return ours
    }

    /// A candidate of the peer arrived.
    ///
    /// - Returns: The candidates to pass to the connection now.
    mutating func received(_ candidate: CallCandidate) -> [CallCandidate] {
        guard canTake else {
            if theirs.count < Self.limit { theirs.append(candidate) }
            return []
        }
        return [candidate]
    }

    /// The connection knows the peer's description: what is to be given to it now.
    mutating func peerIsKnown() -> [CallCandidate] {
        canTake = true
        defer { theirs = [] }
        return theirs
    }
}
