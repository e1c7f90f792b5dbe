internal import AudioKit
internal import Glibc

extension CarrierTracker {
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
    func gain(_ delay: Int, in window: Range<Int>) -> Float {
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
