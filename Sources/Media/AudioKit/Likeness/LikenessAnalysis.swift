/// Compares a recording of the returned sound with the sent sound.
///
/// Both begin at the same moment. First the overall delay is found by cross-correlation at 8 kHz. Then, for each window
/// of 200 ms with speech, the position of highest correlation is searched at 8 kHz, and around the best one sample by
/// sample at 48 kHz: near the overall delay, and near the delay of the neighbouring windows, because a jitter buffer
/// that grows in the call moves all that follows. Gain and a constant offset make no difference.
public struct LikenessAnalysis: Sendable {
    /// The longest delay looked for, in milliseconds.
    public var maximumDelayMilliseconds = 3_000
    /// How far the delay of a window may differ from the overall delay or its neighbour's, in milliseconds.
    public var searchMilliseconds = 120
    /// Only this much of what was sent is used to find the delay of the whole, in milliseconds.
    public var alignmentMilliseconds = 30_000

    /// A window holds speech if it is louder than this, …
    static let minimumSpeechDBFS = -50.0
    /// … and not further than this below the loudest windows.
    static let speechRangeDB = 25.0

    package static let windowSamples = AudioFormat.samples(milliseconds: 200)

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

        let heard = windows.filter { $0 + delay + Self.windowSamples <= received.count }
        let unheard = windows.count - heard.count
        let matches = search.matches(windowsAt: heard, delay: delay)
        guard !matches.isEmpty else {
            return LikenessReport(
                delayMilliseconds: nil, likeness: 0, tenthPercentile: 0, speechWindows: 0, foundWindows: 0,
                unheardWindows: unheard)
        }
        let likenesses = matches.map(\.likeness).sorted()
        let found = matches.filter(\.isFound)
        let delays = found.map { Double($0.delay) * 1_000 / Double(AudioFormat.sampleRate) }.sorted()
        return LikenessReport(
            delayMilliseconds: found.count * 4 >= matches.count ? Self.quantile(delays, 0.5) : nil,
            likeness: Self.quantile(likenesses, 0.5),
            tenthPercentile: Self.quantile(likenesses, 0.1),
            speechWindows: matches.count, foundWindows: found.count, unheardWindows: unheard)
    }

    /// Starts of the windows of `samples`, one after the other, that hold speech.
    package static func speechWindows(_ samples: [Int16]) -> [Int] {
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

    /// `samples` at 8 kHz, below the band's edge by a triangular filter, and without what is constant.
    static func decimated(_ samples: [Int16]) -> [Float] {
        let count = samples.count / decimation
        var low = [Float](repeating: 0, count: count)
        var sums = (previous: Float(0), current: Float(0))
        var mean: Float = 0
        for index in 0..<count {
            // Two sums of neighbouring sixths, weighted towards where they meet, make the triangle.
            var rising: Int32 = 0
            var falling: Int32 = 0
            for offset in 0..<decimation {
                let sample = Int32(samples[index * decimation + offset])
                rising += sample * Int32(offset + 1)
                falling += sample * Int32(decimation - 1 - offset)
            }
            sums = (sums.current, Float(falling))
            let value = (Float(rising) + sums.previous) / Float(decimation * decimation)
            mean += (value - mean) * meanRate
            low[index] = value - mean
        }
        return low
    }

    /// A high-pass filter of about 50 Hz at 8 kHz.
    private static let meanRate: Float = 0.04

    /// The delay at which all of `received` is most like all of `sent`, in samples at 8 kHz.
    private func overallDelay(_ sent: [Float], _ received: [Float]) -> Int {
        let rate = AudioFormat.sampleRate / Self.decimation
        let maximumDelay = maximumDelayMilliseconds * rate / 1_000
        let sentPart = sent.prefix(alignmentMilliseconds * rate / 1_000)
        let receivedPart = received.prefix(sentPart.count + maximumDelay)
        let transform = FourierTransform(minimumCount: sentPart.count + receivedPart.count)
        let correlation = transform.correlate(sentPart, receivedPart)
        let places = correlation[...min(maximumDelay, receivedPart.count)]
        let strongest = places.max() ?? 0
        guard strongest > 0 else { return 0 }
        // The sent sound may repeat the same words: of several good positions the earliest is right. The best one near
        // it is used, because a voice is similar to itself one pitch period earlier.
        let first = places.firstIndex { $0 >= strongest * Self.goodShare } ?? 0
        let near = places.dropFirst(first).prefix(searchMilliseconds * rate / 1_000)
        return near.indices.max { near[$0] < near[$1] } ?? first
    }

    /// A position is good if its correlation is at least this share of the highest.
    private static let goodShare: Float = 0.7

    /// The value below which `share` of the sorted `values` lie.
    static func quantile(_ values: [Double], _ share: Double) -> Double {
        guard let last = values.last else { return 0 }
        let place = share * Double(values.count - 1)
        let index = Int(place)
        guard index + 1 < values.count else { return last }
        return values[index] + (values[index + 1] - values[index]) * (place - Double(index))
    }
}

/// How like what was sent the sound is that came back.
public struct LikenessReport: Equatable, Sendable {
    /// Time from a sound in what was sent to the same sound in what came back: the median over the windows that were
    /// found again. `nil` if too few were.
    public var delayMilliseconds: Double?
    /// Median over all speech windows of the best normalised cross-correlation, 0…1.
    public var likeness: Double
    /// A tenth of the windows is less like than this.
    public var tenthPercentile: Double
    /// Windows of what was sent that hold speech and were compared.
    public var speechWindows: Int
    /// Of these, windows with a likeness of at least ``foundLikeness``.
    public var foundWindows: Int
    /// Windows with speech whose position is after the end of the recording. They are not compared.
    public var unheardWindows: Int

    /// The least likeness of a window that counts as found.
    public static let foundLikeness = 0.5
}
