import JSON
import SignalWire
import TestSupport
import Testing

@testable import ExchangeCore

/// Cores of several shards in several processes that write letters to each other, in virtual time, with all that can go wrong.
///
/// Clients have one shard pay a coin to another. The paying shard writes a letter, the other one answers by letter, and then the client is
/// answered. Processes crash between any two steps, stop and wake up as former owners, and shards move. Letters and receipts are lost,
/// repeated, delayed and reordered.
struct LetterSimulation {
    /// What is broken on purpose.
    enum Sabotage { case nothing, noFence, answersBeforeCommit, handlesDoubled }

    /// What happened, to show that a run was worth it.
    struct Tally {
        var (lost, doubled, crashes, moves, stops, fenced, busy, cutOff) = (0, 0, 0, 0, 0, 0, 0, 0)
    }

    /// What a shard's core has beside its letters.
    private struct Ledger {
        var coins = 100
        /// Payments to and from others, in order.
        var paid: [Shard: [Int]] = [:]
        var received: [Shard: [Int]] = [:]
        /// Those that the other shard has confirmed.
        var confirmed: Set<Int> = []
    }

    private struct ShardCore {
        var desk: LetterDesk
        var ledger: Ledger
        let epoch: Int64
    }

    /// What is on disk of a shard, and who may write it.
    private struct Stored {
        var saved = Saved()
        var ledger = Ledger()
        var epoch: Int64 = 0
    }

    private enum Sent {
        case letter(LetterDelivery)
        case receipt(LetterReceipt)
        case answer(Int)
    }

    /// What is written in one transaction for all shards of a process, and what leaves after it.
    private struct Batch {
        struct Part {
            var changes: [Change] = []
            var ledger: Ledger
            var epoch: Int64
            var outputs: [Sent] = []
        }
        var parts: [Shard: Part] = [:]
    }

    private struct Process {
        var cores: [Shard: ShardCore] = [:]
        var gathered = Batch()
        var inFlight: Batch?
        var isUp = true
        var stoppedUntil = 0
        /// Counts its lives, so that what was meant for an earlier one is void.
        var life = 0
    }

    private enum Event {
        case request(Int)
        case arrival(Sent)
        case committed(process: Int, life: Int)
        case poll(process: Int)
        case restart(process: Int)
        case takeOver(Shard, by: Int)
        case trouble
    }

    private struct Payment {
        var from: Shard
        var to: Shard
    }

    /// Milliseconds without trouble at the end, so that everything comes to rest.
    private static let (troubled, whole) = (6_000, 14_000)
    private let shards: [Shard]
    private let sabotage: Sabotage
    private var generator: SeededGenerator
    private var now = 0
    private var events: [(time: Int, event: Event)] = []
    private var disk: [Shard: Stored] = [:]
    private var processes = Array(repeating: Process(), count: 3)
    private var payments: [Payment] = []
    private var answered: Set<Int> = []
    private(set) var tally = Tally()

    init(seed: UInt64, sabotage: Sabotage = .nothing) throws {
        generator = SeededGenerator(seed: seed)
        self.sabotage = sabotage
        shards = try (0..<5).map { try Post.shard($0 * 9) }
        for shard in shards { disk[shard] = Stored() }
        for (index, shard) in shards.enumerated() { try take(shard, by: index % processes.count) }
        for number in 0..<80 {
            let from = random(shards.count)
            let to = (from + 1 + random(shards.count - 1)) % shards.count
            payments.append(Payment(from: shards[from], to: shards[to]))
            // Some come in bursts, which find no room.
            plan(.request(number), in: random(10) * Self.troubled / 10 + random(60))
        }
        for process in processes.indices { plan(.poll(process: process), in: 50) }
        plan(.trouble, in: 100)
    }

    // MARK: - Time and chance

    private mutating func random(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &generator) }
    private mutating func happens(_ percent: Int) -> Bool { random(100) < percent }
    private mutating func plan(_ event: Event, in delay: Int) { events.append((now + delay, event)) }

    mutating func run() throws {
        while let next = events.indices.min(by: { events[$0].time < events[$1].time }), events[next].time < Self.whole {
            let (time, event) = events.remove(at: next)
            now = time
            try handle(event)
        }
    }

    private mutating func handle(_ event: Event) throws {
        switch event {
        case .request(let number):
            guard !answered.contains(number) else { return }
            plan(event, in: 250 + random(100))
            guard let index = believer(in: payments[number].from), processes[index].stoppedUntil <= now else { return }
            try request(number, at: index)
        case .arrival(let sent): try arrive(sent)
        case .committed(let index, let life):
            guard processes[index].life == life, !waits(index, event) else { return }
            endCommit(of: index)
        case .poll(let index):
            plan(event, in: 50)
            if processes[index].isUp, processes[index].stoppedUntil <= now { sendAgain(from: index) }
        case .restart(let index): processes[index].isUp = true
        case .takeOver(let shard, let index): try take(shard, by: index)
        case .trouble: makeTrouble()
        }
    }

    /// Whether a process is stopped; then the event comes when it wakes up.
    private mutating func waits(_ index: Int, _ event: Event) -> Bool {
        guard processes[index].stoppedUntil > now else { return false }
        events.append((processes[index].stoppedUntil, event))
        return true
    }

    /// One of the processes that take themselves for a shard's owner.
    private mutating func believer(in shard: Shard) -> Int? {
        let believers = processes.indices.filter { processes[$0].cores[shard] != nil }
        return believers.isEmpty ? nil : believers[random(believers.count)]
    }

    // MARK: - Inputs of cores

    private mutating func request(_ number: Int, at index: Int) throws {
        let payment = payments[number]
        guard var core = processes[index].cores[payment.from] else { return }
        if core.ledger.confirmed.contains(number) { return put(.answer(number), core, index) }
        guard !(core.ledger.paid[payment.to] ?? []).contains(number) else { return }
        let body = try Post.body(number + 1)
        do {
            try core.desk.afford(body.bytes, to: payment.to)
        } catch {
            tally.busy += 1
            return
        }
        core.ledger.coins -= 1
        core.ledger.paid[payment.to, default: []].append(number)
        put(.letter(core.desk.write(body, to: payment.to)), core, index)
    }

    private mutating func arrive(_ sent: Sent) throws {
        switch sent {
        case .answer(let number): answered.insert(number)
        case .receipt(let receipt):
            guard let index = believer(in: receipt.to), !waits(index, .arrival(sent)),
                var core = processes[index].cores[receipt.to]
            else { return }
            core.desk.receive(receipt)
            put(nil, core, index)
        case .letter(let delivery):
            let shard = delivery.letter.to
            guard let index = believer(in: shard), !waits(index, .arrival(sent)),
                var core = processes[index].cores[shard]
            else { return }
            var arrival = core.desk.receive(delivery)
            if sabotage == .handlesDoubled, arrival.letters.isEmpty, arrival.receipt != nil {
                arrival.letters = [delivery.letter]
            }
            var outputs: [Sent] = []
            for letter in arrival.letters { outputs.append(try consume(letter, &core)) }
            if let receipt = arrival.receipt { outputs.append(.receipt(receipt)) }
            put(outputs, core, index)
        }
    }

    private func consume(_ letter: Letter, _ core: inout ShardCore) throws -> Sent {
        let said = try #require(letter.body.value?.integer).magnitude
        let number = Int(said) - 1
        guard case .integer(let signed)? = letter.body.value, signed > 0 else {
            core.ledger.confirmed.insert(number)
            return .answer(number)
        }
        core.ledger.coins += 1
        core.ledger.received[letter.from, default: []].append(number)
        return .letter(core.desk.write(try Post.body(-Int(said)), to: letter.from))
    }

    private mutating func sendAgain(from index: Int) {
        for core in processes[index].cores.values.sorted(by: { $0.desk.shard < $1.desk.shard }) {
            let letters = core.desk.waitingPeers.flatMap { core.desk.unacknowledged(by: $0, atMost: 4) }
            if !letters.isEmpty { put(letters.map { .letter($0) }, core, index) }
        }
    }

    // MARK: - Commits

    private mutating func put(_ output: Sent?, _ core: ShardCore, _ index: Int) {
        put([output].compactMap(\.self), core, index)
    }

    /// Takes what a core did: it gathers until the transaction before it has ended.
    private mutating func put(_ outputs: [Sent], _ core: ShardCore, _ index: Int) {
        var core = core
        let shard = core.desk.shard
        var part = processes[index].gathered.parts[shard] ?? Batch.Part(ledger: core.ledger, epoch: core.epoch)
        part.changes += core.desk.takeChanges()
        part.ledger = core.ledger
        if sabotage == .answersBeforeCommit { send(outputs) } else { part.outputs += outputs }
        processes[index].gathered.parts[shard] = part
        processes[index].cores[shard] = core
        if processes[index].inFlight == nil { beginCommit(of: index) }
    }

    private mutating func beginCommit(of index: Int) {
        guard !processes[index].gathered.parts.isEmpty else { return }
        processes[index].inFlight = processes[index].gathered
        processes[index].gathered = Batch()
        plan(.committed(process: index, life: processes[index].life), in: 1 + random(20))
    }

    /// Writes what the process may still write. Of a shard that another one has taken over it drops everything.
    private mutating func write(_ batch: Batch) -> [Shard: [Sent]] {
        var written: [Shard: [Sent]] = [:]
        for (shard, part) in batch.parts.sorted(by: { $0.key < $1.key }) {
            guard var stored = disk[shard], stored.epoch == part.epoch || sabotage == .noFence else { continue }
            stored.saved.apply(part.changes)
            stored.ledger = part.ledger
            disk[shard] = stored
            written[shard] = part.outputs
        }
        return written
    }

    private mutating func endCommit(of index: Int) {
        guard let batch = processes[index].inFlight else { return }
        processes[index].inFlight = nil
        let written = write(batch)
        for (shard, part) in batch.parts.sorted(by: { $0.key < $1.key }) {
            if let outputs = written[shard] {
                send(outputs)
            } else if processes[index].cores[shard]?.epoch == part.epoch {
                tally.fenced += 1
                processes[index].cores[shard] = nil
                processes[index].gathered.parts[shard] = nil
            }
        }
        beginCommit(of: index)
    }

    private mutating func send(_ outputs: [Sent]) {
        for output in outputs {
            guard now < Self.troubled else {
                plan(.arrival(output), in: 1 + random(20))
                continue
            }
            if happens(15) {
                tally.lost += 1
                continue
            }
            // Some come after their shard has moved.
            let copies = happens(15) ? 2 : 1
            tally.doubled += copies - 1
            for _ in 0..<copies { plan(.arrival(output), in: 1 + random(happens(5) ? 2_000 : 80)) }
        }
    }

    // MARK: - Trouble

    private mutating func makeTrouble() {
        guard now < Self.troubled else {
            for shard in shards where !processes.contains(where: { $0.cores[shard] != nil }) {
                plan(.takeOver(shard, by: 0), in: 1)
            }
            // Those that are stopped wake up, and find that they own nothing any more.
            if now < Self.whole - 2_000 { plan(.trouble, in: 500) }
            return
        }
        plan(.trouble, in: 50 + random(200))
        let index = random(processes.count)
        switch random(4) {
        case 0: crash(index)
        case 1:
            tally.stops += 1
            processes[index].stoppedUntil = now + 50 + random(1_200)
            // Others take it for dead, sometimes wrongly.
            if happens(70) { giveAway(shardsOf: index, after: 200) }
        default:
            tally.moves += 1
            plan(.takeOver(shards[random(shards.count)], by: index), in: 1)
        }
    }

    private mutating func crash(_ index: Int) {
        guard processes[index].isUp else { return }
        tally.crashes += 1
        giveAway(shardsOf: index, after: 200)
        // Whether a transaction under way was committed is not known.
        if let batch = processes[index].inFlight, happens(50) {
            _ = write(batch)
            tally.cutOff += 1
        }
        let life = processes[index].life + 1
        processes[index] = Process(isUp: false, life: life)
        plan(.restart(process: index), in: 100 + random(400))
    }

    private mutating func giveAway(shardsOf index: Int, after delay: Int) {
        for shard in processes[index].cores.keys.sorted() {
            plan(.takeOver(shard, by: random(processes.count)), in: delay)
        }
    }

    /// A process takes a shard over, with what is on disk. The former owner does not know yet.
    private mutating func take(_ shard: Shard, by index: Int) throws {
        guard processes[index].isUp, processes[index].stoppedUntil <= now else {
            return plan(.takeOver(shard, by: random(processes.count)), in: 50)
        }
        guard var stored = disk[shard] else { return }
        stored.epoch += 1
        disk[shard] = stored
        var limits = LetterDesk.Limits()
        limits.ofPair = 2 * 520
        var desk = LetterDesk(of: shard, epoch: try Post.epoch(stored.epoch), limits: limits)
        desk.restore(stored.saved)
        // If it was the owner itself: what it had under way belongs to an earlier ownership.
        processes[index].gathered.parts[shard] = nil
        processes[index].cores[shard] = ShardCore(desk: desk, ledger: stored.ledger, epoch: stored.epoch)
    }

    // MARK: - Judgement

    /// What is wrong at the end, from what clients were answered and what is on disk.
    var problems: [String] {
        var problems: [String] = []
        let ledgers = disk.mapValues(\.ledger)
        let coins = ledgers.values.reduce(0) { $0 + $1.coins }
        if coins != 100 * shards.count { problems.append("\(coins) coins") }
        for (from, ledger) in ledgers {
            for (to, paid) in ledger.paid where ledgers[to]?.received[from] ?? [] != paid {
                problems.append("\(from) to \(to): paid \(paid), received \(ledgers[to]?.received[from] ?? [])")
            }
            for (to, received) in ledger.received where ledgers[to]?.paid[from] ?? [] != received {
                problems.append("\(from) has \(received) from \(to), which paid \(ledgers[to]?.paid[from] ?? [])")
            }
        }
        for (number, payment) in payments.enumerated() {
            let times = (ledgers[payment.from]?.paid[payment.to] ?? []).count { $0 == number }
            if times > 1 { problems.append("payment \(number) was made \(times) times") }
            if answered.contains(number), times == 0 { problems.append("payment \(number) was answered, and is lost") }
            if !answered.contains(number) { problems.append("payment \(number) was never answered") }
        }
        for (shard, stored) in disk where !stored.saved.letters.isEmpty {
            problems.append("\(shard) has \(stored.saved.letters.count) letters left")
        }
        return problems
    }
}
