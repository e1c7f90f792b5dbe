import Testing

@Suite("Letters between shards, with crashes, moves and a bad network") struct LetterSimulationTests {
    @Test(
        "Each letter counts once, in order, and nothing that was answered is lost", arguments: [0, 12, 24] as [UInt64])
    func holds(first: UInt64) throws {
        var sum = LetterSimulation.Tally()
        for seed in first..<first + 12 {
            var simulation = try LetterSimulation(seed: seed)
            try simulation.run()
            #expect(simulation.problems.isEmpty, "seed \(seed): \(simulation.problems.joined(separator: "; "))")
            sum.add(simulation.tally)
        }
        #expect(sum.least > 10, "\(sum)")
    }

    @Test(
        "A fault that is put in on purpose is found",
        arguments: [.noFence, .answersBeforeCommit, .handlesDoubled] as [LetterSimulation.Sabotage])
    func finds(sabotage: LetterSimulation.Sabotage) throws {
        var found = 0
        for seed in 0..<12 as Range<UInt64> {
            var simulation = try LetterSimulation(seed: seed, sabotage: sabotage)
            try simulation.run()
            if !simulation.problems.isEmpty { found += 1 }
        }
        #expect(found >= 6, "found in \(found) of 12 runs")
    }
}

extension LetterSimulation.Tally {
    mutating func add(_ other: Self) {
        lost += other.lost
        doubled += other.doubled
        crashes += other.crashes
        moves += other.moves
        stops += other.stops
        fenced += other.fenced
        busy += other.busy
        cutOff += other.cutOff
    }

    /// How often what happened least did.
    var least: Int { [lost, doubled, crashes, moves, stops, fenced, busy, cutOff].min() ?? 0 }
}
