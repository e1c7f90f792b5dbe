internal import Core

/// How many frames a direction may move by now, if its clock is anything like a clock.
///
/// ALSA's `null` and `file` take all samples at once; without a limit their thread would do nothing else.
/// Real cards, whose clocks are off by much less than this allows, never meet it.
struct Pace: BitwiseCopyable, Sendable {
    private var startedAt = Instant(nanoseconds: 0)
    private var rate = 48_000.0
    private var moved = 0
    private var slackFrames = 0

    /// A direction begins; `slackFrames` may be moved at once.
    mutating func begin(_ grant: CardGrant, slackFrames: Int, at now: Instant) {
        startedAt = now
        rate = Double(grant.rate) * 1.002
        self.slackFrames = slackFrames
        moved = 0
    }

    /// Frames that may be moved now.
    func allowance(at now: Instant) -> Int {
        max(0, slackFrames + Int(Double(startedAt.nanoseconds(to: now)) * 1e-9 * rate) - moved)
    }

    /// Notes frames that were moved.
    mutating func note(_ frames: Int) { moved += frames }
}
