// TestSupport: fake time, the timeline runner and the simulated network that tests run on.

public import Core

/// Runs a core on a timeline with no sleeping: jumps from deadline to deadline.
public struct Timeline<Core: ProtocolCore> {
    /// Virtual time, from zero.
    public private(set) var now = Instant.zero
    /// Everything put out so far, with the time since the start.
    public private(set) var log: [(at: Duration, output: Core.Output)] = []
    /// The core under test.
    public var core: Core

    /// Starts at time zero, or later.
    public init(_ core: Core, now: Instant = .zero) {
        self.core = core
        self.now = now
    }

    /// Everything put out so far, without the times.
    public var outputs: [Core.Output] { log.map(\.output) }

    /// Feeds one input now; returns what came out of it.
    @discardableResult
    public mutating func feed(_ input: Core.Input) -> [Core.Output] {
        var outbox: [Core.Output] = []
        core.handle(input, at: now, into: &outbox)
        for output in outbox { log.append((Instant.zero.duration(to: now), output)) }
        return outbox
    }

    /// Moves time on by `duration`, firing every deadline on the way.
    public mutating func advance(by duration: Duration, firing timer: Core.Input) {
        let end = now.advanced(by: duration)
        while let deadline = core.nextDeadline, deadline <= end {
            now = max(now, deadline)
            feed(timer)
        }
        now = end
    }

    /// Fires deadlines in order until the core asks for no more, or until `limit` of them have fired.
    public mutating func runToQuiescence(firing timer: Core.Input, limit: Int = 10_000) {
        var fired = 0
        while let deadline = core.nextDeadline, fired < limit {
            now = max(now, deadline)
            feed(timer)
            fired += 1
        }
    }
}
