public import Core

/// How many wrong PINs a mailbox takes: of one caller, by the name that it has, and of all together.
///
/// A PIN of six digits, tried 480 times a day, is found after three years on average. Callers may choose their names, so the limit of all
/// counts; an owner who is known by name is not kept out by it for longer than until the next try is free.
public struct PINAttempts: Sendable {
    /// Wrong PINs of one caller: 5 at once, and one more each quarter of an hour.
    static let ofCaller = TokenBucket.Rate(burst: 5, every: .seconds(900))
    /// Of all callers: 20 at once, and one more every three minutes.
    static let ofAll = TokenBucket.Rate(burst: 20, every: .seconds(180))
    /// Callers that are remembered; beyond that the one whose limit is free the soonest is forgotten.
    static let mostCallers = 256

    private var all = TokenBucket()
    private var callers: [String: TokenBucket] = [:]

    /// No PIN was tried.
    public init() {}

    /// Whether a caller may try a PIN now. A try counts until it is known to be right.
    public mutating func admit(_ caller: String, at now: Instant) -> Bool {
        var own = callers[caller] ?? TokenBucket()
        guard own.count(Self.ofCaller, at: now) > 0, all.take(Self.ofAll, at: now) else { return false }
        _ = own.take(Self.ofCaller, at: now)
        callers[caller] = own
        if callers.count > Self.mostCallers,
            let least = callers.filter({ $0.key != caller }).max(by: {
                $0.value.count(Self.ofCaller, at: now) < $1.value.count(Self.ofCaller, at: now)
            })?.key
        {
            callers[least] = nil
        }
        return true
    }

    /// The PIN of a caller was right.
    public mutating func accept(_ caller: String) {
        all.putBack(Self.ofAll)
        callers[caller] = nil
    }
}
