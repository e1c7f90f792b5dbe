public import Timekeeping

/// A call's progress, as seen from outside.
public enum CallProgress: Hashable, Sendable {
    /// It is outgoing, and nobody has taken it yet.
    case calling
    /// It came in, and waits for an answer.
    case ringing
    /// Somebody took it; media does not flow both ways yet.
    case connecting
    /// Media has flowed both ways since then.
    case established(since: Instant)
    /// It is over, except that the service has not been told everything yet.
    case ending
}
