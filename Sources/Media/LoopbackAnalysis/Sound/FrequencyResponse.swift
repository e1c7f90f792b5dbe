internal import AudioKit
internal import Glibc

/// The frequency response of a path, from a captured sweep.
public struct FrequencyResponse: Equatable, Sendable {
    /// One frequency.
    public struct Point: Equatable, Sendable {
        /// In Hz.
        public let frequencyHz: Double
        /// Gain from played to captured, in dB.
        public let gainDB: Double
        /// Harmonics 2 to 5 of this frequency against it, in percent; nil below 50 Hz, and where the third lies above 20 kHz.
        public let distortionPercent: Double?
    }

    /// 12 points an octave, 20 Hz to 20 kHz; each the mean over its twelfth.
    public let points: [Point]
    /// The widest range around 1 kHz in which the gain is within 3 dB of that at 1 kHz, in Hz.
    public let bandHz: ClosedRange<Double>
    /// The lowest and the highest frequency whose gain is at most ``edgeDB`` below the median of speech, in Hz: the band of
    /// a path, including dips within it.
    public let edgesHz: ClosedRange<Double>
    /// How far the response falls at the ends of the band, in dB.
    public static let edgeDB = 10.0
    /// Greatest gain less least from 300 Hz to 3.4 kHz, in dB.
    public let speechRippleDB: Double

    /// Samples in front of the sweep and behind it that are analysed with it.
    static let lead = 4_800
    static let tail = 19_200

    /// Deconvolves a captured sweep.
    ///
    /// - Parameter captured: The captured sweep without delay and drift, with ``lead`` samples before it and ``tail``
    ///   after it.
    /// - Returns: nil if there is nothing of a sweep in it.
    init?(captured: [Float]) {
        let transform = FourierTransform(minimumCount: captured.count)
        guard let response = Self.impulseResponse(captured, transform) else { return nil }
        let linear = Self.spectrum(response, around: 0, before: 480, count: 16_384)
        let harmonics = (2...5).map { order in
            let place = -Int((Sweep.growthSamples * log(Double(order))).rounded())
            return (order, Self.spectrum(response, around: place, before: 512, count: 4_096))
        }
        let points = (0...119).map { index -> Point in
            let frequency = 20 * pow(2, Double(index) / 12)
            let power = Self.power(linear, frequency, of: 16_384)
            var distortion = 0.0
            for (order, spectrum) in harmonics where frequency * Double(order) < 20_000 {
                distortion += Self.power(spectrum, frequency * Double(order), of: 4_096)
            }
            let share = power > 0 ? (distortion / power).squareRoot() * 100 : 0
            return Point(
                frequencyHz: frequency, gainDB: 10 * log10(max(1e-12, power)),
                distortionPercent: frequency < 6_600 && frequency >= 50 && share > 0 ? share : nil)
        }
        let middle = points.min { abs($0.frequencyHz - 1_000) < abs($1.frequencyHz - 1_000) }
        guard let middle, middle.gainDB > -80 else { return nil }
        self.points = points
        bandHz = Self.band(points, middle)
        let speech = points.filter { (300...3_400).contains($0.frequencyHz) }.map(\.gainDB)
        speechRippleDB = (speech.max() ?? 0) - (speech.min() ?? 0)
        let usual = speech.sorted()[speech.count / 2]
        let passed = points.filter { $0.gainDB >= usual - Self.edgeDB }.map(\.frequencyHz)
        edgesHz = (passed.first ?? 0)...(passed.last ?? 0)
    }

    /// The highest frequency whose gain is at most `decibels` below the median of speech, in Hz.
    public func upperEdgeHz(at decibels: Double) -> Double {
        let speech = points.filter { (300...3_400).contains($0.frequencyHz) }.map(\.gainDB).sorted()
        let usual = speech[speech.count / 2]
        return points.last { $0.gainDB >= usual - decibels }?.frequencyHz ?? 0
    }

    /// The greatest difference of gain between two responses of one way, from 300 Hz to 3.4 kHz, in dB.
    func greatestSpeechDifferenceDB(to other: FrequencyResponse) -> Double? {
        zip(points, other.points).filter { (300...3_400).contains($0.0.frequencyHz) }
            .map { abs($0.0.gainDB - $0.1.gainDB) }.max()
    }

    private static func band(_ points: [Point], _ middle: Point) -> ClosedRange<Double> {
        func isWithin(_ point: Point) -> Bool { abs(point.gainDB - middle.gainDB) <= 3 }
        let low = points.filter { $0.frequencyHz <= middle.frequencyHz }.reversed().prefix(while: isWithin).last
        let high = points.filter { $0.frequencyHz >= middle.frequencyHz }.prefix(while: isWithin).last
        return (low ?? middle).frequencyHz...(high ?? middle).frequencyHz
    }

    /// Captured over played, in the frequency domain; negative times are at the end.
    private static func impulseResponse(_ captured: [Float], _ transform: FourierTransform) -> [Float]? {
        let count = transform.count
        // Both at once: the played one is the real part, the captured one the imaginary part.
        var real = [Float](repeating: 0, count: count)
        var imaginary = [Float](repeating: 0, count: count)
        for index in 0..<Sweep.count { real[lead + index] = Float(Sweep.value(at: index)) }
        for index in captured.indices { imaginary[index] = captured[index] }
        transform.transform(&real, &imaginary)
        var played = [(Float, Float)](repeating: (0, 0), count: count)
        var heard = played
        var strongest: Float = 0
        for index in 0..<count {
            let mirror = (count - index) % count
            played[index] = ((real[index] + real[mirror]) / 2, (imaginary[index] - imaginary[mirror]) / 2)
            heard[index] = ((imaginary[index] + imaginary[mirror]) / 2, (real[mirror] - real[index]) / 2)
            strongest = max(strongest, played[index].0 * played[index].0 + played[index].1 * played[index].1)
        }
        guard strongest > 0 else { return nil }
        for index in 0..<count {
            let (a, b) = (played[index], heard[index])
            // The sweep's power falls by 30 dB from 20 Hz to 20 kHz; what is far below that is not of it.
            let power = a.0 * a.0 + a.1 * a.1 + strongest * 1e-6
            real[index] = (b.0 * a.0 + b.1 * a.1) / power
            imaginary[index] = (b.1 * a.0 - b.0 * a.1) / power
        }
        transform.transform(&imaginary, &real)
        return real.map { $0 / Float(count) }
    }

    /// Power over frequency of a piece of the response, faded at its ends.
    private static func spectrum(_ response: [Float], around place: Int, before: Int, count: Int) -> [Double] {
        let transform = FourierTransform(minimumCount: count)
        var real = [Float](repeating: 0, count: transform.count)
        var imaginary = real
        let length = count == 16_384 ? 8_192 : 2_048
        for index in 0..<length {
            let source = (place - before + index + 2 * response.count) % response.count
            let edge = min(Double(index) / Double(before), Double(length - 1 - index) / Double(length / 4))
            let fade = edge >= 1 ? 1 : 0.5 - 0.5 * cos(Double.pi * edge)
            real[index] = response[source] * Float(fade)
        }
        transform.transform(&real, &imaginary)
        return (0...count / 2).map { Double(real[$0] * real[$0] + imaginary[$0] * imaginary[$0]) }
    }

    /// Mean over the twelfth of an octave around `frequency`, or between the two points next to it.
    private static func power(_ spectrum: [Double], _ frequencyHz: Double, of count: Int) -> Double {
        let spacing = Double(AudioFormat.sampleRate) / Double(count)
        let low = frequencyHz * pow(2, -1.0 / 24) / spacing
        let high = frequencyHz * pow(2, 1.0 / 24) / spacing
        let bins = Int(low.rounded(.up))...max(Int(low.rounded(.up)), min(spectrum.count - 1, Int(high)))
        if high - low >= 2, bins.count > 1 { return bins.reduce(0) { $0 + spectrum[$1] } / Double(bins.count) }
        let place = frequencyHz / spacing
        let index = min(spectrum.count - 2, Int(place))
        return spectrum[index] + (spectrum[index + 1] - spectrum[index]) * (place - Double(index))
    }
}
