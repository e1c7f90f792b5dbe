internal import Glibc
internal import Realtime

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
