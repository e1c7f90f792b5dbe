/// How a device comes to rest: it takes no more calls, and waits until none is left and each peer knows of the end.
struct CallDrain {
    /// Whether the device takes no more calls.
    var hasBegun: Bool { isPaused || isEnding }
    private var isPaused = false
    private var isEnding = false
    private var hangUpsUnderWay = 0
    private var waiters: [CheckedContinuation<Void, Never>] = []

    /// For good.
    mutating func begin() { isEnding = true }

    /// Pauses or resumes new calls.
    mutating func pause(_ isPaused: Bool) { self.isPaused = isPaused }

    /// A hang-up is being sent to a peer.
    mutating func hangUpBegan() { hangUpsUnderWay += 1 }

    mutating func hangUpEnded() { hangUpsUnderWay -= 1 }

    /// Whether all hang-ups have been sent.
    var areHangUpsSent: Bool { hangUpsUnderWay == 0 }

    /// Resumes `waiter` at the next ``resume()``.
    mutating func wait(_ waiter: CheckedContinuation<Void, Never>) { waiters.append(waiter) }

    mutating func resume() {
        for waiter in waiters { waiter.resume() }
        waiters = []
    }
}
