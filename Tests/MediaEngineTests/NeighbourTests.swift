import TestSupport
import Testing
import Core

@testable import MediaEngine

/// What other programs and other machines on the same hardware do to a worker.
private struct Neighbours {
    /// How late they let it wake up, at most.
    var lateness = Duration.zero
    /// Their share of the core while the worker works.
    var share = 0.0
    /// Now and then they have the core for so long.
    var stall = Duration.zero
    /// Stalls in a second, on average.
    var stallsPerSecond = 0.0
}

/// A worker on one core in virtual time, four slots a period, whose calls are of Opus and of G.711, and which has neighbours.
private struct CrowdedWorker {
    /// Microseconds of a frame of Opus by complexity, as measured with in-band FEC, and of G.711.
    static let opusMicroseconds: [Int: Double] = [0: 160, 1: 190, 3: 245, 5: 280, 10: 470]
    static let otherMicroseconds = 45.0
    /// Of a turn, whatever it has to do.
    static let turnMicroseconds = 12.0
    static let slot: Int64 = 5_000_000
    static let period = 4 * slot
    /// A worker that is further behind skips frames.
    static let mostBehind = 8 * period

    var governor = LoadGovernor(costOfCall: 0.014)
    var admission = CallAdmission()
    var opus = 0
    var others = 0
    var complexity = 5
    var neighbours = Neighbours()
    private(set) var refused = 0
    private(set) var worstBehind: Int64 = 0
    private(set) var now = Instant(nanoseconds: 1)
    private var thread: Int64 = 0
    private var slots: Int64 = 0
    private var random: SeededGenerator

    init(seed: UInt64 = 1) { random = SeededGenerator(seed: seed) }

    var calls: Int { opus + others }
    var load: WorkerLoad { governor.load }
    /// How far the worker is behind its frames.
    var behind: Int64 { max(0, now.nanoseconds - slots * Self.slot) }

    /// Offers a call, which is placed if it is admitted.
    mutating func offer(isOpus: Bool) {
        let known = CallAdmission.Worker(load: governor.load, calls: calls, capacity: 1_000)
        guard admission.admits([known], unplaced: 0) else { return refused += 1 }
        if isOpus { opus += 1 } else { others += 1 }
    }

    mutating func run(for time: Duration) {
        let end = now.advanced(by: time)
        while now < end { turn() }
    }

    mutating func turn() {
        slots += 1
        if calls == 0 { _ = governor.reset() }
        let deadline = Instant(nanoseconds: slots * Self.slot)
        if now < deadline {
            let late = Int64.random(in: 0...neighbours.lateness.nanoseconds, using: &random) + stall()
            let woken = deadline.advanced(byNanoseconds: late)
            governor.waited(from: now, until: deadline, wokenAt: woken)
            now = woken
        }
        let behind = deadline.nanoseconds(to: now)
        worstBehind = max(worstBehind, behind)
        if behind > Self.mostBehind { slots = now.nanoseconds / Self.slot }
        let work = work(latenessNanoseconds: behind)
        thread += work
        now = now.advanced(byNanoseconds: Int64(Double(work) / (1 - neighbours.share)))
        guard calls > 0, governor.isWindowOver(at: now) else { return }
        governor.endWindow(at: now, highestComplexity: opus > 0 ? complexity : nil, threadNanoseconds: thread)
    }

    private mutating func stall() -> Int64 {
        guard Double.random(in: 0..<1, using: &random) < neighbours.stallsPerSecond / 200 else { return 0 }
        return neighbours.stall.nanoseconds
    }

    /// Nanoseconds that the frames of this slot take.
    private mutating func work(latenessNanoseconds behind: Int64) -> Int64 {
        let effort = min(governor.complexityLimit, complexity)
        var microseconds = Self.turnMicroseconds
        for call in 0..<calls where Int64(call) % 4 == slots % 4 {
            let isOpus = call < opus
            microseconds += isOpus ? Self.opusMicroseconds[effort] ?? 0 : Self.otherMicroseconds
            governor.ran(frameOf: Self.period, latenessNanoseconds: behind, isAdjustable: isOpus)
        }
        return Int64(microseconds * 1_000)
    }
}

@Suite("The load of a worker with neighbours, and with a mix of codecs")
struct NeighbourTests {
    /// What one call of Opus takes of a core at complexity 5.
    private let cost = 0.014

    private static let crowds: [Neighbours] = [
        Neighbours(lateness: .milliseconds(4)), Neighbours(lateness: .milliseconds(19)),
        Neighbours(share: 0.7), Neighbours(stall: .milliseconds(150), stallsPerSecond: 1),
        Neighbours(lateness: .milliseconds(10), share: 0.5, stall: .milliseconds(40), stallsPerSecond: 3),
    ]

    @Test(
        "A few calls beside neighbours teach no wrong cost, and a worker that has lost them takes calls",
        arguments: 0..<5)
    func fewCalls(crowd: Int) {
        for count in 1...3 {
            var worker = CrowdedWorker(seed: UInt64(crowd))
            worker.neighbours = Self.crowds[crowd]
            worker.opus = count
            worker.run(for: .seconds(120))
            #expect(worker.load.costOfCall < 1.5 * cost && worker.load.costOfCall > 0.9 * cost)
            worker.opus = 0
            worker.run(for: .seconds(1))
            #expect(worker.load.share == 0)
            for _ in 0..<30 { worker.offer(isOpus: true) }
            #expect(worker.refused == 0)
        }
    }

    @Test("Calls that begin and end at once teach nothing")
    func shortCalls() {
        var worker = CrowdedWorker()
        worker.neighbours = Self.crowds[4]
        for _ in 0..<500 {
            worker.opus = 1
            worker.run(for: .milliseconds(60))
            worker.opus = 0
            worker.run(for: .milliseconds(500))
        }
        #expect(worker.load.costOfCall < 1.5 * cost)
    }

    @Test("Neighbours that wake a worker late or have its core for a moment keep no call out")
    func moments() {
        for neighbours in [
            Neighbours(lateness: .milliseconds(4)), Neighbours(stall: .milliseconds(150), stallsPerSecond: 0.5),
        ] {
            var worker = CrowdedWorker(seed: 3)
            worker.neighbours = neighbours
            for _ in 0..<20 {
                worker.offer(isOpus: true)
                worker.run(for: .seconds(1))
            }
            #expect(worker.refused == 0, "\(neighbours) with \(worker.load)")
            #expect(worker.load.complexityLimit == 10)
        }
    }

    @Test("Beside neighbours that have half of the core for good, half as many calls are accepted, and stay whole")
    func half() {
        var alone = CrowdedWorker()
        var crowded = CrowdedWorker()
        crowded.neighbours = Neighbours(lateness: .milliseconds(3), share: 0.5)
        for _ in 0..<150 {
            alone.offer(isOpus: true)
            alone.run(for: .milliseconds(500))
            crowded.offer(isOpus: true)
            crowded.run(for: .milliseconds(500))
        }
        alone.run(for: .seconds(30))
        crowded.run(for: .seconds(30))
        for worker in [alone, crowded] {
            #expect(worker.refused > 0)
            #expect(worker.worstBehind < CrowdedWorker.mostBehind)
            #expect(worker.load.share < 0.9)
        }
        #expect(Double(crowded.calls) > 0.35 * Double(alone.calls))
        #expect(Double(crowded.calls) < 0.6 * Double(alone.calls))
    }

    @Test("The sound of a few calls is not made worse where neighbours have the core", arguments: 1...8)
    func effort(calls: Int) {
        var worker = CrowdedWorker(seed: UInt64(calls))
        worker.neighbours = Neighbours(lateness: .milliseconds(40))
        worker.opus = calls
        worker.run(for: .seconds(30))
        #expect(worker.load.complexityLimit == 10)
    }

    @Test(
        "Calls of Opus and of G.711 in any order: those that are accepted stay whole, and the core is used",
        arguments: 0..<20)
    func mixed(seed: Int) {
        var worker = CrowdedWorker(seed: UInt64(seed))
        var random = SeededGenerator(seed: UInt64(seed))
        let opusShare = Double.random(in: 0...1, using: &random)
        let pause = [5, 20, 100, 500].randomElement(using: &random) ?? 5
        for _ in 0..<700 {
            worker.offer(isOpus: Double.random(in: 0..<1, using: &random) < opusShare)
            worker.run(for: .milliseconds(pause))
        }
        worker.run(for: .seconds(20))
        #expect(worker.worstBehind < CrowdedWorker.mostBehind, "\(opusShare), \(pause) ms, \(worker.load)")
        #expect(worker.load.share < 0.9)
        #expect(worker.load.share > 0.6 || worker.refused == 0, "\(opusShare), \(pause) ms, \(worker.load)")
    }

    @Test("Many calls of G.711, then a burst of Opus, and the other way")
    func bursts() {
        for beginsWithOpus in [false, true] {
            var worker = CrowdedWorker()
            for number in 0..<2_000 {
                worker.offer(isOpus: (number < 200) == beginsWithOpus)
                if number < 200 { worker.run(for: .milliseconds(100)) }
            }
            worker.run(for: .seconds(20))
            #expect(worker.refused > 0)
            #expect(worker.worstBehind < CrowdedWorker.mostBehind, "\(worker.opus) of Opus, \(worker.others) others")
            #expect(worker.load.share < 0.9)
        }
    }

    @Test("One call of Opus among many of G.711 makes no room that lowering its effort does not give")
    func oneToLower() {
        var worker = CrowdedWorker()
        worker.opus = 1
        for _ in 0..<1_000 {
            worker.offer(isOpus: false)
            worker.run(for: .milliseconds(50))
        }
        #expect(worker.refused > 0)
        #expect(worker.load.share < LoadGovernor.highMark + 0.01)
    }
}
