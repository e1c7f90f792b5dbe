/// How far ahead a card's buffer is filled: the default, or the requested value; and up to twice more, if the thread
/// that serves the card turns out to be delayed for longer.
struct BufferChoice {
    /// The value to request; nil for the default.
    private(set) var milliseconds: Double?
    /// The results with less.
    private(set) var facts: [LoopbackRun.Fact] = []
    private let isFixed: Bool
    private var triesLeft = 2

    /// The least and the most that is chosen.
    private static let least = 80.0
    private static let most = 300.0

    /// - Parameter asked: The user's value, which is not changed; nil for none.
    init(asked: Double?) { (milliseconds, isFixed) = (asked, asked != nil) }

    /// Whether another try would have more.
    private func canGrow(from ahead: Double) -> Bool { !isFixed && triesLeft > 0 && ahead < Self.most - 1 }

    /// Whether what happened so far is a reason to measure again with more.
    func isWorthAnother(_ trouble: CardTrouble) -> Bool {
        trouble.ownXruns > 0 && canGrow(from: trouble.aheadMilliseconds)
    }

    /// Chooses more: four times as much, and half as much again as the longest hold-up, within bounds.
    mutating func grow(after trouble: CardTrouble) {
        triesLeft -= 1
        let wanted = max(Self.least, 4 * trouble.aheadMilliseconds, 1.5 * trouble.longestHoldUpMilliseconds)
        let chosen = min(Self.most, (wanted / 10).rounded(.up) * 10)
        let before = milliseconds
        milliseconds = chosen
        facts.append(
            .init(
                "Measured again",
                "with \(Int(chosen)) ms ahead: with \(before.map { "\(Int($0)) ms" } ?? "as much as usual") the card ran empty, "
                    + "because this machine kept Handset's thread waiting for "
                    + "\(Int(trouble.longestHoldUpMilliseconds.rounded())) ms"))
    }
}
