internal import Glibc
internal import Realtime

/// Power in twelve bands from 94 to 3,800 Hz, of two signals at once, every 10 ms over the latest 32 ms.
struct BandSpectrum: ~Copyable, Sendable {
    static var hop: Int { @_noAllocation @_noLocks get { 80 } }
    /// Added to each band: −80 dBFS, less than which no line carries.
    private static var faintest: Float { @_noAllocation @_noLocks get { 1e-8 } }

    private static let sharedWindow: SharedTable = {
        var window = (0..<256).map { Float(0.5 - 0.5 * cos(2 * Double.pi * (Double($0) + 0.5) / 256)) }
        // So that a band's power is that of its samples.
        let scale = (2 / (window.reduce(0) { $0 + $1 * $1 } * 256)).squareRoot()
        for index in 0..<256 { window[index] *= scale }
        return SharedTable(window)
    }()

    private let edges: InlineArray<13, Int> = [3, 6, 10, 14, 19, 25, 32, 41, 52, 66, 82, 100, 122]
    private let window = BandSpectrum.sharedWindow
    /// The latest 256 samples of both signals, from `oldest` on around the end.
    private var heard = FloatBuffer(capacity: 256)
    private var said = FloatBuffer(capacity: 256)
    private var oldest = 0
    private var pair = PairTransform(size: 256)

    /// Logarithms to base 2 of powers; 0 is full scale.
    private(set) var heardBands = InlineArray<12, Float>(repeating: 0)
    private(set) var saidBands = InlineArray<12, Float>(repeating: 0)

    init() {}

    @_noAllocation @_noLocks
    mutating func add(heard heardSample: Float, said saidSample: Float) {
        heard[oldest] = heardSample
        said[oldest] = saidSample
        oldest = (oldest &+ 1) & 255
    }

    /// Computes the bands of the latest samples.
    @_noAllocation @_noLocks
    mutating func measure() {
        for index in 0..<256 {
            let at = (oldest &+ index) & 255
            pair.put(index, heard[at] * window[index], said[at] * window[index])
        }
        pair.transform()
        for band in 0..<12 {
            var heardPower = Self.faintest
            var saidPower = Self.faintest
            for bin in edges[band]..<edges[band &+ 1] {
                let powers = pair.powers(bin)
                heardPower += powers.one * 0.25
                saidPower += powers.other * 0.25
            }
            heardBands[band] = approximateLog2(heardPower)
            saidBands[band] = approximateLog2(saidPower)
        }
    }
}
