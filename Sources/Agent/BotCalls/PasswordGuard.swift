internal import Core

/// Bounds how often passwords of requests are guessed: limits the wrong ones from one address, and those from all addresses together
/// that have not given a right one lately. Right ones cost nothing.
///
/// Capacity: 20,000 addresses with wrong passwords, and ``mostKnown`` with right ones.
struct PasswordGuard {
    /// Wrong passwords from one address in ``window``, and from all that are not known.
    static let (perAddress, perStrangers) = (30, 300)
    static let window = Duration.seconds(600)
    static let mostKnown = 16

    private var addresses = TokenBuckets<ClientAddress>(.init(perAddress, within: window))
    private var strangers = TokenBuckets<Int>(.init(perStrangers, within: window))
    /// The last ones that gave a right password, oldest first.
    private var known: [ClientAddress] = []

    /// How long an address has to wait; nil if it may try a password.
    mutating func wait(_ address: ClientAddress, at now: Instant) -> Duration? {
        var wait = addresses.wait(address, at: now)
        if !known.contains(address) { wait = max(wait, strangers.wait(0, at: now)) }
        return wait == .zero ? nil : wait
    }

    /// Takes an attempt, which ``succeeded(_:at:)`` gives back.
    ///
    /// - Returns: How long to wait instead; nil if a password may be tried.
    mutating func begin(_ address: ClientAddress, at now: Instant) -> Duration? {
        if let wait = wait(address, at: now) { return wait }
        addresses.take(address, at: now)
        if !known.contains(address) { strangers.take(0, at: now) }
        return nil
    }

    /// The password was right.
    mutating func succeeded(_ address: ClientAddress, at now: Instant) {
        addresses.putBack(address, at: now)
        if let index = known.firstIndex(of: address) {
            known.remove(at: index)
        } else {
            strangers.putBack(0, at: now)
            if known.count >= Self.mostKnown { known.removeFirst() }
        }
        known.append(address)
    }
}
