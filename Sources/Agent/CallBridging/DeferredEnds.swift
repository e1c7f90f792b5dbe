public import CallParticipation

/// Ends of participants that came while their calls were elsewhere: joined, parked, or about to be handed over.
///
/// The end of a flow, a mailbox or a program ends its call. A caller who talks to a person meanwhile must not be cut off by that, so
/// the end waits until the call is back.
public struct DeferredEnds: Sendable {
    private var ends: [CallID: (event: ParticipantEvent, kind: ParticipantKind)] = [:]

    /// Defers none.
    public init() {}

    /// Keeps an event, if it is the end of a participant; the first one counts.
    ///
    /// - Returns: False if it is not an end: it is to be handled now.
    public mutating func keep(_ event: ParticipantEvent, from kind: ParticipantKind) -> Bool {
        guard case .done(let call, _) = event else { return false }
        if ends[call] == nil { ends[call] = (event, kind) }
        return true
    }

    /// Takes the end of a call that is back.
    public mutating func take(_ call: CallID) -> (event: ParticipantEvent, kind: ParticipantKind)? {
        ends.removeValue(forKey: call)
    }
}
