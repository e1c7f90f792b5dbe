public import SecureTransport
public import Core

/// Two sides of a handshake with a wire between that delivers in order and at once, or as the test says.
public struct HandshakePair<Side: DTLSHandshake & ~Copyable>: ~Copyable {
    /// The side that begins.
    public var active: Side
    /// The side that answers.
    public var passive: Side
    /// Time for both.
    public var now = Instant.zero
    /// Datagrams on their way to the active side.
    public var toActive: [[UInt8]] = []
    /// Datagrams on their way to the passive side.
    public var toPassive: [[UInt8]] = []
    /// All that the active side has said, without its datagrams.
    public private(set) var activeSaid: [DTLSOutput] = []
    /// All that the passive side has said, without its datagrams.
    public private(set) var passiveSaid: [DTLSOutput] = []
    /// All that was ever put on the wire.
    public private(set) var datagrams: [(from: DTLSRole, bytes: [UInt8])] = []

    /// Called with the datagrams that a side sends in one go, counted from 0 for each side; gives what arrives.
    public var wire: (_ from: DTLSRole, _ burst: Int, _ datagrams: [[UInt8]]) -> [[UInt8]] = { _, _, all in all }
    private var bursts: [DTLSRole: Int] = [:]

    /// Puts two sides together; neither has started.
    public init(active: consuming Side, passive: consuming Side) {
        self.active = active
        self.passive = passive
    }

    /// Feeds one side now.
    public mutating func feed(_ role: DTLSRole, _ input: DTLSInput) {
        var outbox: [DTLSOutput] = []
        switch role {
        case .active: active.handle(input, at: now, into: &outbox)
        case .passive: passive.handle(input, at: now, into: &outbox)
        }
        var sent: [[UInt8]] = []
        for output in outbox {
            if case .transmit(let datagram) = output {
                sent.append(datagram)
                datagrams.append((role, datagram))
            } else if role == .active {
                activeSaid.append(output)
            } else {
                passiveSaid.append(output)
            }
        }
        guard !sent.isEmpty else { return }
        let arriving = wire(role, bursts[role, default: 0], sent)
        bursts[role, default: 0] += 1
        switch role {
        case .active: toPassive += arriving
        case .passive: toActive += arriving
        }
    }

    /// Feeds both sides, the passive one first.
    public mutating func feedBoth(_ input: DTLSInput) {
        feed(.passive, input)
        feed(.active, input)
    }

    /// Delivers until nothing is on its way.
    public mutating func deliverAll() {
        while !toActive.isEmpty || !toPassive.isEmpty {
            if !toPassive.isEmpty { feed(.passive, .received(toPassive.removeFirst())) }
            if !toActive.isEmpty { feed(.active, .received(toActive.removeFirst())) }
        }
    }

    /// The next time at which a side wants to be woken.
    public var nextDeadline: Instant? {
        guard let first = active.nextDeadline else { return passive.nextDeadline }
        return passive.nextDeadline.map { min($0, first) } ?? first
    }

    /// Delivers and fires timers until both sides have said something, or nothing more will happen.
    ///
    /// - Parameter wait: Waits until a time and returns what time it is then.
    public mutating func run(until wait: (Instant) -> Instant) {
        deliverAll()
        while activeSaid.isEmpty || passiveSaid.isEmpty, let deadline = nextDeadline {
            now = wait(deadline)
            if let due = active.nextDeadline, due <= now { feed(.active, .timerFired) }
            if let due = passive.nextDeadline, due <= now { feed(.passive, .timerFired) }
            deliverAll()
        }
    }
}
