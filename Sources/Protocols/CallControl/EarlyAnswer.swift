/// An answer that comes before the call is answered, so that the caller can hear what the other side plays meanwhile (early media).
public enum EarlyAnswer {
    /// The type of the call signal that carries it: `data` is an answer. Another one may follow, and so does the callee's answer.
    public static let signal = "earlyAnswer"
}
