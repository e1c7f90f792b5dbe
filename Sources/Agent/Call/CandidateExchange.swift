internal import CallControl
internal import JSON

/// Candidates on their way between a call's two sides (contract CALL-1; docs/protocol.md, "Calls with WebRTC"): local
/// ones are held until the peer can assign them to this device, the peer's until the connection knows the peer.
public struct CandidateExchange: Sendable {
    private var ours: [JSONValue] = []
    private var theirs: [JSONValue] = []
    private var canSend = false
    private var canTake = false

    /// Candidates held in either direction; more are dropped, because no honest peer has as many.
    private static let limit = 64

    /// A local candidate was found, given as the value of a `candidate` attribute; nil means that there are no more.
    /// The sent text begins with the attribute's name, like that of browsers (RFC 8839 §5.1, RTCIceCandidateInit).
    ///
    /// - Returns: What is to be sent now.
    mutating func found(_ candidate: String?, mid: String) -> [JSONValue] {
        let data: JSONValue = [
            "candidate": .string(candidate.map { "candidate:" + $0 } ?? ""), "sdpMid": .string(mid), "sdpMLineIndex": 0,
        ]
        guard canSend else {
            if ours.count < Self.limit { ours.append(data) }
            return []
        }
        return [data]
    }

    /// The peer can assign our candidates: returns those to send now.
    mutating func peerKnowsCall() -> [JSONValue] {
        canSend = true
        defer { ours = [] }
        return ours
    }

    /// A candidate of the peer arrived.
    ///
    /// - Returns: The candidates to pass to the connection now.
    mutating func received(_ data: JSONValue) -> [Candidate] {
        guard canTake else {
            if theirs.count < Self.limit { theirs.append(data) }
            return []
        }
        return Candidate(data).map { [$0] } ?? []
    }

    /// The connection knows the peer's description: what is to be given to it now.
    mutating func peerIsKnown() -> [Candidate] {
        canTake = true
        defer { theirs = [] }
        return theirs.compactMap(Candidate.init)
    }

    /// The peer's candidates.
    public enum Candidate: Equatable, Sendable {
        /// The value of a `candidate` attribute.
        case candidate(String)
        /// There are no more.
        case end

        init?(_ data: JSONValue) {
            guard let text = data["candidate"]?.string else { return nil }
            self = text.isEmpty ? .end : .candidate(text)
        }
    }
}
