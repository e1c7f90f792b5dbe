public import Core

/// What a program says on after the caller has interrupted it, because it does not know yet: decides which of its sound still
/// belongs to what was interrupted, and is discarded.
///
/// That is all until the program reacts by clearing, or pauses for 0.4 s: it gives no sound, or silence. After 3 s it is heard
/// in any case.
public struct InterruptedSound: Sendable, Equatable {
    /// A pause after which a program says something new.
    public static let pause = Duration.milliseconds(400)
    /// The longest time for which sound is discarded.
    public static let longest = Duration.seconds(3)
    /// Less is silence: −60 dBFS.
    private static let silence: UInt16 = 33

    private enum State: Equatable {
        case none
        /// `quiet` samples at 48 kHz of silence came last.
        case stale(since: Instant, last: Instant, quiet: Int)
    }

    private var state = State.none

    /// Nothing is interrupted.
    public init() {}

    /// Whether sound is discarded now.
    public var isStale: Bool { state != .none }

    /// The caller has interrupted the program.
    public mutating func begin(at now: Instant) { state = .stale(since: now, last: now, quiet: 0) }

    /// Time has passed: what comes after a pause, or after the longest time, is new, be it sound or a mark.
    public mutating func pass(at now: Instant) {
        guard case .stale(let since, let last, _) = state else { return }
        if since.duration(to: now) >= Self.longest || last.duration(to: now) >= Self.pause { state = .none }
    }

    /// The program has reacted.
    public mutating func end() { state = .none }

    /// Takes samples of the program.
    ///
    /// - Returns: How many of them, at the beginning, are to be discarded.
    public mutating func discards(_ samples: [Int16], rate: PortRate, at now: Instant) -> Int {
        pass(at: now)
        guard case .stale(let since, _, var quiet) = state else { return 0 }
        let pause = 48 * 400
        for (index, sample) in samples.enumerated() {
            quiet = sample.magnitude < Self.silence ? quiet + rate.ratio : 0
            guard quiet < pause else {
                state = .none
                return index + 1
            }
        }
        state = .stale(since: since, last: now, quiet: quiet)
        return samples.count
    }
}
