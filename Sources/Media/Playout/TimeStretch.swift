/// Shortens or lengthens waiting sound by a pitch period, cross-faded where the waveform is most similar (WSOLA).
///
/// The cut lies at the first waiting sample. The comparison includes sound that was already played, so that little
/// sound needs to wait.
enum TimeStretch {
    /// The piece whose removal or repetition is least audible.
    private struct Match {
        var lag: Int
        /// Normalised cross-correlation, −1…1.
        var correlation: Float
    }

    /// Played samples compared before the cut.
    private static var context: Int { @_noAllocation @_noLocks get { 480 } }
    private static var overlap: Int { @_noAllocation @_noLocks get { PlayoutPolicy.overlap } }
    private static var compared: Int { @_noAllocation @_noLocks get { context + overlap } }
    /// The coarse search runs at 12 kHz.
    private static var decimation: Int { @_noAllocation @_noLocks get { 4 } }

    /// Takes out at most `limit` samples.
    ///
    /// - Parameter threshold: The least correlation, −1…1, for a cut to be made.
    /// - Returns: Samples taken out; 0 if no cut was good enough.
    @_noAllocation @_noLocks
    static func accelerate(_ buffer: inout SyncBuffer, atMost limit: Int, threshold: Float) -> Int {
        let longest = min(min(limit, PlayoutPolicy.longestStretch), buffer.count &- overlap)
        guard longest >= PlayoutPolicy.shortestStretch else { return 0 }
        let match = bestMatch(buffer, direction: 1, lags: PlayoutPolicy.shortestStretch...longest)
        guard match.correlation >= threshold else { return 0 }
        let lag = match.lag
        var mixed = InlineArray<240, Int16>(repeating: 0)
        for index in 0..<overlap {
            mixed[index] = crossfade(buffer[index], buffer[index &+ lag], index, match.correlation)
        }
        buffer.moveTail(from: lag, to: 0)
        var samples = buffer.waiting
        for index in 0..<overlap { samples[index] = mixed[index] }
        return lag
    }

    /// Puts in `shortest` samples or more, up to the longest stretch.
    ///
    /// - Returns: Samples put in; 0 if nothing was good enough.
    @_noAllocation @_noLocks
    static func decelerate(_ buffer: inout SyncBuffer, atLeast shortest: Int, threshold: Float) -> Int {
        let shortest = max(shortest, PlayoutPolicy.shortestStretch)
        let isPossible = shortest <= PlayoutPolicy.longestStretch && buffer.count >= overlap
        guard isPossible, buffer.space >= PlayoutPolicy.longestStretch else { return 0 }
        let match = bestMatch(buffer, direction: -1, lags: shortest...PlayoutPolicy.longestStretch)
        guard match.correlation >= threshold else { return 0 }
        let lag = match.lag

        var mixed = InlineArray<240, Int16>(repeating: 0)
        for index in 0..<overlap {
            mixed[index] = crossfade(buffer[index], buffer[index &- lag], index, match.correlation)
        }
        var repeated = InlineArray<720, Int16>(repeating: 0)
        for index in 0..<lag { repeated[index] = buffer[index &- lag] }
        buffer.moveTail(from: 0, to: lag)
        var samples = buffer.waiting
        for index in 0..<lag { samples[index] = repeated[index] }
        for index in 0..<overlap { samples[index] = mixed[index] }
        return lag
    }

    /// Fades from `old` to `new`; keeps the loudness where the two do not add up in phase.
    @_noAllocation @_noLocks
    private static func crossfade(_ old: Int16, _ new: Int16, _ index: Int, _ correlation: Float) -> Int16 {
        let rise = (Float(index) + 0.5) / Float(overlap)
        let fall = 1 - rise
        let alike = max(correlation, 0)
        let loudness = root(rise * rise + fall * fall + 2 * rise * fall * alike)
        let mixed = (Float(old) * fall + Float(new) * rise) / max(loudness, 0.5)
        return Int16(min(max(mixed, -32_768), 32_767))
    }

    /// The lag at which the waveform around the cut is most like itself.
    ///
    /// - Parameter direction: 1 compares with what follows, −1 with what was played.
    @_noAllocation @_noLocks
    private static func bestMatch(
        _ samples: borrowing SyncBuffer, direction: Int, lags: ClosedRange<Int>
    ) -> Match {
        let start = 0 &- context
        // Where the region that all lags touch begins, and where the anchor lies in it.
        let regionStart = direction > 0 ? start : start &- lags.upperBound
        let regionLength = compared &+ lags.upperBound
        let anchor = start &- regionStart
        var coarse = InlineArray<360, Float>(repeating: 0)
        let coarseLength = regionLength / decimation
        for index in 0..<coarseLength {
            let base = regionStart &+ index &* decimation
            var sum: Float = 0
            for step in 0..<decimation { sum += Float(samples[base &+ step]) }
            coarse[index] = sum
        }

        let length = compared / decimation &- 1
        let power = Self.power(&coarse, anchor / decimation, length)
        var best = Match(lag: lags.upperBound, correlation: -1)
        var coarseLag = lags.lowerBound / decimation
        while coarseLag &* decimation <= lags.upperBound {
            let first = anchor / decimation
            let second = first &+ direction &* coarseLag
            if second >= 0, second &+ length <= coarseLength {
                let correlation = correlate(&coarse, first, second, length, power)
                if correlation > best.correlation {
                    best = Match(lag: coarseLag &* decimation, correlation: correlation)
                }
            }
            coarseLag &+= 1
        }
        return refine(best, samples, start, direction, lags)
    }

    /// Looks around a lag found at 12 kHz with every sample.
    @_noAllocation @_noLocks
    private static func refine(
        _ coarse: Match, _ samples: borrowing SyncBuffer, _ start: Int, _ direction: Int, _ lags: ClosedRange<Int>
    ) -> Match {
        var best = Match(lag: min(max(coarse.lag, lags.lowerBound), lags.upperBound), correlation: -1)
        let lowest = max(coarse.lag &- decimation, lags.lowerBound)
        let highest = min(coarse.lag &+ decimation, lags.upperBound)
        // The reference for all lags.
        var first: Float = 1
        for index in 0..<compared {
            let left = Float(samples[start &+ index])
            first += left * left
        }
        var lag = lowest
        while lag <= highest {
            var cross: Float = 0
            var second: Float = 1
            for index in 0..<compared {
                let left = Float(samples[start &+ index])
                let right = Float(samples[start &+ index &+ direction &* lag])
                cross += left * right
                second += right * right
            }
            let correlation = cross / root(first * second)
            if correlation > best.correlation { best = Match(lag: lag, correlation: correlation) }
            lag &+= 1
        }
        return best
    }

    /// Changes nothing; what is only borrowed is copied for each element that is read (``InPlace``).
    @_noAllocation @_noLocks
    private static func correlate(
        _ values: inout InlineArray<360, Float>, _ left: Int, _ right: Int, _ length: Int, _ leftPower: Float
    ) -> Float {
        var cross: Float = 0
        var second: Float = 1
        for index in 0..<length {
            let b = values[right &+ index]
            cross += values[left &+ index] * b
            second += b * b
        }
        return cross / root(leftPower * second)
    }

    /// As ``correlate(_:_:_:_:_:)``.
    @_noAllocation @_noLocks
    private static func power(_ values: inout InlineArray<360, Float>, _ start: Int, _ length: Int) -> Float {
        var sum: Float = 1
        for index in 0..<length { sum += values[start &+ index] * values[start &+ index] }
        return sum
    }

    /// One machine instruction. (The checker knows it only as a function of the standard library.)
    @_semantics("no_performance_analysis") @inline(__always)
    private static func root(_ value: Float) -> Float { value.squareRoot() }
}
