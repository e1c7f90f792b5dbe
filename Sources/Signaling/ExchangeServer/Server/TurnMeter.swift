import ExchangeCore
import Core

/// What the present turn costs, and since when the present round lasts.
///
/// A round lasts as long as the disk takes for the batch before: what is served in it makes up the next one. If nothing is
/// written, it lasts one turn of the event loop. Time spent on serving does not count, so that slow work earns its payer
/// no credit.
struct TurnMeter {
    /// A turn that was left for a moment.
    struct Interrupted {
        fileprivate let cost: WorkCost
        fileprivate let turnBegan: Instant
    }

    /// How long a round lasts in which nothing waits and nothing is written.
    private static let idleRound = Duration.milliseconds(1)

    private var cost = WorkCost()
    private var turnBegan = Instant.zero
    /// Start of the round, or the end of the previous round's write, without the time of serving.
    private var roundBegan = Instant.zero
    /// The newest batch that was handed to the disk in this round.
    private var batch = 0

    // MARK: - Turns

    mutating func beginTurn(_ cost: WorkCost, at now: Instant) { (self.cost, turnBegan) = (cost, now) }

    /// Charges the turn for what came of it.
    mutating func add(_ outputs: [ExchangeCore.Output]) { cost.add(outputs) }

    /// Ends the turn, and returns its cost in units.
    mutating func endTurn(at now: Instant) -> Int {
        let time = turnBegan.duration(to: now)
        let units = cost.units(after: time)
        exclude(time)
        cost = WorkCost()
        return units
    }

    /// What was done belongs to no turn.
    mutating func discardTurn() { cost = WorkCost() }

    /// Begins to measure something else.
    mutating func interrupt(with cost: WorkCost, at now: Instant) -> Interrupted {
        defer { beginTurn(cost, at: now) }
        return Interrupted(cost: self.cost, turnBegan: turnBegan)
    }

    /// Returns to a turn, and says what was measured meanwhile.
    mutating func resume(_ turn: Interrupted, at now: Instant) -> WorkCost {
        var measured = cost
        measured.time = turnBegan.duration(to: now)
        exclude(measured.time)
        (cost, turnBegan) = (turn.cost, turn.turnBegan)
        return measured
    }

    // MARK: - Rounds

    /// Takes time of serving out of the round.
    mutating func exclude(_ time: Duration) { roundBegan = roundBegan.advanced(by: time) }

    mutating func beginRound(at now: Instant) { roundBegan = now }

    /// Begins a round if the disk has been handed another batch than in the present one.
    mutating func beginRound(afterBatch batch: Int, at now: Instant) -> Bool {
        guard self.batch != batch else { return false }
        self.batch = batch
        roundBegan = now
        return true
    }

    /// How many idle rounds have passed; the present one begins now if any has.
    mutating func takeIdleRounds(at now: Instant) -> Int {
        let rounds = roundBegan.duration(to: now).nanoseconds / Self.idleRound.nanoseconds
        guard rounds > 0 else { return 0 }
        roundBegan = now
        return Int(clamping: min(rounds, 1_000_000))
    }
}
