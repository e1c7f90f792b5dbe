import AudioKit
import TestSupport
import Testing
import Core

@testable import CallMedia
@testable import MediaEngine

/// A worker on one core in virtual time: each call has a frame every 20 ms, which takes what its complexity takes.
private struct SimulatedWorker {
    /// Microseconds of a frame by complexity, as measured with in-band FEC; 0 where nothing is measured.
    static let frameMicroseconds: [Int: Double] = [0: 160, 1: 190, 3: 245, 5: 280, 10: 470]
    static let period: Int64 = 20_000_000
    /// A worker that is further behind skips frames.
    static let mostBehind = 8 * period

    var governor = LoadGovernor(costOfCall: 0.014)
    var calls = 0
    var complexity: Int? = 5
    private(set) var now = Instant(nanoseconds: 1)
    /// Work that is not done yet.
    private(set) var behind: Int64 = 0
    private(set) var worstBehind: Int64 = 0
    private(set) var changes = 0

    init(calls: Int) { self.calls = calls }

    var share: Double { governor.load.share }

    mutating func run(for time: Duration) {
        let end = now.advanced(by: time)
        while now < end { tick() }
    }

    mutating func tick() {
        if calls == 0 { _ = governor.reset() }
        let effort = min(governor.complexityLimit, complexity ?? 0)
        let work = Int64(Double(calls) * (Self.frameMicroseconds[effort] ?? 0) * 1_000) + behind
        let next = now.advanced(byNanoseconds: Self.period)
        for _ in 0..<calls { governor.ran(frameOf: Self.period, latenessNanoseconds: behind) }
        if work < Self.period {
            governor.waited(from: now.advanced(byNanoseconds: work), until: next, wokenAt: next)
        }
        behind = max(0, work - Self.period)
        worstBehind = max(worstBehind, behind)
        now = next
        guard governor.isWindowOver(at: now) else { return }
        let before = governor.complexityLimit
        governor.endWindow(at: now, highestComplexity: complexity)
        if governor.complexityLimit != before { changes += 1 }
    }
}

@Suite("LoadGovernor")
struct LoadGovernorTests {
    /// Calls that one core carries at complexity 5, just below the mark.
    private let fitting = 60

    @Test("Calls that fit are encoded as configured")
    func fits() {
        var worker = SimulatedWorker(calls: fitting)
        worker.run(for: .seconds(60))
        #expect(worker.governor.complexityLimit == 10)
        #expect(worker.changes == 0)
    }

    @Test("With 1.3 times the calls that fit, encoders spend less effort before a frame is lost")
    func surplus() {
        var worker = SimulatedWorker(calls: fitting)
        worker.run(for: .seconds(5))
        worker.calls = fitting * 13 / 10
        worker.run(for: .seconds(60))
        #expect(worker.governor.complexityLimit < 5)
        #expect(worker.share < LoadGovernor.highMark)
        #expect(worker.worstBehind < SimulatedWorker.mostBehind)
        #expect(worker.behind == 0)
    }

    @Test("10 s after the surplus is gone encoders are as configured again")
    func recovery() {
        var worker = SimulatedWorker(calls: fitting)
        worker.run(for: .seconds(5))
        worker.calls = fitting * 13 / 10
        worker.run(for: .seconds(30))
        worker.calls = fitting
        worker.run(for: .seconds(10))
        #expect(worker.governor.complexityLimit == 10)
        worker.run(for: .seconds(60))
        #expect(worker.governor.complexityLimit == 10)
    }

    @Test("An effort that does not fit is not tried again and again", arguments: 61...75)
    func steady(calls: Int) {
        var worker = SimulatedWorker(calls: calls)
        worker.run(for: .seconds(120))
        #expect(worker.changes <= 8)
        #expect(worker.worstBehind < SimulatedWorker.mostBehind)
    }

    @Test("Encoders without a choice of effort are left alone, and there is nothing to lower")
    func nothingToLower() {
        var worker = SimulatedWorker(calls: 130)
        worker.complexity = nil
        worker.run(for: .seconds(5))
        #expect(worker.changes == 0)
        #expect(!worker.governor.load.canLower)
    }

    @Test("A worker without calls limits nothing, and remembers what a call costs")
    func emptied() {
        var worker = SimulatedWorker(calls: 80)
        worker.run(for: .seconds(5))
        let cost = worker.governor.load.costOfCall
        worker.calls = 0
        worker.run(for: .seconds(1))
        #expect(worker.governor.complexityLimit == 10)
        #expect(worker.share == 0)
        #expect(worker.governor.load.costOfCall == cost)
    }

    @Test("A complexity outside 0 to 10 is clamped before the load is kept by it", arguments: [(-1, 0), (12, 10)])
    func clamped(set: Int, used: Int) throws {
        var settings = EncoderSettings()
        settings.complexity = set
        let complexity = try SoundEncoder(.opus, settings).complexity
        #expect(complexity == used)
    }

    @Test("A wait that ends after its deadline counts up to the deadline, so that a late thread is a busy one")
    func lateWakeUp() {
        var governor = LoadGovernor(costOfCall: 0.02)
        var now = Instant(nanoseconds: 0)
        _ = governor.isWindowOver(at: now)
        while !governor.isWindowOver(at: now) {
            let deadline = now.advanced(byNanoseconds: 5_000_000)
            let late = now.advanced(byNanoseconds: 20_000_000)
            governor.waited(from: now, until: deadline, wokenAt: late)
            now = late
        }
        governor.endWindow(at: now, highestComplexity: nil)
        #expect(abs(governor.load.share - 0.75) < 0.001)
    }
}

@Suite("CallAdmission")
struct CallAdmissionTests {
    /// A worker that is offered calls, and takes those that are admitted.
    private struct Door {
        var worker = SimulatedWorker(calls: 0)
        var admission = CallAdmission()
        var placed = 0
        var refused = 0

        mutating func offer() {
            let known = CallAdmission.Worker(load: worker.governor.load, calls: placed, capacity: 256)
            if admission.admits([known], unplaced: 0) { placed += 1 } else { refused += 1 }
        }
    }

    @Test("However fast calls are offered, those that are accepted stay whole", arguments: [1, 2, 5, 25, 50])
    func whole(ticksBetweenCalls: Int) {
        var door = Door()
        for tick in 0..<10_000 {
            if tick % ticksBetweenCalls == 0, tick / ticksBetweenCalls < 200 { door.offer() }
            // Media flows 40 ms after a call was accepted.
            if tick % 2 == 0 { door.worker.calls = door.placed }
            door.worker.tick()
        }
        #expect(door.refused > 0)
        #expect(door.placed > 80)
        #expect(door.worker.worstBehind < SimulatedWorker.mostBehind)
        #expect(door.worker.behind == 0)
        #expect(door.worker.share < 0.9)
    }

    @Test("A burst before anything is measured is bounded by what a call is expected to cost")
    func burst() {
        var door = Door()
        for _ in 0..<500 { door.offer() }
        #expect(door.placed == Int(CallAdmission.lowerableMark / 0.014))
    }

    @Test("A full device takes calls again when clearly less is to be done, not when one call has ended")
    func hysteresis() {
        var door = Door()
        for tick in 0..<2_000 {
            if tick % 5 == 0 { door.offer() }
            door.worker.calls = door.placed
            door.worker.tick()
        }
        #expect(door.admission.isFull)
        door.placed -= 1
        door.worker.calls = door.placed
        door.worker.run(for: .seconds(1))
        door.offer()
        #expect(door.admission.isFull)

        door.placed -= 15
        door.worker.calls = door.placed
        door.worker.run(for: .seconds(1))
        door.offer()
        #expect(!door.admission.isFull)
    }

    @Test("A worker has no room beyond the calls that it has memory for")
    func capacity() {
        let load = WorkerLoad(costOfCall: 0.001)
        #expect(CallAdmission.room(on: .init(load: load, calls: 255, capacity: 256), isFull: false) == 1)
        #expect(CallAdmission.room(on: .init(load: load, calls: 256, capacity: 256), isFull: false) == 0)
    }

    @Test("However idle the workers, no more streams come than the memory has room for")
    func memory() {
        #expect(CallAdmission.streams(in: 128 << 20) == 32 && CallAdmission.streams(in: 1 << 30) == 480)
        #expect(CallAdmission.streams(in: 1) == 8 && CallAdmission.streams(in: nil) > 1_000_000)
        var admission = CallAdmission(limit: 32)
        let load = WorkerLoad(costOfCall: 0.001)
        func worker(_ calls: Int) -> CallAdmission.Worker { .init(load: load, calls: calls, capacity: 256) }
        let answers = [
            admission.admits([worker(20), worker(11)], unplaced: 0),
            admission.admits([worker(20), worker(11)], unplaced: 1),
            admission.admits([worker(20), worker(11)], streams: 2, unplaced: 0),
            admission.admits([worker(32), worker(11)], unplaced: 0),
        ]
        #expect(answers == [true, false, false, false])
    }

    @Test("Calls that were admitted and are on no worker yet take their room")
    func unplaced() {
        var admission = CallAdmission()
        let idle = CallAdmission.Worker(load: WorkerLoad(costOfCall: 0.5), calls: 0, capacity: 256)
        let answers = [
            admission.admits([idle], unplaced: 1), admission.admits([idle], unplaced: 2),
            admission.admits([idle, idle], unplaced: 1),
        ]
        #expect(answers == [true, false, true])
    }

    @Test("A call with two legs needs room for both")
    func twoStreams() {
        var admission = CallAdmission()
        let idle = CallAdmission.Worker(load: WorkerLoad(costOfCall: 0.4), calls: 0, capacity: 256)
        let answers = [
            admission.admits([idle], streams: 2, unplaced: 0), admission.admits([idle], streams: 1, unplaced: 1),
            admission.admits([idle], streams: 2, unplaced: 1),
        ]
        #expect(answers == [true, true, false])
    }
}
