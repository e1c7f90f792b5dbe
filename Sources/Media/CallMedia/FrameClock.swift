internal import Core

/// When a call's frames are due, and how long they are.
struct FrameClock: BitwiseCopyable, Sendable {
    private enum Pace {
        /// Waits for the peer's first packet, or for this time.
        case waiting(until: Instant)
        /// Waits for a path and keys.
        case connecting
        case running(nextFrame: Instant)
    }

    private var pace: Pace
    /// How long the peer's first packet is awaited once there are a path and keys.
    private var connectedWaitNanoseconds: Int64 = 0
    /// Samples in a frame, at 48 kHz.
    private(set) var frameSamples: Int
    /// The length of a frame.
    private(set) var periodNanoseconds: Int64

    init(_ start: MediaCallPlan.Start, frameSamples: Int, at now: Instant) {
        self.frameSamples = frameSamples
        periodNanoseconds = Self.nanoseconds(frameSamples)
        pace =
            switch start {
            case .atOnce: .running(nextFrame: now)
            case .withFirstPacket(let limit): .waiting(until: now.advanced(by: limit))
            case .whenConnected: .connecting
            }
    }

    @_noAllocation @_noLocks
    private static func nanoseconds(_ samples: Int) -> Int64 { Int64(samples) * 1_000_000_000 / 48_000 }

    /// When the clock must next be asked.
    var nextDeadline: Instant {
        @_noAllocation @_noLocks get {
            switch pace {
            case .waiting(let limit): limit
            case .connecting: Instant(nanoseconds: .max)
            case .running(let next): next
            }
        }
    }

    /// Whether frames run.
    var isRunning: Bool {
        @_noAllocation @_noLocks get {
            guard case .running = pace else { return false }
            return true
        }
    }

    /// The frame that is due at `now`; nil if none is.
    @_noAllocation @_noLocks
    func frameDue(at now: Instant) -> Instant? {
        guard case .running(let next) = pace, next.nanoseconds <= now.nanoseconds else { return nil }
        return next
    }

    /// Frames are of another length from the next on.
    @_noAllocation @_noLocks
    mutating func setFrame(samples: Int) {
        frameSamples = samples
        periodNanoseconds = Self.nanoseconds(samples)
    }

    /// The peer was heard: a call that waits for that starts.
    @_noAllocation @_noLocks
    mutating func peerHeard(at now: Instant) {
        if case .waiting = pace { pace = .running(nextFrame: now) }
    }

    /// The peer may not have its keys yet: once there are a path and ours, its first packet is awaited for this long.
    @_noAllocation @_noLocks
    mutating func awaitPeer(nanoseconds: Int64) { connectedWaitNanoseconds = nanoseconds }

    /// There are a path and keys: a call that waits for them starts.
    @_noAllocation @_noLocks
    mutating func connected(at now: Instant) {
        guard case .connecting = pace else { return }
        pace =
            connectedWaitNanoseconds > 0
            ? .waiting(until: now.advanced(byNanoseconds: connectedWaitNanoseconds)) : .running(nextFrame: now)
    }

    /// Starts a call that has waited long enough for its peer, and skips frames that are too late.
    ///
    /// - Returns: How many frames are skipped.
    @_noAllocation @_noLocks
    mutating func catchUp(at now: Instant) -> Int64 {
        switch pace {
        case .waiting(let limit):
            if limit.nanoseconds <= now.nanoseconds { pace = .running(nextFrame: now) }
        case .connecting: break
        case .running(let next):
            let behind = next.nanoseconds(to: now) / periodNanoseconds
            guard behind > Pacer.catchUpFrames else { return 0 }
            pace = .running(nextFrame: next.advanced(byNanoseconds: behind * periodNanoseconds))
            return behind
        }
        return 0
    }

    /// Puts the next frame, and with it all later ones, at this instant.
    @_noAllocation @_noLocks
    mutating func place(nextFrame: Instant) { pace = .running(nextFrame: nextFrame) }

    /// Delays all frames from the next one on.
    @_noAllocation @_noLocks
    mutating func shift(byNanoseconds shift: Int64) {
        guard case .running(let next) = pace else { return }
        pace = .running(nextFrame: next.advanced(byNanoseconds: shift))
    }
}
