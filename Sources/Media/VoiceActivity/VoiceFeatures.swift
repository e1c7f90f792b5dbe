/// What the detector knows of 10 ms of sound: 35 numbers of some −2…3.
struct VoiceFeatures: Sendable {
    static var count: Int { @_noAllocation @_noLocks get { 35 } }

    private var spectrum = BandSpectrum()
    private var pitch = PitchMeter()
    private var floor = BandFloor()
    private var echo = EchoEstimate()
    /// The bands of the latest two hops, for changes.
    private var previous = InlineArray<12, Float>(repeating: -26)
    private var beforePrevious = InlineArray<12, Float>(repeating: -26)
    private var lastPeriod: Float = 0
    /// The loudest level lately; it falls by 1.5 dB a second.
    private var peak: Float = -20
    private var meanPeriodicity: Float = 0
    private var meanFlux: Float = 0
    private var meanActivity: Float = 0

    private(set) var values = InlineArray<35, Float>(repeating: 0)

    init() {}

    /// Takes a sample of both signals at 8 kHz.
    @_noAllocation @_noLocks
    mutating func add(heard: Float, said: Float) {
        spectrum.add(heard: heard, said: said)
        pitch.add(heard)
    }

    /// Computes the values; after every 80 samples.
    @_noAllocation @_noLocks
    mutating func measure() {
        spectrum.measure()
        pitch.measure()
        let bands = spectrum.heardBands
        floor.follow(bands)
        echo.follow(heard: bands, said: spectrum.saidBands)
        setBands(bands)
        setChanges(bands)
        beforePrevious = previous
        previous = bands
    }

    /// 0…11: each band above background and echo. 12…23: the spectrum's shape. 24…27: levels.
    @_noAllocation @_noLocks
    private mutating func setBands(_ bands: InlineArray<12, Float>) {
        var mean: Float = 0
        var level: Float = -26
        var background: Float = -26
        var returned: Float = -40
        var excess: Float = 0
        for band in 0..<12 {
            mean += bands[band] / 12
            level = max(level, bands[band])
            background = max(background, floor.bands[band])
            returned = max(returned, echo.bands[band])
            let above = max(0, min(12, bands[band] - max(floor.bands[band], echo.bands[band])))
            values[band] = above / 4
            excess += above / 12
        }
        for band in 0..<12 { values[12 &+ band] = max(-8, min(8, bands[band] - mean)) / 4 }
        peak = max(level, max(-20, peak - 0.005))
        values[24] = excess / 4
        values[25] = (level + 14) / 8
        values[26] = max(-12, level - peak) / 4
        values[27] = max(-8, min(8, returned - background)) / 8
        meanActivity += ((excess > 2 ? 1 : 0) - meanActivity) * 0.007
    }

    /// 28…34: periodicity, pitch, changes, and what was usual in the last seconds.
    @_noAllocation @_noLocks
    private mutating func setChanges(_ bands: InlineArray<12, Float>) {
        var rise: Float = 0
        var change: Float = 0
        for band in 0..<12 {
            let difference = bands[band] - beforePrevious[band]
            rise += max(0, min(8, difference)) / 12
            change += min(8, abs(difference)) / 12
        }
        values[28] = pitch.periodicity * 2
        values[29] = (pitch.period - 4.4) * pitch.periodicity
        values[30] = min(1, abs(pitch.period - lastPeriod)) * pitch.periodicity * 2
        values[31] = rise
        lastPeriod = pitch.period
        meanPeriodicity += (pitch.periodicity - meanPeriodicity) * 0.007
        meanFlux += (change - meanFlux) * 0.007
        values[32] = meanPeriodicity * 2
        values[33] = meanFlux
        values[34] = meanActivity * 2
    }
}
