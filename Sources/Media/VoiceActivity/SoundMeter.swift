/// How loud 10 ms of sound are, above what is there all the time and above the echo of what we say. Units are 3 dB.
struct SoundLevels: BitwiseCopyable, Sendable {
    /// How far the bands are above background and echo, each up to 36 dB, on average.
    var excess: Float = 0
    /// The same with a greater margin for the echo.
    var sureExcess: Float = 0
    /// How far they are above the echo alone; 12 where we were silent.
    var aboveEcho: Float = 0
    /// How much of the sound the echo may explain, −2…1.
    var returned: Float = -2
    /// The level of the loudest band, some −1.5…1.75.
    var level: Float = -1.5
    /// The level of the background in its loudest band: a logarithm to base 2, 0 for full scale.
    var background: Float = -26
    /// Whether it rises and falls as what we said does.
    var isEcho = false
}

/// Measures ``SoundLevels``.
struct SoundMeter: ~Copyable, Sendable {
    private var spectrum = BandSpectrum()
    private var floor = BandFloor()
    private var echo = EchoEstimate()
    private var likeness = EchoLikeness()

    init() {}

    /// Takes a sample of both signals at 8 kHz.
    @_noAllocation @_noLocks
    mutating func add(heard: Float, said: Float) { spectrum.add(heard: heard, said: said) }

    /// The levels now; after every 80 samples.
    @_noAllocation @_noLocks
    mutating func measure() -> SoundLevels {
        spectrum.measure()
        let bands = spectrum.heardBands
        floor.follow(bands)
        echo.follow(heard: bands, said: spectrum.saidBands)
        likeness.follow(heard: bands, said: spectrum.saidBands)
        var loudest: Float = -40
        var loudestEcho: Float = -40
        var loudestBackground: Float = -40
        var levels = SoundLevels()
        for band in 0..<12 {
            let (power, background, returning) = (bands[band], floor.bands[band], echo.bands[band])
            loudest = max(loudest, power)
            loudestEcho = max(loudestEcho, returning)
            loudestBackground = max(loudestBackground, background)
            levels.excess += max(0, min(12, power - max(background, returning + 0.5))) / 12
            levels.sureExcess += max(0, min(12, power - max(background, returning + 2))) / 12
            levels.aboveEcho += max(0, min(12, power - returning - 1.5)) / 12
        }
        levels.returned = max(-8, min(4, loudestEcho - loudest)) / 4
        levels.level = (loudest + 14) / 8
        levels.background = loudestBackground
        levels.isEcho = likeness.isEcho
        return levels
    }
}

/// The background in each band: the least power of the last 1.3 s, as minimum statistics find it (Martin, 2001). It
/// falls at once, and rises when the sound was louder for that long.
private struct BandFloor: Sendable {
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

/// How loud the echo of what we say may be in each band: the loudest of the last 0.6 s, times what the far end was found
/// to return. A path of any delay up to that needs no search.
private struct EchoEstimate: Sendable {
    private static var history: Int { @_noAllocation @_noLocks get { 64 } }
    /// Assumed before anything is known: −12 dB.
    private static var first: Float { @_noAllocation @_noLocks get { -4 } }
    /// What we say counts from −60 dBFS on.
    private static var faintest: Float { @_noAllocation @_noLocks get { -20 } }
    /// In 100 ms the estimate rises by 0.6 dB, if more returns. It settles where a fifth of the values is greater.
    private static var rise: Float { @_noAllocation @_noLocks get { 0.02 } }
    private static var fall: Float { @_noAllocation @_noLocks get { 0.005 } }
    /// The first falls are greater, over some two seconds.
    private static var firstFall: Float { @_noAllocation @_noLocks get { 0.08 } }

    private var said = InlineArray<768, Float>(repeating: -26)
    private var position = 0
    private var coupling = InlineArray<12, Float>(repeating: EchoEstimate.first)
    private var extraFall = EchoEstimate.firstFall

    /// The echo's power, as logarithm to base 2; −40 where we were silent.
    private(set) var bands = InlineArray<12, Float>(repeating: -40)

    @_noAllocation @_noLocks
    init() {}

    @_noAllocation @_noLocks
    mutating func follow(heard: InlineArray<12, Float>, said powers: InlineArray<12, Float>) {
        for band in 0..<12 { said[position &* 12 &+ band] = powers[band] }
        position = (position &+ 1) & 63
        var isSpeaking = false
        for band in 0..<12 {
            var loudest = powers[band]
            for index in 0..<64 { loudest = max(loudest, said[index &* 12 &+ band]) }
            guard loudest > Self.faintest else {
                bands[band] = -40
                continue
            }
            isSpeaking = true
            bands[band] = loudest + coupling[band]
            let step = heard[band] > bands[band] ? Self.rise : -(Self.fall + extraFall)
            coupling[band] = max(-20, min(3, coupling[band] + step))
        }
        if isSpeaking { extraFall *= 0.99 }
    }
}
