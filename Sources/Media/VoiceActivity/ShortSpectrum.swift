internal import Glibc
internal import Realtime

/// Magnitudes of 128 samples at 8 kHz, of two pieces at once, as a spectrum of 256 samples at 16 kHz has them.
struct ShortSpectrum: Sendable {
    private var window = InlineArray<128, Float>(repeating: 0)
    private var cosines = InlineArray<64, Float>(repeating: 0)
    private var sines = InlineArray<64, Float>(repeating: 0)
    private var reversed = InlineArray<128, UInt8>(repeating: 0)
    private var real = InlineArray<128, Float>(repeating: 0)
    private var imaginary = InlineArray<128, Float>(repeating: 0)

    init() {
        for index in 0..<128 {
            // At 16 kHz there are twice as many samples.
            window[index] = Float(1 - cos(2 * Double.pi * Double(index) / 128))
            var bits = UInt8(index)
            for _ in 0..<7 {
                reversed[index] = reversed[index] << 1 | bits & 1
                bits >>= 1
            }
        }
        for index in 0..<64 {
            cosines[index] = Float(cos(2 * Double.pi * Double(index) / 128))
            sines[index] = Float(-sin(2 * Double.pi * Double(index) / 128))
        }
    }

    /// Measures two pieces of 128 samples, which begin at `piece` and `other`. Writes 64 magnitudes of each, 62.5 Hz apart.
    ///
    /// One transform of complex numbers does both: one piece is their real part, the other the imaginary.
    @_noAllocation @_noLocks
    mutating func measure(_ numbers: inout FloatBuffer, _ piece: Int, _ other: Int, into start: Int) {
        for index in 0..<128 {
            let to = Int(reversed[index])
            real[to] = numbers[piece &+ index] * window[index]
            imaginary[to] = numbers[other &+ index] * window[index]
        }
        transform()
        for bin in 0..<64 {
            let mirror = (128 &- bin) & 127
            let (evenReal, oddImaginary) = (real[bin] + real[mirror], imaginary[bin] - imaginary[mirror])
            let (oddReal, evenImaginary) = (imaginary[bin] + imaginary[mirror], real[mirror] - real[bin])
            numbers[start &+ bin] = squareRoot(of: evenReal * evenReal + oddImaginary * oddImaginary) * 0.5
            numbers[start &+ 64 &+ bin] = squareRoot(of: oddReal * oddReal + evenImaginary * evenImaginary) * 0.5
        }
    }

    @_noAllocation @_noLocks
    private mutating func transform() {
        var half = 1
        while half < 128 {
            let step = 64 / half
            var from = 0
            while from < 128 {
                for index in 0..<half {
                    let low = from &+ index
                    let high = low &+ half
                    let cosine = cosines[index &* step]
                    let sine = sines[index &* step]
                    let r = real[high] * cosine - imaginary[high] * sine
                    let i = real[high] * sine + imaginary[high] * cosine
                    real[high] = real[low] - r
                    imaginary[high] = imaginary[low] - i
                    real[low] += r
                    imaginary[low] += i
                }
                from &+= half &* 2
            }
            half &*= 2
        }
    }
}
