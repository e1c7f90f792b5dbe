/// How loud the echo of what we say may be in each band: the loudest of the last 0.6 s, times what the far end was found
/// to return. A path of any delay up to that needs no search.
struct EchoEstimate: Sendable {
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
