/// What the rule of WebRTC's NetEQ, as published, would aim at on the same arrivals: for comparison, and to see that
/// the profiles are of the kind it was measured on. An approximation of its underrun rule alone: it lacks the optimizer
/// for reordered packets, the buffer's own control and the stretching, and says nothing about quality.
enum ReferenceDelay {
    private static let bucketMs = 20.0
    private static let forgetFactor = 0.983
    private static let quantile = 0.95

    /// Mean delay in milliseconds from arrival to play at that target.
    ///
    /// - Parameter transits: Delay of each 20 ms packet, in the order sent, in milliseconds.
    static func mean(_ transits: [Double]) -> Double {
        var histogram = [Double](repeating: 0, count: 100)
        var worst = 0.0
        var target = 80.0
        var updates = 0.0
        var sum = 0.0
        for (index, transit) in transits.enumerated() {
            // Relative to the fastest of the last 2 s; one value for each half second: its largest.
            let fastest = transits[max(index - 100, 0)...index].min() ?? transit
            worst = max(worst, transit - fastest)
            if index % 25 == 24 {
                updates += 1
                let kept = updates == 1 ? 0 : min(forgetFactor, 1 - 2 / (updates + 1))
                for bucket in histogram.indices { histogram[bucket] *= kept }
                histogram[min(Int(worst / bucketMs), 99)] += 1 - kept
                worst = 0
                target = Double(bucket(histogram) + 1) * bucketMs
            }
            sum += target
        }
        let fastest = transits.min() ?? 0
        let count = Double(max(transits.count, 1))
        return sum / count - (transits.reduce(0, +) / count - fastest)
    }

    private static func bucket(_ histogram: [Double]) -> Int {
        let total = histogram.reduce(0, +)
        var seen = 0.0
        for (index, weight) in histogram.enumerated() {
            seen += weight
            if seen >= quantile * total { return index }
        }
        return histogram.count - 1
    }
}
