internal import Glibc

/// Power in twelve bands from 94 to 3,800 Hz, of two signals at once, every 10 ms over the latest 32 ms.
struct BandSpectrum: Sendable {
    static var bandCount: Int { @_noAllocation @_noLocks get { 12 } }
    static var hop: Int { @_noAllocation @_noLocks get { 80 } }
    private static var size: Int { @_noAllocation @_noLocks get { 256 } }
    /// Added to each band: −80 dBFS, less than which no line carries.
    private static var faintest: Float { @_noAllocation @_noLocks get { 1e-8 } }

    private let edges: InlineArray<13, Int> = [3, 6, 10, 14, 19, 25, 32, 41, 52, 66, 82, 100, 122]
    private var window = InlineArray<256, Float>(repeating: 0)
    private var cosines = InlineArray<128, Float>(repeating: 0)
    private var sines = InlineArray<128, Float>(repeating: 0)
    private var reversed = InlineArray<256, UInt8>(repeating: 0)
    /// The latest 256 samples of both signals, from `oldest` on around the end.
    private var heard = InlineArray<256, Float>(repeating: 0)
    private var said = InlineArray<256, Float>(repeating: 0)
    private var oldest = 0
    private var real = InlineArray<256, Float>(repeating: 0)
    private var imaginary = InlineArray<256, Float>(repeating: 0)

    /// Logarithms to base 2 of powers; 0 is full scale.
    private(set) var heardBands = InlineArray<12, Float>(repeating: 0)
    private(set) var saidBands = InlineArray<12, Float>(repeating: 0)

    init() {
        var power: Float = 0
        for index in 0..<256 {
            window[index] = Float(0.5 - 0.5 * cos(2 * Double.pi * (Double(index) + 0.5) / 256))
            power += window[index] * window[index]
            reversed[index] = UInt8(truncatingIfNeeded: index).bitReversed
        }
        // So that a band's power is that of its samples.
        let scale = (2 / (power * 256)).squareRoot()
        for index in 0..<256 { window[index] *= scale }
        for index in 0..<128 {
            cosines[index] = Float(cos(2 * Double.pi * Double(index) / 256))
            sines[index] = Float(-sin(2 * Double.pi * Double(index) / 256))
        }
    }

    @_noAllocation @_noLocks
    mutating func add(heard heardSample: Float, said saidSample: Float) {
        heard[oldest] = heardSample
        said[oldest] = saidSample
        oldest = (oldest &+ 1) & 255
    }

    /// Computes the bands of the latest samples. One transform of complex numbers does both signals: one is its real part.
    @_noAllocation @_noLocks
    mutating func measure() {
        for index in 0..<256 {
            let at = (oldest &+ index) & 255
            let to = Int(reversed[index])
            real[to] = heard[at] * window[index]
            imaginary[to] = said[at] * window[index]
        }
        transform()
        for band in 0..<12 {
            var heardPower = Self.faintest
            var saidPower = Self.faintest
            for bin in edges[band]..<edges[band &+ 1] {
                let mirror = 256 &- bin
                let evenReal = real[bin] + real[mirror]
                let oddImaginary = imaginary[bin] - imaginary[mirror]
                let oddReal = imaginary[bin] + imaginary[mirror]
                let evenImaginary = real[mirror] - real[bin]
                heardPower += (evenReal * evenReal + oddImaginary * oddImaginary) * 0.25
                saidPower += (oddReal * oddReal + evenImaginary * evenImaginary) * 0.25
            }
            heardBands[band] = approximateLog2(heardPower)
            saidBands[band] = approximateLog2(saidPower)
        }
    }

    @_noAllocation @_noLocks
    private mutating func transform() {
        var half = 1
        while half < 256 {
            let step = 128 / half
            var start = 0
            while start < 256 {
                for index in 0..<half {
                    let low = start &+ index
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
                start &+= half &* 2
            }
            half &*= 2
        }
    }
}

extension UInt8 {
    fileprivate var bitReversed: UInt8 {
        var bits = self
        var result: UInt8 = 0
        for _ in 0..<8 {
            result = result << 1 | bits & 1
            bits >>= 1
        }
        return result
    }
}
