/// Whether something happened while a part of the signal was played, by the carrier before and behind it.
struct SectionTrust {
    private let pieces: [CarrierPiece]
    private let rate: Double
    private let steadiness: Double
    private let interruptions: [Range<Int>]
    /// Changes of the delay between two pieces, greater than what is taken for none.
    let changes: [DelayChange]

    /// - Parameters:
    ///   - pieces: The carrier, in order.
    ///   - rate: Drift, in samples a sample.
    ///   - steadiness: Changes of the delay up to here are none, in samples.
    ///   - interruptions: Captured samples in which the card is known to have been interrupted.
    init(pieces: [CarrierPiece], rate: Double, steadiness: Double, interruptions: [Range<Int>]) {
        (self.pieces, self.rate, self.steadiness, self.interruptions) = (pieces, rate, steadiness, interruptions)
        changes = zip(pieces, pieces.dropFirst()).compactMap { before, after in
            before.change(to: after, rate: rate).flatMap { abs($0.samples) > steadiness ? $0 : nil }
        }
    }

    /// The delay where `played` was played: that of the last carrier heard before it.
    func line(before played: Range<Int>) -> DelayLine? {
        guard var line = pieces.last(where: { $0.played.upperBound <= played.lowerBound && $0.line != nil })?.line
        else {
            return nil
        }
        line.rate = rate
        return line
    }

    /// Whether the card was interrupted while these played samples were captured.
    func interruption(of played: Range<Int>, _ line: DelayLine) -> WithholdingReason? {
        let start = Int(line.place(of: played.lowerBound))
        let heard = start..<max(start + 1, Int(line.place(of: played.upperBound)))
        let hits = interruptions.count { $0.overlaps(heard) }
        return hits > 0 ? .interrupted(times: hits) : nil
    }

    /// Why the result for these played samples cannot be trusted; nil if it can.
    func reason(_ played: Range<Int>) -> WithholdingReason? {
        guard let line = line(before: played) else { return .carrierLost }
        if let reason = interruption(of: played, line) { return reason }
        guard let before = pieces.last(where: { $0.played.upperBound <= played.lowerBound }),
            let after = pieces.first(where: { $0.played.lowerBound >= played.upperBound }),
            let change = before.change(to: after, rate: rate)
        else { return .carrierLost }
        return abs(change.samples) > steadiness ? .delayChanged(samples: change.samples) : nil
    }
}
