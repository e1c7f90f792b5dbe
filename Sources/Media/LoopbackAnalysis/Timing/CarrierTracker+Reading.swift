internal import AudioKit
internal import Glibc

/// A reading of one block, before it is known whether it is as usual.
struct BlockReading {
    /// Normalised correlation at the best lag, −1…1.
    var likeness: Double
    /// How much longer the delay is than expected, in samples, within the lags looked at.
    var error: Double
    var isAtEdge: Bool
    var gainDB: Double
    /// Mean square of the difference from the expected signal, in total and in the worst sixteen samples.
    var residual: Double
    var worstResidual: Double
    /// Mean square of what was captured.
    var signal: Double
}

extension CarrierTracker {
    /// The carrier as it was played, moved by `line` to where it should have been captured.
    func expected(_ line: DelayLine, _ positions: Range<Int>) -> [Float] {
        let first = Double(positions.lowerBound) - line.delay(at: Double(positions.lowerBound))
        let last = Double(positions.upperBound) - line.delay(at: Double(positions.upperBound))
        let start = Int(min(first, last).rounded(.down)) - Interpolator.reach
        let end = Int(max(first, last).rounded(.up)) + Interpolator.reach + 1
        let played = carrier.samples(start..<end)
        var made = [Float](repeating: 0, count: positions.count)
        var index = 0
        while index < made.count {
            let position = Double(positions.lowerBound + index)
            made[index] = interpolator.value(of: played, at: position - line.delay(at: position) - Double(start))
            index += 1
        }
        return made
    }

    /// The same behind the channel's filter.
    func predicted(_ line: DelayLine, _ positions: Range<Int>) -> [Float] {
        let reach = ChannelFilter.reach
        return filter.output(for: expected(line, positions.lowerBound - reach..<positions.upperBound + reach))
    }

    func captured(_ positions: Range<Int>) -> [Float] {
        let from = positions.lowerBound - captureStart
        return (from..<from + positions.count).map { capture.indices.contains($0) ? capture[$0] : 0 }
    }

    /// Holds the block at `start` against what `line` expects there.
    func read(_ line: DelayLine, at start: Int) -> BlockReading {
        let (count, reach) = (Self.block, Self.lagReach)
        let played = predicted(line, start - reach..<start + count + reach)
        let heard = captured(start..<start + count)
        let sums = (-reach...reach).map { lag in dotProduct(heard, 0, played, reach - lag, count) }
        let heardEnergy = dotProduct(heard, 0, heard, 0, count)
        let playedEnergy = dotProduct(played, reach, played, reach, count)
        guard heardEnergy > 0, playedEnergy > 0, let best = sums.indices.max(by: { sums[$0] < sums[$1] }) else {
            return BlockReading(
                likeness: 0, error: 0, isAtEdge: true, gainDB: -100, residual: 0, worstResidual: 0, signal: 0)
        }
        let isAtEdge = best == 0 || best == sums.count - 1
        var (peak, offset) = (Double(sums[best]), 0.0)
        if !isAtEdge {
            let (left, middle, right) = (Double(sums[best - 1]), Double(sums[best]), Double(sums[best + 1]))
            let bend = left - 2 * middle + right
            offset = bend < 0 ? max(-0.5, min(0.5, (left - right) / (2 * bend))) : 0
            peak = middle - (left - right) * offset / 4
        }
        let scale = Float(peak) / playedEnergy
        let (residual, worst) = residuals(heard, played, scale, lag: best - reach)
        return BlockReading(
            likeness: min(1, peak / Double(heardEnergy * playedEnergy).squareRoot()),
            error: Double(best - reach) + offset, isAtEdge: isAtEdge,
            gainDB: 10 * log10(max(1e-10, Double(heardEnergy / playedEnergy) * filterPower)),
            residual: residual, worstResidual: worst, signal: Double(heardEnergy) / Double(count))
    }

    private func residuals(_ heard: [Float], _ played: [Float], _ scale: Float, lag: Int) -> (Double, Double) {
        var (total, worst): (Float, Float) = (0, 0)
        var start = 0
        while start < heard.count {
            var sum: Float = 0
            var index = start
            while index < start + 16 {
                let difference = heard[index] - scale * played[index + Self.lagReach - lag]
                sum += difference * difference
                index += 1
            }
            total += sum
            worst = max(worst, sum)
            start += 16
        }
        return (Double(total) / Double(heard.count), Double(worst) / 16)
    }

    // MARK: - What is usual

    /// Whether there is carrier at all, though its delay may be off by some samples.
    func isLikely(_ reading: BlockReading) -> Bool {
        !reading.isAtEdge && reading.likeness >= max(0.2, usual.likeness - max(0.15, 6 * usual.likenessSpread))
    }

    /// Whether `reading` is like those before it.
    func isUsual(_ reading: BlockReading, _ line: DelayLine) -> Bool {
        let isYoung = line.age < 4
        let spread = max(0.1, 5 * usual.likenessSpread)
        guard !reading.isAtEdge, reading.likeness >= max(0.2, usual.count < 3 ? 0 : usual.likeness - spread) else {
            return false
        }
        guard abs(reading.error) <= (isYoung ? 1.5 : max(0.35, 6 * usual.errorSpread)) else { return false }
        guard usual.count > 12, line.age > 1 else { return true }
        // One sample of 16 that is wrong by its whole size, or ten times what the way's noise makes of them.
        return reading.worstResidual <= max(10 * usual.residual, 0.05 * usual.signal)
    }

    mutating func learn(_ reading: BlockReading, _ line: DelayLine) {
        usual.count += 1
        let share = max(0.02, 1 / Double(usual.count))
        usual.likenessSpread += (abs(reading.likeness - usual.likeness) - usual.likenessSpread) * share
        if usual.count == 1 { usual.likenessSpread = 0.1 }
        usual.likeness += (reading.likeness - usual.likeness) * share
        if line.age > 4 { usual.errorSpread += (abs(reading.error) - usual.errorSpread) * share }
        // Before the filter is known, what differs says nothing of the noise.
        if usual.count == 8 || usual.count == 42 { usual.residual = reading.residual }
        usual.residual += (reading.residual - usual.residual) * share
        usual.signal += (reading.signal - usual.signal) * share
    }

    /// Fits the channel's filter to the last readings.
    mutating func fit(_ line: DelayLine) {
        let length = min(line.age, 8) * Self.block
        let positions = cursor - length..<cursor
        guard positions.lowerBound >= captureStart else { return }
        let reach = ChannelFilter.reach
        let around = expected(line, positions.lowerBound - reach..<positions.upperBound + reach)
        guard let fitted = ChannelFilter(captured: captured(positions), expected: around) else { return }
        filter = fitted
        let output = fitted.output(for: around)
        let power = dotProduct(around, reach, around, reach, positions.count)
        if power > 0 { filterPower = Double(dotProduct(output, 0, output, 0, output.count) / power) }
    }
}
