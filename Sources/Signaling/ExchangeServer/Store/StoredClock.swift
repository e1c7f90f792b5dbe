internal import ExchangeCore

/// Keeps the times of day in the file consistent with the machine's clock when an administrator sets it.
///
/// The exchange uses instants, which are not affected by the clock. The file contains the offset of the time of day
/// from them, and all stored times include it: setting the clock shifts them all.
struct StoredClock {
    /// A clock that is adjusted slowly differs by less, so that the stored times need not be rewritten for it.
    static let tolerance: UInt64 = 60_000

    let connection: SQLiteConnection
    let clock: StoreClock

    /// Counts the run. If the machine has not rebooted since the last one, instants continue, and the stored times
    /// follow a clock that was set meanwhile.
    func begin() throws {
        let offset = clock.offset
        if let last = try connection.allRows(of: "SELECT boot, clock_offset_ms FROM exchange").first {
            let boot: String = try last.decode(forColumn: "boot")
            let step = offset &- (try last.decode(Int64.self, forColumn: "clock_offset_ms"))
            if !boot.isEmpty, boot == clock.boot, step != 0 { try move(by: step) }
        }
        try connection.run(
            """
            INSERT INTO exchange (id, runs, boot, clock_offset_ms) VALUES (1, 1, ?1, ?2)
            ON CONFLICT DO UPDATE SET runs = runs + 1, boot = ?1, clock_offset_ms = ?2
            """, [clock.boot, offset])
    }

    /// How times in the file are to be read.
    func times() throws -> TimeMap {
        let stored = try connection.firstValue(of: "SELECT clock_offset_ms FROM exchange").integer
        return TimeMap(offset: stored ?? clock.offset)
    }

    /// The current times, after they have followed a clock that was set while the exchange ran: after a restart of the
    /// machine only the clock shows how long ago a time was.
    func follow() throws -> TimeMap {
        let (times, now) = (try times(), TimeMap(offset: clock.offset))
        let step = now.offset &- times.offset
        guard step.magnitude >= Self.tolerance else { return times }
        try move(by: step)
        try connection.run("UPDATE exchange SET clock_offset_ms = ?", [now.offset])
        return now
    }

    private func move(by step: Int64) throws {
        for (table, column) in StoreSchema.timed {
            try connection.run("UPDATE \(table) SET \(column) = \(column) + ?", [step])
        }
    }
}
