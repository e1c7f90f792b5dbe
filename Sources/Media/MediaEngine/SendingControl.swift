internal import RTP

/// What the peer's reports make of our sending. The first two tell of the call's beginning, when a peer may not be ready
/// for all that comes; they are passed over.
struct SendingControl {
    private var adaptation: LossAdaptation
    private var reports = 0

    private static var reportsPassedOver: Int { @_noAllocation @_noLocks get { 2 } }

    /// - Parameter bitrateBps: The most that is sent.
    init(bitrateBps: Int) { adaptation = LossAdaptation(.init(maximumBitrateBps: bitrateBps)) }

    /// A report on our stream came.
    ///
    /// - Returns: Whether anything changes by it.
    @_noAllocation @_noLocks
    mutating func reported(fractionLost: UInt8) -> Bool {
        reports += 1
        guard reports > Self.reportsPassedOver else { return false }
        return adaptation.reported(fractionLost: fractionLost)
    }

    /// Loss that the encoder is to expect, in percent.
    var expectedLossPercent: Int { @_noAllocation @_noLocks get { adaptation.expectedLossPercent } }

    /// What the encoder is to send, in bits per second.
    var bitrateBps: Int { @_noAllocation @_noLocks get { adaptation.bitrateBps } }

    /// How many earlier frames each packet repeats, where the peer takes that: one from 3 % of loss on. More would cost
    /// a network more than it has, where loss is the sign of a queue that overflows.
    var redundancyDepth: Int { @_noAllocation @_noLocks get { adaptation.expectedLossPercent >= 10 ? 1 : 0 } }
}
