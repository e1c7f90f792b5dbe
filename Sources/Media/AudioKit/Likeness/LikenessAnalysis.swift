/// Compares a recording of what came back with what was sent.
///
/// Both begin at the same moment. First the delay of the whole is found, by cross-correlation of both at 8 kHz. Then for
/// each window of 200 ms that holds speech the place around that delay is sought where both are most alike: at 8 kHz,
/// and around the best place there sample by sample at 48 kHz. Gain and a constant offset make no difference.
public struct LikenessAnalysis: Sendable {
    /// The longest delay looked for, in milliseconds.
    public var maximumDelayMilliseconds = 3_000
    /// How far the place of a window may be from the delay of the whole, in milliseconds.
    public var searchMilliseconds = 120
    /// Only this much of what was sent is used to find the delay of the whole, in milliseconds.
    public var alignmentMilliseconds = 30_000

    /// A window holds speech if it is louder than this, …
    static let minimumSpeechDBFS = -50.0
    /// … and not further than this below the loudest windows.
    static let speechRangeDB = 25.0

    static let windowSamples = AudioFormat.samples(milliseconds: 200)

    /// Makes an analysis with the usual limits.
    public init() {}

    /// Compares `received` with `sent`, both mono at 48 kHz.
    ///
    /// - Returns: `nil` if `sent` holds no speech, or `received` is shorter than one window.
    /// - Complexity: O(n log n); about 10 ms for each second of speech in a release build.
    public func compare(sent: [Int16], received: [Int16]) -> LikenessReport? {
        let windows = Self.speechWindows(sent)
        guard !windows.isEmpty, received.count >= Self.windowSamples else { return nil }
        let sentLow = Self.decimated(sent)
        let receivedLow = Self.decimated(received)
        let delay = overallDelay(sentLow, receivedLow) * Self.decimation
        let search = WindowSearch(
            sent: sent, received: received, sentLow: sentLow, receivedLow: receivedLow,
            radius: AudioFormat.samples(milliseconds: searchMilliseconds) / Self.decimation)

        var matches: [WindowSearch.Match] = []
        var unheard = 0
        for start in windows {
            if start + delay + Self.windowSamples > received.count {
                unheard += 1
            } else {
                matches.append(search.bestMatch(windowAt: start, delay: delay))
            }
        }
        guard !matches.isEmpty else {
            return LikenessReport(
                delayMilliseconds: nil, likeness: 0, tenthPercentile: 0, speechWindows: 0, foundWindows: 0,
                unheardWindows: unheard)
        }
        let likenesses = matches.map(\.likeness).sorted()
        let found = matches.filter { $0.likeness >= LikenessReport.foundLikeness }
        let delays = found.map { Double($0.delay) * 1_000 / Double(AudioFormat.sampleRate) }.sorted()
        return LikenessReport(
            delayMilliseconds: found.count * 4 >= matches.count ? Self.quantile(delays, 0.5) : nil,
            likeness: Self.quantile(likenesses, 0.5),
            tenthPercentile: Self.quantile(likenesses, 0.1),
            speechWindows: matches.count, foundWindows: found.count, unheardWindows: unheard)
    }

    /// Starts of the windows of `samples`, one after the other, that hold speech.
    static func speechWindows(_ samples: [Int16]) -> [Int] {
        let starts = Array(stride(from: 0, through: samples.count - windowSamples, by: windowSamples))
        let levels = starts.map { start in
            var meter = LevelMeter()
            meter.add(samples.span.extracting(start..<start + windowSamples))
            return meter.rmsDBFS
        }
        guard !levels.isEmpty else { return [] }
        let gate = max(minimumSpeechDBFS, quantile(levels.sorted(), 0.95) - speechRangeDB)
        return zip(starts, levels).filter { $0.1 >= gate }.map(\.0)
    }

    // MARK: - Delay of the whole

    /// 48 kHz to 8 kHz.
    static let decimation = 6

    /// `samples` at 8 kHz, as the difference of neighbours, which takes offsets out and makes peaks sharp.
    static func decimated(_ samples: [Int16]) -> [Float] {
        let count = samples.count / decimation
        var low = [Float](repeating: 0, count: count)
        var previous: Float = 0
        for index in 0..<count {
            var sum: Int32 = 0
            for offset in 0..<decimation { sum += Int32(samples[index * decimation + offset]) }
            let value = Float(sum) / Float(decimation)
            low[index] = index == 0 ? 0 : value - previous
            previous = value
        }
        return low
    }

    /// The delay at which all of `received` is most like all of `sent`, in samples at 8 kHz.
    private func overallDelay(_ sent: [Float], _ received: [Float]) -> Int {
        let rate = AudioFormat.sampleRate / Self.decimation
        let maximumDelay = maximumDelayMilliseconds * rate / 1_000
        let sentPart = sent.prefix(alignmentMilliseconds * rate / 1_000)
        let receivedPart = received.prefix(sentPart.count + maximumDelay)
        let transform = FourierTransform(minimumCount: sentPart.count + receivedPart.count)
        let correlation = transform.correlate(sentPart, receivedPart)
        var best = 0
        for delay in 1...min(maximumDelay, receivedPart.count) where correlation[delay] > correlation[best] {
            best = delay
        }
        return best
    }

    /// The value below which `share` of the sorted `values` lie.
    static func quantile(_ values: [Double], _ share: Double) -> Double {
        guard let last = values.last else { return 0 }
        let place = share * Double(values.count - 1)
        let index = Int(place)
        guard index + 1 < values.count else { return last }
        return values[index] + (values[index + 1] - values[index]) * (place - Double(index))
    }
}
