internal import Core

/// Determines from the reported positions whether a card's two directions have one clock.
///
/// Some drivers report positions with an uncertainty of one period. So a difference of rates counts only when it has
/// moved the two further apart than that, on average over a second; otherwise the uncertainty itself would count as
/// drift and move the reference. Until then the canceller follows the difference.
struct ReferenceClocks: BitwiseCopyable, Sendable {
    enum Verdict: BitwiseCopyable, Sendable {
        case inStep
        /// ``ratePPM`` has changed.
        case rate
        /// The first second has passed, with this average error in nanoseconds; the origin of all positions has the same
        /// error.
        case off(Double)
        /// Too far off to be drift: measuring starts again now.
        case lost
    }

    /// How much faster the playing clock is than the capturing one, in millionths; 0 if nothing is known.
    private(set) var ratePPM = 0.0
    private var sum = 0.0
    private var count = 0
    private var began: Instant?
    private var strays = 0
    private var isNew = true
    /// A second's mean, and the middle of that second: the first since the rate has changed.
    private var anchor: (mean: Double, time: Instant)?
    /// The last second's mean, and how it differed from that before.
    private var last: Double?
    private var lastChange: Double?

    private static var secondNanoseconds: Int64 { @_noAllocation @_noLocks get { 1_000_000_000 } }
    /// How far the two must have moved apart: 0.8 ms.
    private static var apartNanoseconds: Double { @_noAllocation @_noLocks get { 8e5 } }
    /// Possible error of the first moment: 0.3 ms.
    private static var wrongNanoseconds: Double { @_noAllocation @_noLocks get { 3e5 } }
    /// More than drift can move them from one second to the next, unless it did so before: 0.5 ms.
    private static var stepNanoseconds: Double { @_noAllocation @_noLocks get { 5e5 } }
    private static var mostPPM: Double { @_noAllocation @_noLocks get { 3_500 } }
    /// Positions that are further off than 15 ms are no drift. A run of them for half a second, in periods of 10 ms, is no
    /// slip of a driver either.
    private static var strayNanoseconds: Double { @_noAllocation @_noLocks get { 15e6 } }
    private static var straysOfLoss: Int { @_noAllocation @_noLocks get { 50 } }

    /// The positions have jumped; what was learnt of the rate stays.
    @_noAllocation @_noLocks
    mutating func restart() {
        let rate = ratePPM
        self = ReferenceClocks()
        ratePPM = rate
    }

    /// - Parameter errorNanoseconds: By how much the reference is behind the playback position that belongs to the
    ///   captured samples, by the card's present report.
    @_noAllocation @_noLocks
    mutating func add(errorNanoseconds: Double, at now: Instant) -> Verdict {
        guard errorNanoseconds < Self.strayNanoseconds, errorNanoseconds > -Self.strayNanoseconds else {
            strays &+= 1
            guard strays >= Self.straysOfLoss else { return .inStep }
            restart()
            return .lost
        }
        strays = 0
        sum += errorNanoseconds
        count &+= 1
        guard let began else {
            self.began = now
            return .inStep
        }
        let length = began.nanoseconds(to: now)
        guard length >= Self.secondNanoseconds else { return .inStep }
        let mean = sum / Double(count)
        self.began = nil
        (sum, count) = (0, 0)
        return judge(mean, Instant(nanoseconds: began.nanoseconds + length / 2))
    }

    @_noAllocation @_noLocks
    private mutating func judge(_ mean: Double, _ time: Instant) -> Verdict {
        if isNew {
            isNew = false
            if mean > Self.wrongNanoseconds || mean < -Self.wrongNanoseconds { return .off(mean) }
        }
        guard let first = anchor, let before = last else {
            (anchor, last, lastChange) = ((mean, time), mean, nil)
            return .inStep
        }
        let change = mean - before
        let isSudden = Self.isBeyond(Self.stepNanoseconds, change)
        let isAlike = lastChange.map { !Self.isBeyond(Self.stepNanoseconds, change - $0) } ?? false
        (last, lastChange) = (mean, change)
        guard !isSudden || isAlike else {
            // A step, unless the next second shows the same.
            anchor = (mean, time)
            return .inStep
        }
        let seconds = Double(first.time.nanoseconds(to: time)) * 1e-9
        guard Self.isBeyond(Self.apartNanoseconds, mean - first.mean) else {
            // Clock rates change with temperature, so old measurements do not count.
            if seconds > 600 { anchor = (mean, time) }
            return .inStep
        }
        ratePPM = max(-Self.mostPPM, min(Self.mostPPM, ratePPM + (mean - first.mean) / seconds * 1e-3))
        (anchor, last) = (nil, nil)
        return .rate
    }

    @_noAllocation @_noLocks
    private static func isBeyond(_ limit: Double, _ value: Double) -> Bool { value > limit || value < -limit }
}
