/// Finds samples that did not fit.
public struct ClippingCounter: Equatable, Sendable {
    /// Samples in runs of at least two at the largest or smallest number there is.
    public private(set) var samples = 0
    /// Such runs.
    public private(set) var runs = 0
    private var run = 0

    /// Makes a counter that has seen nothing.
    public init() {}

    /// Looks at the next samples.
    public mutating func add(_ captured: Span<Int16>) {
        for index in 0..<captured.count {
            let sample = captured[index]
            guard sample >= 32_767 || sample <= -32_767 else {
                run = 0
                continue
            }
            run += 1
            if run == 2 { (runs, samples) = (runs + 1, samples + 2) } else if run > 2 { samples += 1 }
        }
    }
}
