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
