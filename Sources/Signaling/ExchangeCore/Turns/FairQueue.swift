/// Work that waits, served by turns: a payer that asks for much waits for one that asks for little, and not the reverse.
///
/// Deficit round robin (Shreedhar and Varghese, 1996) over payers that wait, with the priority of sparse flows of RFC 8290
/// §4.2 and, among sparse flows, least attained service first. Within each payer it is a plain round robin over its lines.
/// The cost of an element is charged after it was served, so an estimate that is too low gains nothing: a payer that took
/// more than its share is in debt, and is passed over until it has paid.
///
/// Time is counted in rounds, which the driver begins. A payer has a credit of at most ``Limits/quantum``, of which
/// ``Limits/refill`` returns in each round in which it has nothing waiting. An element that the credit covers is *sparse*.
/// Sparse elements go before all others, in the order of what their payer has used lately, with the element included, in
/// steps of powers of two; what was used counts half after ``Limits/halving`` rounds. Those of the lowest steps, up to
/// ``Limits/rareUse``, are *rare*. In one round, an element is served
/// - if it is rare, while less than ``Limits/rareRound`` was served, and after ``Limits/round`` of these, one of the other
///   sparse elements goes before it;
/// - if it is sparse, while less than ``Limits/sparseRound`` was served. One that is left over moves up a step, as far as
///   the lowest that is not rare;
/// - else in turn, ``Limits/quantum`` per turn, while less than ``Limits/round`` was served, or less than
///   ``Limits/leastTurns`` of this kind.
///
/// What an element in turn costs beyond `round` does not count against the sparse ones. So a round costs at most
/// ``Limits/longestRound`` and one element, however many payers there are; no payer starves; and an idle payer that returns
/// gains a quantum at most.
///
/// Elements of one line keep their order. Capacity: ``Limits``; past it the driver must stop reading a line, and later
/// elements are refused. A payer that waits for nothing, owes nothing and has used nothing lately is not remembered.
package struct FairQueue<Payer: Hashable & Sendable, Line: Hashable & Sendable, Element> {
    /// How much is served in a round, and how much may wait.
    package struct Limits: Sendable {
        /// The most that a payer can save up, and the cost of one turn.
        package var quantum: Int
        /// What a payer without a backlog regains of it in each round.
        var refill: Int
        /// What is served in a round before elements of payers with a backlog, or of more than their credit, must wait.
        var round: Int
        /// The least of these that is served in each round.
        var leastTurns: Int
        /// What is served in a round before sparse elements must wait.
        var sparseRound: Int
        /// What is served in a round before rare elements must wait.
        var rareRound: Int
        /// The most that a payer has used lately, with the element, if that is rare.
        var rareUse: Int
        /// The number of rounds after which half of what a payer has used is forgotten.
        var halving: Int
        /// How many turns a payer may have to sit out at most: what it owes beyond that is forgiven.
        var longestDebt: Int
        /// What may wait of one payer, and in all, before lines are paused; four times as much is refused. What may not be
        /// refused counts by its bytes alone.
        var payerCount: Int
        var payerBytes: Int
        var totalBytes: Int

        /// Sets the limits; the defaults are those of docs/protocol.md.
        package init(
            quantum: Int = 32, refill: Int = 2, round: Int = 192, leastTurns: Int = 64, sparseRound: Int = 256,
            rareRound: Int = 320, rareUse: Int = 15, halving: Int = 256, longestDebt: Int = 64, payerCount: Int = 64,
            payerBytes: Int = 262_144, totalBytes: Int = 8_388_608
        ) {
            self.quantum = quantum
            self.refill = refill
            self.round = round
            self.leastTurns = leastTurns
            self.sparseRound = sparseRound
            self.rareRound = rareRound
            self.rareUse = rareUse
            self.halving = halving
            self.longestDebt = longestDebt
            self.payerCount = payerCount
            self.payerBytes = payerBytes
            self.totalBytes = totalBytes
        }

        /// The most that is served in a round before its last element, of any number of payers whose sparse elements cost
        /// what was expected.
        var longestRound: Int { rareRound + leastTurns + quantum }
    }

    package enum Admission: Hashable, Sendable {
        case taken
        /// It is taken, and no more should come on this line until ``takeResumed()`` names it.
        case takenAndPaused
        case refused
    }

    private enum Place {
        /// Nothing waits.
        case idle
        /// Served before those in rotation.
        case ready
        case rotation
        /// Between ``next()`` and ``charge(_:)``.
        case serving
    }

    private enum Kind {
        case rare, sparse, inTurn
    }

    private struct Waiting {
        let element: Element
        let bytes: Int
        let weight: Int
        let isOptional: Bool
    }

    private struct Account {
        /// What is left of the quantum; below zero it is a debt.
        var credit: Int
        /// The round up to which an idle payer's credit has been refilled.
        var refilled: Int
        /// What was used lately, and the number of halvings that are included.
        var use = 0
        var halvings: Int
        var place = Place.idle
        /// Whether it is in ``FairQueue/idle``.
        var isListed = false
        var lines: [Line: FIFO<Waiting>] = [:]
        var order = FIFO<Line>()
        var count = 0
        /// How many of them might have been refused.
        var optional = 0
        var bytes = 0
        var paused: Set<Line> = []
    }

    package let limits: Limits
    private var accounts: [Payer: Account] = [:]
    private var payers: [Line: Payer] = [:]
    /// Those with a sparse element, by the power of two above what they will have used.
    private var ready: [FIFO<Payer>]
    /// The lowest step of those that are not rare.
    private let commonStep: Int
    private var rotation = FIFO<Payer>()
    /// The one in rotation whose turn it is.
    private var current: Payer?
    /// Whose element was taken out and not charged yet, and why it was served.
    private var serving: (payer: Payer, kind: Kind)?
    /// Those to be forgotten once they owe nothing and have used nothing lately, each once.
    private var idle = FIFO<Payer>()
    private var resumed: [Line] = []
    /// How many rounds have begun.
    private var rounds = 0
    /// What was served in this round in all, without what elements in turn cost beyond ``Limits/round``.
    private var served = 0
    /// What rare elements, and those in turn, cost in this round.
    private var (servedRare, servedInTurn) = (0, 0)
    /// How many elements wait.
    private(set) var count = 0
    /// What they were said to take up.
    package private(set) var bytes = 0

    package init(_ limits: Limits = Limits()) {
        self.limits = limits
        commonStep = Self.digits(limits.rareUse + 1)
        ready = Array(repeating: FIFO(), count: Self.digits(Self.mostUse) + 1)
    }

    /// What a payer has used lately counts up to this.
    private static var mostUse: Int { 16_383 }

    /// The number of binary digits.
    private static func digits(_ number: Int) -> Int { number.bitWidth - number.leadingZeroBitCount }

    package var isEmpty: Bool { count == 0 }
    /// How many payers are remembered.
    var remembered: Int { accounts.count }

    /// Who pays for what waits on a line; `nil` if nothing does.
    package func payer(of line: Line) -> Payer? { payers[line] }

    /// Whether nothing of a payer would be served at once, since something of it waits or it has something to pay back.
    package func mustWait(_ payer: Payer) -> Bool {
        accounts[payer].map { $0.count > 0 || settled($0).credit <= 0 } ?? false
    }

    /// How many elements of a payer wait.
    func waiting(of payer: Payer) -> Int { accounts[payer]?.count ?? 0 }

    /// Whether something was served and has not been charged.
    package var isServing: Bool { serving != nil }

    // MARK: - Coming

    /// Puts an element at the end of its line.
    ///
    /// - Parameters:
    ///   - weight: What it is expected to cost.
    ///   - isOptional: Whether it may be refused.
    package mutating func enqueue(
        _ element: Element, bytes size: Int, weight: Int, on line: Line, of payer: Payer, isOptional: Bool = true
    ) -> Admission {
        // Elements of a line are served in order, also if a later one has another payer.
        let payer = payers[line] ?? payer
        if isOptional, !hasRoom(for: size, of: payer) { return .refused }
        var account = takeAccount(of: payer)
        defer { accounts[payer] = account }
        count += 1
        bytes += size
        account.count += 1
        if isOptional { account.optional += 1 }
        account.bytes += size
        if account.lines[line] == nil {
            account.order.append(line)
            payers[line] = payer
        }
        account.lines[line, default: FIFO()].append(
            Waiting(element: element, bytes: size, weight: weight, isOptional: isOptional))
        if account.place == .idle { place(&account, of: payer) }
        let isFull =
            account.optional >= limits.payerCount || account.bytes >= limits.payerBytes || bytes >= limits.totalBytes
        if isFull { account.paused.insert(line) }
        return isFull ? .takenAndPaused : .taken
    }

    /// An account as it is in this round.
    private func settled(_ account: Account) -> Account {
        var account = account
        if account.place == .idle {
            let (gained, overflow) = (rounds - account.refilled).multipliedReportingOverflow(by: limits.refill)
            account.credit = min(overflow ? limits.quantum : account.credit + gained, limits.quantum)
            account.refilled = rounds
        }
        let halvings = rounds / limits.halving
        account.use >>= halvings - account.halvings
        account.halvings = halvings
        return account
    }

    private mutating func takeAccount(of payer: Payer) -> Account {
        accounts.removeValue(forKey: payer).map(settled)
            ?? Account(credit: limits.quantum, refilled: rounds, halvings: rounds / limits.halving)
    }

    /// Puts a payer where its next element is served from.
    private mutating func place(_ account: inout Account, of payer: Payer) {
        guard let weight = account.order.first.flatMap({ account.lines[$0]?.first?.weight }) else { return }
        if weight <= account.credit {
            account.place = .ready
            ready[step(account, weight)].append(payer)
        } else {
            account.place = .rotation
            rotation.append(payer)
        }
    }

    /// Where a sparse element comes in the order: the number of binary digits of what its payer will have used.
    private func step(_ account: Account, _ weight: Int) -> Int {
        Self.digits(min(account.use + max(weight, 1), Self.mostUse))
    }

    /// Whether sparse elements of a step are served in this round.
    private func isOpen(to step: Int) -> Bool {
        served < (step < commonStep ? limits.rareRound : limits.sparseRound)
    }

    /// The step of which a sparse element is served next, if one is.
    private var nextStep: Int? {
        guard let first = ready.firstIndex(where: { !$0.isEmpty }) else { return nil }
        if first < commonStep, servedRare >= limits.round,
            let common = ready[commonStep...].firstIndex(where: { !$0.isEmpty }), isOpen(to: common)
        {
            return common
        }
        return isOpen(to: first) ? first : nil
    }

    private func hasRoom(for size: Int, of payer: Payer) -> Bool {
        guard bytes + size <= 4 * limits.totalBytes else { return false }
        guard let account = accounts[payer] else { return true }
        return account.optional < 4 * limits.payerCount && account.bytes + size <= 4 * limits.payerBytes
    }

    // MARK: - Going

    /// Serves an element without its ever having waited, if nothing comes before it. Call ``charge(_:)`` afterwards;
    /// if it is not served, enqueue it.
    package mutating func serveAtOnce(_ payer: Payer, weight: Int) -> Bool {
        guard serving == nil else { return false }
        let account = takeAccount(of: payer)
        accounts[payer] = account
        let step = step(account, weight)
        guard account.place == .idle, weight <= account.credit, isOpen(to: step),
            ready[...step].allSatisfy(\.isEmpty)
        else {
            if account.place == .idle { forgetLater(payer) }
            return false
        }
        serving = (payer, step < commonStep ? .rare : .sparse)
        return true
    }

    /// Begins a round, or several, if as many went by in which nothing waited.
    package mutating func beginRound(after rounds: Int = 1) {
        self.rounds += rounds
        (served, servedRare, servedInTurn) = (0, 0, 0)
        for step in (commonStep + 1)..<ready.count where !ready[step].isEmpty {
            ready[step - 1].append(contentsOf: ready[step])
            ready[step] = FIFO()
        }
        // Each is looked at once in 64 rounds, so that a round's share of it is small however many there are.
        for _ in 0..<min(idle.count, 8 + idle.count / 64) {
            guard let payer = idle.popFirst(), var account = accounts.removeValue(forKey: payer).map(settled) else {
                break
            }
            let isIdle = account.place == .idle
            if isIdle, account.credit >= limits.quantum, account.use == 0 { continue }
            account.isListed = isIdle
            if isIdle { idle.append(payer) }
            accounts[payer] = account
        }
    }

    private mutating func forgetLater(_ payer: Payer) {
        guard accounts[payer]?.isListed == false else { return }
        accounts[payer]?.isListed = true
        idle.append(payer)
    }

    /// Takes out the element whose turn it is; `nil` if nothing waits or the round has no more to give. Call
    /// ``charge(_:)`` before the next one.
    package mutating func next() -> Element? {
        precondition(serving == nil, "what was served last has not been charged")
        if let step = nextStep, let payer = ready[step].popFirst() {
            return take(from: payer, as: step < commonStep ? .rare : .sparse)
        }
        guard served < limits.round || servedInTurn < limits.leastTurns else { return nil }
        // Each step lowers a debt by a quantum, so that there are as many for each payer as its debt may have, at most.
        while current == nil, let payer = rotation.popFirst() {
            guard var account = accounts.removeValue(forKey: payer) else { continue }
            account.credit = min(account.credit + limits.quantum, limits.quantum)
            if account.credit > 0 { current = payer } else { rotation.append(payer) }
            accounts[payer] = account
        }
        return current.flatMap { take(from: $0, as: .inTurn) }
    }

    private mutating func take(from payer: Payer, as kind: Kind) -> Element? {
        guard var account = accounts.removeValue(forKey: payer) else { return nil }
        defer { accounts[payer] = account }
        guard let line = account.order.popFirst(), let first = account.lines[line]?.popFirst() else { return nil }
        if account.lines[line]?.isEmpty == false {
            account.order.append(line)
        } else {
            account.lines[line] = nil
            payers[line] = nil
        }
        count -= 1
        bytes -= first.bytes
        account.count -= 1
        if first.isOptional { account.optional -= 1 }
        account.bytes -= first.bytes
        account.place = .serving
        serving = (payer, kind)
        if account.optional <= limits.payerCount / 2, account.bytes <= limits.payerBytes / 2 {
            resumed += account.paused
            account.paused = []
        }
        return first.element
    }

    /// Charges the payer that was served last with the cost of that, at least 1.
    package mutating func charge(_ cost: Int) {
        guard let (payer, kind) = serving else { return }
        serving = nil
        let cost = max(cost, 1)
        var account = takeAccount(of: payer)
        charge(&account, cost)
        switch kind {
        case .rare:
            servedRare += cost
            served += cost
        case .sparse: served += cost
        case .inTurn:
            servedInTurn += cost
            served += min(cost, max(limits.round - served, 0))
        }
        let isRotated = kind == .inTurn
        let keepsTurn = isRotated && account.count > 0 && account.credit > 0
        if isRotated, !keepsTurn { current = nil }
        switch account.place {
        case .ready, .rotation: break  // Something came while its first element was served at once.
        case .idle, .serving:
            if account.count == 0 {
                // What is left of a turn is not served at once later: each thing that comes would have another turn in a
                // round.
                if isRotated { account.credit = min(account.credit, 0) }
                (account.place, account.refilled) = (.idle, rounds)
            } else if isRotated {
                account.place = .rotation
                if !keepsTurn { rotation.append(payer) }
            } else {
                place(&account, of: payer)
            }
        }
        accounts[payer] = account
        if account.place == .idle { forgetLater(payer) }
    }

    private func charge(_ account: inout Account, _ cost: Int) {
        account.credit = max(account.credit - cost, -limits.longestDebt * limits.quantum)
        account.use = min(account.use + cost, Self.mostUse)
    }

    /// Charges a payer for something that was not served, but refused.
    package mutating func fine(_ payer: Payer, _ cost: Int) {
        var account = takeAccount(of: payer)
        charge(&account, max(cost, 1))
        accounts[payer] = account
        if account.place == .idle { forgetLater(payer) }
    }

    /// Has ``takeResumed()`` name a line once there is room for it; false if nothing of its payer waits, so that no waiting
    /// work would trigger the resume.
    package mutating func pause(_ line: Line, of payer: Payer) -> Bool {
        guard let count = accounts[payer]?.count, count > 0 else { return false }
        accounts[payer]?.paused.insert(line)
        return true
    }

    /// The lines that may be read again, since last asked.
    package mutating func takeResumed() -> [Line] {
        guard !resumed.isEmpty else { return [] }
        defer { resumed = [] }
        return resumed
    }
}

/// Elements in the order of their coming. What is taken out holds no memory of its own any more.
private struct FIFO<Element> {
    private var elements: [Element?] = []
    private var head = 0

    var count: Int { elements.count - head }
    var isEmpty: Bool { head == elements.count }
    var first: Element? { isEmpty ? nil : elements[head] }

    mutating func append(_ element: Element) { elements.append(element) }

    /// Puts the elements of another behind these.
    mutating func append(contentsOf other: FIFO) {
        if isEmpty { self = other } else { elements += other.elements[other.head...] }
    }

    /// Takes out the oldest.
    ///
    /// - Complexity: O(1), amortized.
    mutating func popFirst() -> Element? {
        guard head < elements.count else { return nil }
        let first = elements[head]
        elements[head] = nil
        head += 1
        if head * 2 >= elements.count {
            elements.removeFirst(head)
            head = 0
        }
        return first
    }
}
