internal import Glibc
internal import Realtime

/// A Fourier transform of two real signals at once: one is the real part of what is transformed, the other the imaginary.
struct PairTransform: ~Copyable, Sendable {
    /// Samples of each signal: a power of two, up to 256.
    private let size: Int
    private let factors: SharedTable
    private var reversed = InlineArray<256, UInt8>(repeating: 0)
    private var real: FloatBuffer
    private var imaginary: FloatBuffer

    private static let factors128 = SharedTable(factors(128))
    private static let factors256 = SharedTable(factors(256))

    /// Of each stage the cosines, and then the sines.
    private static func factors(_ size: Int) -> [Float] {
        var numbers: [Float] = []
        var half = 1
        while half < size {
            let step = size / 2 / half
            let angles = (0..<half).map { 2 * Double.pi * Double($0 * step) / Double(size) }
            numbers += angles.map { Float(cos($0)) } + angles.map { Float(-sin($0)) }
            half *= 2
        }
        return numbers
    }

    /// - Parameter size: 128 or 256.
    init(size: Int) {
        precondition(size == 128 || size == 256, "there are factors for 128 and 256")
        self.size = size
        factors = size == 128 ? Self.factors128 : Self.factors256
        real = FloatBuffer(capacity: size)
        imaginary = FloatBuffer(capacity: size)
        for index in 0..<size {
            var (bits, place) = (index, 0)
            for _ in 0..<size.trailingZeroBitCount {
                place = place << 1 | bits & 1
                bits >>= 1
            }
            reversed[index] = UInt8(place)
        }
    }

    /// Sets a sample of each signal for the next transform.
    @_noAllocation @_noLocks
    mutating func put(_ index: Int, _ one: Float, _ other: Float) {
        let place = Int(reversed[index])
        real[place] = one
        imaginary[place] = other
    }

    @_noAllocation @_noLocks
    mutating func transform() {
        var (half, place) = (1, 0)
        while half < size {
            real.join(imaginary: &imaginary, half: half, by: factors, at: place)
            place &+= 2 &* half
            half &*= 2
        }
    }

    /// Four times the power of each signal at a frequency: `bin` of `size`.
    @_noAllocation @_noLocks
    func powers(_ bin: Int) -> (one: Float, other: Float) {
        let mirror = (size &- bin) & (size &- 1)
        let (evenReal, oddImaginary) = (real[bin] + real[mirror], imaginary[bin] - imaginary[mirror])
        let (oddReal, evenImaginary) = (imaginary[bin] + imaginary[mirror], real[mirror] - real[bin])
        return (
            evenReal * evenReal + oddImaginary * oddImaginary, oddReal * oddReal + evenImaginary * evenImaginary
        )
    }
}
