/// How a device comes to rest: it takes no more calls, and waits until none is left and each peer knows of the end.
struct CallDrain {
    /// Whether the device takes no more calls.
    private(set) var hasBegun = false
    private var hangUpsUnderWay = 0
    private var waiter: CheckedContinuation<Void, Never>?

    mutating func begin() { hasBegun = true }

    /// A peer is being told that this side hung up.
    mutating func hangUpBegan() { hangUpsUnderWay += 1 }

    mutating func hangUpEnded() { hangUpsUnderWay -= 1 }

    /// Whether every peer has been told that this side hung up.
    var areHangUpsSent: Bool { hangUpsUnderWay == 0 }

    /// Resumes `waiter` at the next ``resume()``.
    mutating func wait(_ waiter: CheckedContinuation<Void, Never>) { self.waiter = waiter }

    mutating func resume() {
        waiter?.resume()
        waiter = nil
    }
}
