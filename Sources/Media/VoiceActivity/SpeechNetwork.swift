internal import Realtime
internal import Glibc
internal import Core

/// A published network that distinguishes speech from other sound: the 16 kHz branch of Silero VAD 6.2, with the part of its weights
/// that concerns what is below 4 kHz. Every 32 ms it judges the latest 36.
///
/// Magnitudes of four short spectra go through four layers of convolution into a recurrent layer of 128 cells. Sound at 8 kHz is
/// to it sound at 16 kHz that has nothing above 4. ``SpeechWeights`` has the numbers, which all calls share; a call has
/// the state of the cells.
struct SpeechNetwork: ~Copyable, Sendable {
    /// Samples at 8 kHz from one judgement to the next.
    private static var step: Int { @_noAllocation @_noLocks get { 256 } }
    /// Samples of the step before that count, too.
    private static var context: Int { @_noAllocation @_noLocks get { 32 } }

    // Where in the buffer what is.
    /// The last samples of the step before, the step, and behind it its mirror image: 320.
    private static var samples: Int { @_noAllocation @_noLocks get { 0 } }
    /// Six spectra of 64 bins, of which the first and the last are silent: what is before and after.
    private static var spectra: Int { @_noAllocation @_noLocks get { 320 } }
    /// Results of the first layer, 128 at each of five moments, of which the first is before the step.
    private static var first: Int { @_noAllocation @_noLocks get { 704 } }
    /// Results of the second layer, 64 at each of two moments, and of the third, 64.
    private static var second: Int { @_noAllocation @_noLocks get { 1_344 } }
    private static var third: Int { @_noAllocation @_noLocks get { 1_472 } }
    /// Results of the fourth layer, and behind them what the 128 cells put out: what the cells take in.
    private static var input: Int { @_noAllocation @_noLocks get { 1_536 } }
    private static var output: Int { @_noAllocation @_noLocks get { 1_664 } }
    /// The cells' gates: input, forget, cell and output.
    private static var gates: Int { @_noAllocation @_noLocks get { 1_792 } }
    private static var memory: Int { @_noAllocation @_noLocks get { 2_304 } }
    private static var end: Int { @_noAllocation @_noLocks get { 2_432 } }

    private let weights = SpeechWeights.shared
    private var spectrum = ShortSpectrum()
    private var numbers = FloatBuffer(capacity: SpeechNetwork.end)
    private var count = 0

    /// The logarithm of the odds that the latest step was speech.
    private(set) var odds: Float = -10

    init() {}

    /// What one of 128 cells puts out, −1…1.
    @_noAllocation @_noLocks
    func output(_ cell: Int) -> Float { numbers[Self.output &+ cell] }

    /// Takes a sample at 8 kHz, at −1…1. Returns whether it completes a step, which is judged then.
    @_noAllocation @_noLocks
    mutating func take(_ sample: Float) -> Bool {
        numbers[Self.samples &+ Self.context &+ count] = sample
        count &+= 1
        guard count == Self.step else { return false }
        count = 0
        measure()
        convolve()
        remember()
        return true
    }

    @_noAllocation @_noLocks
    private mutating func measure() {
        let end = Self.samples &+ Self.context &+ Self.step
        for index in 0..<Self.context { numbers[end &+ index] = numbers[end &- 1 &- index] }
        for pair in 0..<2 {
            let piece = Self.samples &+ pair &* 128
            spectrum.measure(&numbers, piece, piece &+ 64, into: Self.spectra &+ (pair &* 2 &+ 1) &* 64)
        }
        for index in 0..<Self.context {
            numbers[Self.samples &+ index] = numbers[Self.samples &+ Self.step &+ index]
        }
    }

    @_noAllocation @_noLocks
    private mutating func convolve() {
        for moment in 0..<4 {
            SpeechLayer.first.rectify(
                &numbers, from: Self.spectra &+ moment &* 64, by: weights, into: Self.first &+ (moment &+ 1) &* 128)
        }
        for moment in 0..<2 {
            SpeechLayer.second.rectify(
                &numbers, from: Self.first &+ moment &* 256, by: weights, into: Self.second &+ moment &* 64)
        }
        SpeechLayer.third.rectify(&numbers, from: Self.second, by: weights, into: Self.third)
        SpeechLayer.fourth.rectify(&numbers, from: Self.third, by: weights, into: Self.input)
    }

    @_noAllocation @_noLocks
    private mutating func remember() {
        SpeechLayer.cells.multiply(&numbers, from: Self.input, by: weights, into: Self.gates)
        let last = SpeechLayer.odds
        odds = weights[last.bias]
        for cell in 0..<128 {
            let gate = Self.gates &+ cell
            let entering = sigmoid(numbers[gate]) * hyperbolicTangent(numbers[gate &+ 256])
            let kept = sigmoid(numbers[gate &+ 128]) * numbers[Self.memory &+ cell] + entering
            let value = sigmoid(numbers[gate &+ 384]) * hyperbolicTangent(kept)
            numbers[Self.memory &+ cell] = kept
            numbers[Self.output &+ cell] = value
            odds += max(0, value) * weights[last.weights &+ cell]
        }
    }
}

/// Magnitudes of 128 samples at 8 kHz, of two pieces at once, as a spectrum of 256 samples at 16 kHz has them.
struct ShortSpectrum: ~Copyable, Sendable {
    private static let sharedWindow = SharedTable(
        // At 16 kHz there are twice as many samples.
        (0..<128).map { Float(1 - cos(2 * Double.pi * Double($0) / 128)) })

    private let window = ShortSpectrum.sharedWindow
    private var pair = PairTransform(size: 128)

    /// Measures two pieces of 128 samples, which begin at `piece` and `other`. Writes 64 magnitudes of each, 62.5 Hz apart.
    @_noAllocation @_noLocks
    mutating func measure(_ numbers: inout FloatBuffer, _ piece: Int, _ other: Int, into start: Int) {
        for index in 0..<128 {
            pair.put(index, numbers[piece &+ index] * window[index], numbers[other &+ index] * window[index])
        }
        pair.transform()
        for bin in 0..<64 {
            let powers = pair.powers(bin)
            numbers[start &+ bin] = squareRoot(of: powers.one) * 0.5
            numbers[start &+ 64 &+ bin] = squareRoot(of: powers.other) * 0.5
        }
    }
}

/// The numbers of ``SpeechNetwork``: from Silero VAD, copyright 2020-present Silero Team, under the MIT license (see NOTICE).
enum SpeechWeights {
    /// All layers, in the order of ``SpeechLayer``. The first detector of the process makes it, 0.8 MB that stay.
    static let shared = SharedTable(numbers())

    private static func numbers() -> [Float] {
        guard let bytes = Base64.bytes(of: weights.utf8), let floats = Base64.floats(of: scales) else {
            preconditionFailure("The weights are written in base 64")
        }
        var numbers = [Float](repeating: 0, count: SpeechLayer.odds.end)
        var (weight, scale) = (0, 0)
        for layer in SpeechLayer.all {
            for index in 0..<layer.inputs * layer.outputs {
                let at = 2 * (weight + index)
                let value = Float(Int16(bitPattern: UInt16(bytes[at]) | UInt16(bytes[at + 1]) << 8))
                numbers[layer.weights + index] = value * floats[scale + index % layer.outputs]
            }
            weight += layer.inputs * layer.outputs
            for output in 0..<layer.outputs { numbers[layer.bias + output] = floats[scale + layer.outputs + output] }
            scale += 2 * layer.outputs
        }
        precondition(
            2 * weight == bytes.count && scale == floats.count, "Each layer has its weights, scales and biases")
        return numbers
    }
}

extension Base64 {
    /// Little-endian floating point numbers; nil if the text is no base 64.
    static func floats(of text: String) -> [Float]? {
        guard let bytes = bytes(of: text.utf8) else { return nil }
        return stride(from: 0, to: bytes.count & ~3, by: 4).map { at in
            let low = UInt32(bytes[at]) | UInt32(bytes[at + 1]) << 8
            return Float(bitPattern: low | UInt32(bytes[at + 2]) << 16 | UInt32(bytes[at + 3]) << 24)
        }
    }
}
