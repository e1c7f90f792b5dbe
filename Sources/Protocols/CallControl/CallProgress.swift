public import Timekeeping

/// Where a call stands, for those who look at it from outside.
public enum CallProgress: Hashable, Sendable {
    /// It is ours, and nobody has taken it yet.
    case calling
    /// It came in, and waits for an answer.
    case ringing
    /// Somebody took it; media does not flow both ways yet.
    case connecting
    /// Media has flowed both ways since then.
    case established(since: Instant)
    /// It is over but for what the service has yet to hear.
    case ending
}
