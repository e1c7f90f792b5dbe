/// Whether what is heard follows what we said some time before: then it is our echo, however loud that comes back.
///
/// Rise and fall of the twelve bands are correlated for each delay of up to 0.63 s. The delay of the path is where that is greatest
/// over some three seconds; whether the latest sound is echo is asked of the last 150 ms at that delay. A caller who speaks over the
/// echo has a rise and fall of its own. The bounds were chosen by Benchmarks/Voice: in sound that ``SpeechJudge`` takes for speech,
/// 19 of 20 moments of a loud echo have a likeness above 0.65, and 19 of 20 of a caller one below.
struct EchoLikeness: Sendable {
    private static var delays: Int { @_noAllocation @_noLocks get { 64 } }
    /// Logarithm to base 2 of the power below which nothing rises or falls: −57 dBFS.
    private static var faintest: Float { @_noAllocation @_noLocks get { -19 } }
    /// The share of the newest value in means over 1 s, 3 s and 150 ms.
    private static var ofMean: Float { @_noAllocation @_noLocks get { 0.01 } }
    private static var ofPath: Float { @_noAllocation @_noLocks get { 1 / 300.0 } }
    private static var ofMoment: Float { @_noAllocation @_noLocks get { 1 / 15.0 } }
    /// The least likeness of a path, and of a moment.
    private static var echoOfPath: Float { @_noAllocation @_noLocks get { 0.5 } }
    private static var echoOfMoment: Float { @_noAllocation @_noLocks get { 0.65 } }

    /// Products at one delay, or squares of one signal.
    private struct Means: BitwiseCopyable, Sendable {
        var path: Float = 0
        var moment: Float = 0

        @_noAllocation @_noLocks
        init() {}

        @_noAllocation @_noLocks
        mutating func follow(_ value: Float) {
            path += (value - path) * EchoLikeness.ofPath
            moment += (value - moment) * EchoLikeness.ofMoment
        }
    }

    private var heardMean = InlineArray<12, Float>(repeating: EchoLikeness.faintest)
    private var saidMean = InlineArray<12, Float>(repeating: EchoLikeness.faintest)
    /// What we said lately, as differences from the mean, hop by hop; the newest is at `newest`.
    private var said = InlineArray<768, Float>(repeating: 0)
    /// The means of its squares, as they were then.
    private var saidSquares = InlineArray<64, Means>(repeating: Means())
    private var newest = 0
    private var heardSquares = Means()
    private var products = InlineArray<64, Means>(repeating: Means())

    /// Whether the latest sound is our echo.
    private(set) var isEcho = false

    @_noAllocation @_noLocks
    init() {}

    /// Takes the bands of the next 10 ms: logarithms to base 2 of powers.
    @_noAllocation @_noLocks
    mutating func follow(heard heardBands: InlineArray<12, Float>, said saidBands: InlineArray<12, Float>) {
        let before = newest
        newest = (newest &+ 1) & 63
        var heard = InlineArray<12, Float>(repeating: 0)
        var (heardSquare, saidSquare): (Float, Float) = (0, 0)
        for band in 0..<12 {
            let power = max(Self.faintest, heardBands[band])
            heardMean[band] += (power - heardMean[band]) * Self.ofMean
            heard[band] = power - heardMean[band]
            heardSquare += heard[band] * heard[band]
            let ours = max(Self.faintest, saidBands[band])
            saidMean[band] += (ours - saidMean[band]) * Self.ofMean
            let difference = ours - saidMean[band]
            said[newest &* 12 &+ band] = difference
            saidSquare += difference * difference
        }
        heardSquares.follow(heardSquare)
        saidSquares[newest] = saidSquares[before]
        saidSquares[newest].follow(saidSquare)
        var (best, likeness): (Int, Float) = (0, -1)
        for delay in 0..<Self.delays {
            let at = (newest &- delay) & 63
            var product: Float = 0
            for band in 0..<12 { product += heard[band] * said[at &* 12 &+ band] }
            products[delay].follow(product)
            let found = products[delay].path / squareRoot(of: heardSquares.path * saidSquares[at].path + 1)
            if found > likeness { (best, likeness) = (delay, found) }
        }
        let squares = heardSquares.moment * saidSquares[(newest &- best) & 63].moment
        let latest = products[best].moment / squareRoot(of: squares + 1)
        isEcho = likeness > Self.echoOfPath && latest > Self.echoOfMoment
    }
}
