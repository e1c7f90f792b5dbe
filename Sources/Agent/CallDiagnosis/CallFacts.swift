public import CallControl

/// What a diagnosis knows of a call: the outcome, and what its media counted. Times are in milliseconds.
public struct CallFacts: Hashable, Sendable {
    /// Who called.
    public var direction: CallRecord.Direction
    /// The other side.
    public var peer: String
    /// Why it ended.
    public var reason: CallEndReason
    /// Who brought about the end.
    public var endedBy: CallRecord.Ender
    /// Why it failed, if that is known.
    public var cause: CallFailureCause?
    /// What went wrong, in the words of the call's record.
    public var error: String?
    /// Why this device hung up; nil if it did not.
    public var hangUpCause: CallRecord.HangUpCause?
    /// From the invite to the answer; nil if there was none.
    public var answeredAfter: Int?
    /// From the invite until the call could carry media; nil if it never could.
    public var establishedAfter: Int?
    /// From the invite until media flowed both ways; nil if it never did.
    public var flowingAfter: Int?
    /// For how long the call was established.
    public var duration: Int
    /// What its media counted; nil if there was none, or the record is older than that.
    public var media: MediaFacts?
    /// The same second by second; nil likewise.
    public var timeline: CallTimeline?
    /// What happened in the call, and when.
    public var moments: [CallMoment] = []
    /// Whether it has not ended.
    public var isRunning = false
    /// How soon a program or bot answered, of which 95 % of its answers were faster; nil without answers that were measured.
    public var slowResponse: Int?

    /// A call that ended, of which nothing else is known.
    public init(
        _ direction: CallRecord.Direction, peer: String, reason: CallEndReason, endedBy: CallRecord.Ender, duration: Int
    ) {
        self.direction = direction
        self.peer = peer
        self.reason = reason
        self.endedBy = endedBy
        self.duration = duration
    }

    /// How the call ended, in one sentence.
    public var outcome: String {
        let call = direction == .incoming ? "The call from \(peer)" : "The call to \(peer)"
        let seconds = "\(Double(duration / 100) / 10) s"
        if isRunning {
            return establishedAfter == nil ? "\(call) is being set up." : "\(call) has lasted \(seconds) so far."
        }
        switch (reason, endedBy) {
        case (.completed, .remote): return "\(call) lasted \(seconds); the other side hung up."
        case (.completed, .local): return "\(call) lasted \(seconds); this side hung up\(hangUpReason)."
        case (.completed, .neither): return "\(call) lasted \(seconds)."
        case (.declined, .local): return "\(call) was declined here, by the user or the answer policy."
        case (.declined, _): return "\(call) was declined."
        case (.busy, .local): return "\(call) was refused as busy: this device had as many calls as it takes."
        case (.busy, _): return "\(call) found the other side busy."
        case (.noAnswer, _): return "\(call) was not answered in time."
        case (.cancelled, .local): return "\(call) was cancelled here before it was established."
        case (.cancelled, _): return "\(call) was cancelled by the other side before it was established."
        case (.acceptedElsewhere, _): return "\(call) was answered on another device."
        case (.declinedElsewhere, _): return "\(call) was declined on another device."
        case (.dialFailed, _): return "\(call) could not be set up by the calling side."
        case (.acceptFailed, _): return "\(call) could not be set up by the answering side."
        case (.connectionLost, _): return "\(call) lasted \(seconds); then its media was lost."
        case (.disconnected, _): return "\(call) ended because a side left the service."
        case (.internalError, _): return "\(call) ended by a fault of this device."
        }
    }

    /// The last moment of a kind.
    func last(_ kind: CallMoment.Kind) -> CallMoment? { moments.last { $0.kind == kind } }

    /// The first moment of a kind.
    func first(_ kind: CallMoment.Kind) -> CallMoment? { moments.first { $0.kind == kind } }

    private var hangUpReason: String {
        switch hangUpCause {
        case .some(.program): " because the program or bot was done"
        case .playbackEnded: " because the file had been played"
        case .maximumDuration: " because the call had its longest duration (behaviour.max_call_seconds)"
        case .request: " because its user, or a program that controls it, asked for that"
        case nil: moments.contains { $0.kind == .shutDown } ? " because the device was being stopped" : ""
        }
    }
}
