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
