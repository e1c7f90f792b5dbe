@testable import ExchangeCore
@testable import ExchangeServer
import Core
import NIOCore
import NIOEmbedded
import SignalWire
import Synchronization
import Testing

/// A lease that a test holds and loses.
private final class ScriptedLease: StoreLease {
    private let held = Atomic(true)
    var isHeld: Bool {
        get { held.load(ordering: .relaxed) }
        set { held.store(newValue, ordering: .relaxed) }
    }
    let epoch = OwnerEpoch(timeline: "00000001", number: 7)
    let confirmationInterval = Duration.milliseconds(500)
}

/// A store that another process may take: writing confirms the lease, unless it is taken.
private final class LeasedDisk: JournalDisk {
    let path = "leased"
    let scripted = ScriptedLease()
    var lease: (any StoreLease)? { scripted }
    private let loop: EmbeddedEventLoop
    private(set) var writes: [Int] = []
    var isTaken = false
    /// What happens as a write ends, such as that the process is stopped.
    var atEnd: (ScriptedLease) -> Void = { _ in }

    init(_ loop: EmbeddedEventLoop) { self.loop = loop }

    func write(_ changes: [Change]) -> EventLoopFuture<Void> {
        writes.append(changes.count)
        return loop.scheduleTask(in: .milliseconds(10)) { [self] in
            guard !isTaken else { throw StoreError(.fenced, "taken") }
            scripted.isHeld = true
            atEnd(scripted)
        }.futureResult
    }

    func recover() -> EventLoopFuture<Saved> {
        isTaken ? loop.makeFailedFuture(StoreError(.fenced, "taken")) : loop.makeSucceededFuture(Saved())
    }
}

@Suite("What leaves an exchange whose store can be taken over") struct LeasedGateTests {
    private static let answer = ExchangeCore.Output.close(ConnectionID(number: 1), .goingDown)

    private func gate() -> (CommitGate, LeasedDisk, EmbeddedEventLoop) {
        let loop = EmbeddedEventLoop()
        let disk = LeasedDisk(loop)
        return (CommitGate(disk, loop: loop), disk, loop)
    }

    @Test("Outputs without changes leave at once while the lease is held")
    func held() {
        let (gate, disk, _) = gate()
        #expect(gate.take([Self.answer]).count == 1)
        #expect(disk.writes.isEmpty)
    }

    @Test("Once the lease has run out, outputs and answers wait for a write without changes, and leave after it")
    func confirmed() {
        let (gate, disk, loop) = gate()
        var left = 0
        gate.finish = { batch, error in
            #expect(error == nil)
            left += batch.outputs.count
            for then in batch.waiting { then(true) }
        }
        disk.scripted.isHeld = false
        var answered: Bool?
        #expect(gate.take([Self.answer]).isEmpty)
        gate.afterWriting { answered = $0 }
        #expect(left == 0 && answered == nil && disk.writes == [0])
        loop.advanceTime(by: .milliseconds(20))
        #expect(left == 1 && answered == true)
    }

    @Test(
        "A process that is stopped as its write ends keeps what it wrote from leaving until the lease is confirmed again"
    )
    func stoppedAtTheEnd() {
        let (gate, disk, loop) = gate()
        var left = 0
        gate.finish = { batch, _ in left += batch.outputs.count }
        disk.atEnd = { $0.isHeld = false }
        #expect(gate.take([.persist(.userAdded("bob", at: 1)), Self.answer]).isEmpty)
        loop.advanceTime(by: .milliseconds(11))
        #expect(left == 0 && disk.writes == [1, 0])
        disk.atEnd = { _ in }
        loop.advanceTime(by: .milliseconds(20))
        #expect(left == 1)
    }

    @Test("What is put back leaves before what came after it")
    func putBack() {
        let (gate, disk, loop) = gate()
        var left: [ExchangeCore.Output] = []
        gate.finish = { batch, _ in left += batch.outputs }
        disk.scripted.isHeld = false
        _ = gate.take([.close(ConnectionID(number: 2), .goingDown)])
        gate.putBack([Self.answer])
        loop.advanceTime(by: .milliseconds(50))
        #expect(left.count == 2)
    }

    @Test("After another process has taken the store, nothing leaves, and nothing more is written")
    func taken() {
        let (gate, disk, loop) = gate()
        var errors: [StoreError.Code] = []
        var answered: [Bool] = []
        gate.finish = { batch, error in
            errors.append(error?.code ?? .failed)
            for then in batch.waiting { then(false) }
        }
        (disk.isTaken, disk.scripted.isHeld) = (true, false)
        #expect(gate.take([Self.answer]).isEmpty)
        gate.afterWriting { answered.append($0) }
        loop.advanceTime(by: .seconds(10))
        gate.afterWriting { answered.append($0) }
        #expect(errors == [.fenced] && answered == [false, false])
        #expect(disk.writes == [0])
    }

    @Test("What was accepted is waited for, and not what comes without an end meanwhile")
    func steadyLoad() {
        let (gate, _, loop) = gate()
        var handedOver = 0
        gate.finish = { batch, _ in
            for then in batch.waiting { then(true) }
            // Whenever a batch is written, the next has changes already.
            _ = gate.take([.persist(.userAdded("bob", at: 1))])
        }
        _ = gate.take([.persist(.userAdded("bob", at: 1))])
        _ = gate.take([.persist(.userAdded("carol", at: 1))])
        gate.afterWriting { _ in handedOver += 1 }
        loop.advanceTime(by: .milliseconds(21))
        #expect(handedOver == 1 && gate.isWriting)
        gate.stopConfirming()
        gate.finish = { _, _ in }
    }

    @Test("An idle exchange confirms its lease twice a second, and one that writes does not write more for it")
    func confirming() {
        let (gate, disk, loop) = gate()
        gate.finish = { _, _ in }
        loop.advanceTime(by: .milliseconds(2_010))
        #expect(disk.writes.allSatisfy { $0 == 0 } && disk.writes.count == 4)
        _ = gate.take([.persist(.userAdded("bob", at: 1))])
        loop.advanceTime(by: .milliseconds(500))
        #expect(disk.writes.count == 5)
        gate.stopConfirming()
        loop.advanceTime(by: .seconds(10))
        #expect(disk.writes.count == 5)
    }
}
