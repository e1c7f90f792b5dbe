/// The background in each band: the least power of the last 1.3 s, as minimum statistics find it (Martin, 2001). It
/// falls at once, and rises when the sound was louder for that long.
struct BandFloor: Sendable {
    /// Hops whose least value is kept as one.
    private static var blockLength: Int { @_noAllocation @_noLocks get { 16 } }
    /// Noise lies above its own minima: by 3 dB, after smoothing.
    private static var bias: Float { @_noAllocation @_noLocks get { 1 } }

    private var smoothed = InlineArray<12, Float>(repeating: 0)
    /// The minima of the latest eight blocks, band by band.
    private var minima = InlineArray<96, Float>(repeating: 0)
    private var current = InlineArray<12, Float>(repeating: 0)
    private var hop = 0
    private var block = 0
    private var isEmpty = true

    /// Logarithms to base 2.
    private(set) var bands = InlineArray<12, Float>(repeating: 0)

    @_noAllocation @_noLocks
    init() {}

    @_noAllocation @_noLocks
    mutating func follow(_ powers: InlineArray<12, Float>) {
        if isEmpty {
            isEmpty = false
            for band in 0..<12 {
                smoothed[band] = powers[band]
                current[band] = powers[band]
                for index in 0..<8 { minima[index &* 12 &+ band] = powers[band] }
            }
        }
        for band in 0..<12 {
            smoothed[band] += (powers[band] - smoothed[band]) * 0.25
            current[band] = min(current[band], smoothed[band])
            var least = current[band]
            for index in 0..<8 { least = min(least, minima[index &* 12 &+ band]) }
            bands[band] = least + Self.bias
        }
        hop &+= 1
        guard hop == Self.blockLength else { return }
        hop = 0
        for band in 0..<12 {
            minima[block &* 12 &+ band] = current[band]
            current[band] = smoothed[band]
        }
        block = (block &+ 1) & 7
    }
}
