import ExchangeCore

/// Call records that one transaction removes: some hundred, because removing a million takes 25 s, in which the exchange
/// answers no request.
final class RecordRemoval {
    static let rowsPerCommit = 500

    let limits: RecordLimits
    /// Records from before this time are removed: milliseconds since 1970. `nil` if there are none.
    var outdated: Int64?
    private(set) var rowsLeft = rowsPerCommit

    /// - Parameter outdated: What earlier transactions have left.
    init(_ limits: RecordLimits, outdated: Int64?) {
        self.limits = limits
        self.outdated = outdated
    }

    /// How many of `rows` may be removed. At least one, so that each new record can replace an old one.
    func take(_ rows: Int) -> Int {
        let taken = min(rows, max(1, rowsLeft))
        rowsLeft -= min(taken, rowsLeft)
        return taken
    }
}
