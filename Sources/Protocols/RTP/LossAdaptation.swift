/// Chooses the encoder's bitrate and its protection by the loss that the peer reports.
///
/// | Loss, smoothed | Loss told to the encoder | Bitrate, at each report |
/// | --- | --- | --- |
/// | below 1 % | 0 | up by 5 % of the most, after three such reports |
/// | 1…3 % | 7 % | stays |
/// | 3…8 % | 10 % | stays |
/// | 8…15 % | 15 % | down by 10 % |
/// | 15…25 % | 25 % | down by 25 % |
/// | from 25 % | 30 % | down by half |
///
/// Loss of a few percent is mostly chance, which in-band FEC mends and less bitrate would not; loss above is mostly a
/// queue that overflows. The encoder's FEC grows with what it is told, and with libopus 1.3 begins at 7 % for
/// 32 kb/s and at 5 % for 40.
/// Rises are believed at once, falls slowly.
public struct LossAdaptation: Equatable, Sendable {
    /// Within what it chooses.
    public struct Configuration: Equatable, Sendable {
        /// The least, in bits per second: below, speech with FEC is hard to follow.
        public var minimumBitrateBps: Int
        /// The most, in bits per second.
        public var maximumBitrateBps: Int

        /// Makes a configuration; the least is never above the most.
        @_noAllocation @_noLocks
        public init(minimumBitrateBps: Int = 12_000, maximumBitrateBps: Int = 32_000) {
            self.maximumBitrateBps = max(6_000, min(510_000, maximumBitrateBps))
            self.minimumBitrateBps = max(6_000, min(self.maximumBitrateBps, minimumBitrateBps))
        }
    }

    /// What the encoder is to send, in bits per second.
    public private(set) var bitrateBps: Int
    /// Loss that the encoder is to expect: 0…30 percent.
    public private(set) var expectedLossPercent = 0
    /// The loss that was reported, smoothed: 0…1.
    public private(set) var loss = 0.0

    private var configuration: Configuration
    private var calmReports = 0

    /// Begins with the most and no protection.
    public init(_ configuration: Configuration) {
        self.configuration = configuration
        bitrateBps = configuration.maximumBitrateBps
    }

    /// Chooses within other bounds from now on, and keeps what it has learnt of the path.
    @_noAllocation @_noLocks
    public mutating func change(to configuration: Configuration) {
        let wasAtMost = bitrateBps >= self.configuration.maximumBitrateBps
        self.configuration = configuration
        if wasAtMost { bitrateBps = configuration.maximumBitrateBps }
        bitrateBps = max(configuration.minimumBitrateBps, min(configuration.maximumBitrateBps, bitrateBps))
    }

    /// A report on our stream came.
    ///
    /// - Parameter fractionLost: ``ReportBlock/fractionLost``, in 1/256.
    /// - Returns: Whether ``bitrateBps`` or ``expectedLossPercent`` is another than before.
    @_noAllocation @_noLocks @discardableResult
    public mutating func reported(fractionLost: UInt8) -> Bool {
        let before = (bitrateBps, expectedLossPercent)
        let now = Double(fractionLost) / 256
        loss += (now - loss) * (now > loss ? 0.75 : 0.25)
        var factor = 100
        if loss < 0.01 {
            expectedLossPercent = 0
        } else if loss < 0.03 {
            expectedLossPercent = 7
        } else if loss < 0.08 {
            expectedLossPercent = 10
        } else if loss < 0.15 {
            expectedLossPercent = 15
            factor = 90
        } else if loss < 0.25 {
            expectedLossPercent = 25
            factor = 75
        } else {
            expectedLossPercent = 30
            factor = 50
        }
        calmReports = loss < 0.01 ? calmReports + 1 : 0
        // Past loss is no reason to go down while the newest report tells of less.
        if now < loss { factor = 100 }
        bitrateBps = bitrateBps * factor / 100
        if calmReports > 3 { bitrateBps += configuration.maximumBitrateBps / 20 }
        bitrateBps = max(configuration.minimumBitrateBps, min(configuration.maximumBitrateBps, bitrateBps))
        return before.0 != bitrateBps || before.1 != expectedLossPercent
    }
}
