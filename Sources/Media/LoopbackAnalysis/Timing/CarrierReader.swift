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

/// Holds captured samples against the ``Carrier`` as it was played: takes readings, looks for it, and finds where it changed.
///
/// Keeps the last captured samples, and learns the channel's filter and the usual readings.
struct CarrierReader: Sendable {
    /// Numbers of played samples that are carrier.
    private let active: Range<Int>
    private let maximumDelay: Int
    private let carrier: Carrier
    private let interpolator = Interpolator()
    private let wideSearch = FourierTransform(minimumCount: 2 * Self.wideRadius + 2 * Self.block)

    /// Captured samples from number `captureStart` on, as far back as they may still be needed.
    private var capture: [Float] = []
    private var captureStart: Int
    /// Samples of the beginning that are not needed and not kept.
    private var skipped: Int
    private var filter = ChannelFilter(gain: 1)
    /// What the filter makes of the carrier's power.
    private var filterPower = 1.0
    private var usual = Usual()
    private var isInverted = false

    /// Samples in one reading: 10 ms.
    static let block = 480
    /// How far from the expected position each reading searches, in samples.
    private static let lagReach = 4
    /// How far a jump is looked for at once, in samples: 100 ms.
    private static let wideRadius = 4_800
    /// Samples in which a lost carrier is looked for: 85 ms.
    static let searchWindow = 4_096
    /// Delays no further apart than this are one, in samples.
    static let sameDelay = 0.3

    /// A carrier that was there and went.
    struct Lost {
        let before: DelayLine
        let start: Int
    }

    /// Typical readings without events.
    private struct Usual {
        var likeness = 0.0
        var likenessSpread = 0.0
        var errorSpread = 0.0
        /// Mean squares, in sample units.
        var residual = 0.0
        var signal = 0.0
        var count = 0
    }

    init(_ carrier: Carrier, active: Range<Int>, maximumDelay: Int) {
        self.carrier = carrier
        self.active = active
        self.maximumDelay = maximumDelay
        captureStart = max(0, active.lowerBound - 2 * Self.block)
        skipped = captureStart
    }

    // MARK: - Captured samples

    /// The end of what is captured.
    var captureEnd: Int { captureStart + capture.count }

    mutating func add(_ samples: Span<Int16>) {
        for index in 0..<samples.count {
            if skipped > 0 { skipped -= 1 } else { capture.append(Float(samples[index])) }
        }
    }

    /// Drops samples before `needed`, and those that are older than two seconds.
    mutating func trim(before needed: Int) {
        let surplus = max(needed, captureEnd - 2 * AudioFormat.sampleRate) - captureStart
        // Moving what remains costs as much as what is dropped, if that is done rarely.
        guard surplus > AudioFormat.sampleRate / 2 else { return }
        capture.removeFirst(min(surplus, capture.count))
        captureStart += surplus
    }

    /// The carrier was found: forgets what was usual, and begins with a filter of this gain.
    mutating func begin(delay: Int, in window: Range<Int>, isInverted: Bool) {
        self.isInverted = isInverted
        usual = Usual()
        let gain = gain(delay, in: window)
        filter = ChannelFilter(gain: gain)
        filterPower = Double(gain * gain)
    }

    // MARK: - Readings

    /// The carrier as it was played, moved by `line` to where it should have been captured.
    private func expected(_ line: DelayLine, _ positions: Range<Int>) -> [Float] {
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
    private func predicted(_ line: DelayLine, _ positions: Range<Int>) -> [Float] {
        let reach = ChannelFilter.reach
        return filter.output(for: expected(line, positions.lowerBound - reach..<positions.upperBound + reach))
    }

    private func captured(_ positions: Range<Int>) -> [Float] {
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

    /// Learns from a reading that is as usual.
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

    /// Fits the channel's filter to the last readings, those before `cursor`: after the sixth, and once more.
    mutating func fit(_ line: DelayLine, before cursor: Int) {
        guard line.age == 6 || line.age == 40, usual.count <= 45 else { return }
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

    // MARK: - Searches

    /// Of two noises' correlations over ``searchWindow`` samples at all delays none comes up to this.
    private static let certainLikeness = 0.25

    /// The delay at which the window holds carrier, sought from 0 to the longest.
    func anywhere(_ window: Range<Int>) -> (delay: Int, isNegative: Bool)? {
        let heard = captured(window)
        let energy = dotProduct(heard, 0, heard, 0, heard.count)
        guard energy > Float(heard.count) * 4 else { return nil }
        let first = max(active.lowerBound, window.lowerBound - maximumDelay)
        let last = min(active.upperBound, window.upperBound)
        guard last - first >= window.count / 2 else { return nil }
        let played = carrier.samples(first..<last)
        let transform = FourierTransform(minimumCount: played.count + heard.count)
        let sums = transform.correlate(heard[...], played[...])
        // Windows that are only partly carrier are allowed: samples outside are silence.
        let lags = 0...played.count
        guard let best = lags.max(by: { abs(sums[$0 % sums.count]) < abs(sums[$1 % sums.count]) }) else { return nil }
        let sum = Double(sums[best % sums.count])
        let scale = (Double(energy) * carrier.rms * carrier.rms * Double(heard.count)).squareRoot()
        guard abs(sum) / scale >= Self.certainLikeness else { return nil }
        let delay = window.lowerBound - first - best
        // The carrier must sound up to behind the window's middle.
        guard delay >= 0, window.upperBound - delay <= active.upperBound else { return nil }
        return (delay, sum < 0)
    }

    /// The delay within 100 ms of what `line` says at which the positions hold carrier.
    func nearby(_ line: DelayLine, _ positions: Range<Int>) -> Int? {
        let heard = captured(positions)
        let energy = Double(dotProduct(heard, 0, heard, 0, heard.count))
        guard energy > 0.1 * usual.signal * Double(heard.count) else { return nil }
        let centre = Int(line.delay(at: Double(positions.lowerBound)).rounded())
        let first = positions.lowerBound - centre - Self.wideRadius
        let played = carrier.samples(first..<first + 2 * Self.wideRadius + heard.count)
        let sums = wideSearch.correlate(heard[...], played[...])
        let sign: Float = isInverted ? -1 : 1
        guard let best = (0..<2 * Self.wideRadius).max(by: { sign * sums[$0] < sign * sums[$1] }) else { return nil }
        let scale = (energy * carrier.rms * carrier.rms * Double(heard.count)).squareRoot()
        // Half of the block may be from before the jump.
        guard Double(sign * sums[best]) / scale >= max(0.3, 0.45 * usual.likeness) else { return nil }
        return positions.lowerBound - first - best
    }

    /// Level of the window against the carrier with that delay, with its sign.
    private func gain(_ delay: Int, in window: Range<Int>) -> Float {
        let heard = captured(window)
        let played = carrier.samples(window.lowerBound - delay..<window.upperBound - delay)
        return dotProduct(heard, 0, played, 0, heard.count) / max(1, dotProduct(played, 0, played, 0, played.count))
    }

    /// Whether these captured samples are at least 20 dB below the carrier.
    func isQuiet(_ positions: Range<Int>) -> Bool {
        let known = positions.clamped(to: captureStart..<captureEnd)
        let heard = captured(known)
        let energy = Double(dotProduct(heard, 0, heard, 0, heard.count))
        return energy <= 0.01 * usual.signal * Double(max(1, heard.count))
    }

    // MARK: - Change points

    private var noise: ChangePoint.Noise { ChangePoint.Noise(residual: usual.residual, signal: usual.signal) }

    /// What happened within the positions, if anything did.
    func change(_ before: DelayLine, _ after: DelayLine, _ positions: Range<Int>) -> LoopbackEvent? {
        let positions = max(positions.lowerBound, captureStart)..<positions.upperBound
        let found = ChangePoint.find(
            captured: captured(positions), before: predicted(before, positions), after: predicted(after, positions),
            noise: noise)
        let start = positions.lowerBound + found.start
        let end = positions.lowerBound + found.end
        return event(start: start, end: end, isSilent: found.isSilent, before, after)
    }

    /// The number of the first captured sample that is not as before, of a carrier that is lost for long.
    func changeBeforeLoss(_ before: DelayLine, _ suspect: Int) -> Int {
        let positions = max(captureStart, suspect - Self.block)..<suspect + 2 * Self.block
        let found = ChangePoint.find(
            captured: captured(positions), before: predicted(before, positions), after: nil, noise: noise)
        return positions.lowerBound + found.start
    }

    /// The gap of a carrier that was lost and found again, certainly on the line `after` at `place`.
    func changeAfterLoss(_ lost: Lost, _ after: DelayLine, _ place: Int) -> LoopbackEvent? {
        guard lost.start - Self.block < captureStart || place - lost.start > AudioFormat.sampleRate else {
            // Perhaps it jumped further than first searched, and there is no hole.
            return change(lost.before, after, lost.start - Self.block..<place + Self.block)
        }
        let positions = max(captureStart, place - Self.searchWindow)..<place + Self.block
        let found = ChangePoint.find(
            captured: captured(positions), before: nil, after: predicted(after, positions), noise: noise)
        let end = positions.lowerBound + found.end
        let isSilent = isQuiet(lost.start..<max(lost.start + 1, end))
        return event(start: lost.start, end: end, isSilent: isSilent, lost.before, after)
    }

    /// Whether the sound between these positions differs from the usual effect of the path.
    ///
    /// A codec's noise comes in bursts: now and then some samples are more like silence, or like the carrier a sample later,
    /// than like the carrier, and at the same places of the carrier each time.
    private func isBelievable(_ hole: Range<Int>, _ jump: Double) -> Bool {
        guard usual.residual > Self.coarse * usual.signal else { return !hole.isEmpty || abs(jump) > Self.sameDelay }
        let changed = min(1, usual.residual / max(1, usual.signal))
        if abs(jump) > max(Self.coarseJump, Self.jumpOfChange * changed) { return true }
        guard changed <= Self.veryCoarse else { return hole.count >= Self.veryCoarseHole }
        return hole.count >= Self.coarseHole || hole.count > 24 && isHole(hole)
    }

    /// Share of the signal's power that differs from the carrier, above which a path counts as coarse: likeness 0.95.
    private static let coarse = 0.1
    /// Smallest jump, and smallest hole without a jump, that counts on a coarse path, in samples.
    private static let coarseJump = 2.0
    private static let coarseHole = 240
    /// The smallest jump, in samples, where nothing is left of the carrier; it is proportional to the changed share. Opus
    /// at 12 kb/s, twice, changes 0.78 and seems to jump by up to 4.3 samples.
    private static let jumpOfChange = 10.0
    /// The same share, and the same hole, of a codec at less than 16 kb/s: it codes most of a frame as other noise, or as silence.
    private static let veryCoarse = 0.6
    private static let veryCoarseHole = 900

    /// Whether these captured samples are at least 13 dB below the carrier, or no louder than the way's own noise.
    private func isHole(_ positions: Range<Int>) -> Bool {
        let known = positions.clamped(to: captureStart..<captureEnd)
        let heard = captured(known)
        let power = Double(dotProduct(heard, 0, heard, 0, heard.count)) / Double(max(1, heard.count))
        return power <= max(0.05 * usual.signal, usual.residual <= Self.coarse * usual.signal ? 2 * usual.residual : 0)
    }

    private func event(
        start: Int, end: Int, isSilent: Bool, _ before: DelayLine, _ after: DelayLine
    ) -> LoopbackEvent? {
        let delayBefore = before.delay(at: Double(start))
        let delayAfter = after.delay(at: Double(end))
        let jump = after.delay(at: Double(start)) - before.delay(at: Double(start))
        guard isBelievable(start..<end, jump) else { return nil }
        let kind: LoopbackEvent.Kind
        if end > start {
            kind = isSilent && isHole(start..<end) ? .silence : .disturbance
        } else {
            kind = jump > 0 ? .repeat : .skip
        }
        return LoopbackEvent(
            kind: kind, position: start, holeSamples: end - start, delayBefore: delayBefore, delayAfter: delayAfter)
    }
}
