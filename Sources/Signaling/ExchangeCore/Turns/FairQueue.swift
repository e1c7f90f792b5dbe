/// Work that waits, served by turns: whoever asks for much waits for whoever asks for little, and not the other way round.
///
/// Deficit round robin (Shreedhar and Varghese, 1996) over payers, with the priority of sparse flows of RFC 8290 §4.2,
/// and within each payer a plain round robin over its lines. What an element costs is charged after it was served, so
/// that nothing has to be guessed right: a payer that took more than its share is in debt, and is passed over until it
/// has paid.
///
/// Time is counted in rounds, which the driver begins. In one round are served, at most:
/// - of each payer without a backlog, elements that are expected to cost no more than is left of its
///   ``Limits/quantum``, at once;
/// - of all others by turns, elements that cost ``Limits/round`` together, and the last one may exceed it.
///
/// Elements of one line keep their order. Capacity: ``Limits``; past it the driver is told to stop reading a line, and
/// later elements are refused. A payer with nothing to wait for and nothing to pay back is not remembered.
package struct FairQueue<Payer: Hashable & Sendable, Line: Hashable & Sendable, Element> {
    /// How much is served in a round, and how much may wait.
    package struct Limits: Sendable {
        /// What each payer may cost in a round before others go first.
        package var quantum: Int
        /// What those may cost in a round, all together, that have a backlog or ask for more than a quantum.
        var round: Int
        /// How many rounds a payer may have to sit out at most: what it owes beyond that is forgiven.
        var longestDebt: Int
        /// What may wait of one payer, and in all, before lines are paused; four times as much is refused. What may not be
        /// refused counts by its bytes alone.
        var payerCount: Int
        var payerBytes: Int
        var totalBytes: Int

        /// Sets the limits; the defaults are those of docs/protocol.md.
        package init(
            quantum: Int = 32, round: Int = 256, longestDebt: Int = 64, payerCount: Int = 64, payerBytes: Int = 262_144,
            totalBytes: Int = 8_388_608
        ) {
            self.quantum = quantum
            self.round = round
            self.longestDebt = longestDebt
            self.payerCount = payerCount
            self.payerBytes = payerBytes
            self.totalBytes = totalBytes
        }
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

    private struct Account {
        /// What is left of the quantum; below zero it is a debt.
        var credit: Int
        var place = Place.idle
        var lines: [Line: FIFO<(element: Element, bytes: Int, isOptional: Bool)>] = [:]
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
    private var ready = FIFO<Payer>()
    private var rotation = FIFO<Payer>()
    /// The one in rotation whose turn it is.
    private var current: Payer?
    /// Whose element was taken out and not charged yet, and whether it came from the rotation.
    private var serving: (payer: Payer, isRotated: Bool)?
    /// Those that only have something to pay back.
    private var idle: Set<Payer> = []
    private var resumed: [Line] = []
    /// What is left of this round for those in rotation.
    private var allowance: Int
    /// How many elements wait.
    private(set) var count = 0
    /// What they were said to take up.
    package private(set) var bytes = 0

    package init(_ limits: Limits = Limits()) {
        self.limits = limits
        allowance = limits.round
    }

    package var isEmpty: Bool { count == 0 }
    /// How many payers are remembered.
    var remembered: Int { accounts.count }

    /// Who pays for what waits on a line; `nil` if nothing does.
    package func payer(of line: Line) -> Payer? { payers[line] }

    /// Whether nothing of a payer would be served at once, since something of it waits or it has something to pay back.
    package func mustWait(_ payer: Payer) -> Bool { accounts[payer].map { $0.count > 0 || $0.credit <= 0 } ?? false }

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
        // What waits on a line is served in order, whoever pays for what comes later.
        let payer = payers[line] ?? payer
        if isOptional, !hasRoom(for: size, of: payer) { return .refused }
        var account = accounts.removeValue(forKey: payer) ?? Account(credit: limits.quantum)
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
        account.lines[line, default: FIFO()].append((element, size, isOptional))
        if account.place == .idle {
            idle.remove(payer)
            account.place = weight <= account.credit ? .ready : .rotation
            if account.place == .ready { ready.append(payer) } else { rotation.append(payer) }
        }
        let isFull =
            account.optional >= limits.payerCount || account.bytes >= limits.payerBytes || bytes >= limits.totalBytes
        if isFull { account.paused.insert(line) }
        return isFull ? .takenAndPaused : .taken
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
        guard serving == nil, ready.isEmpty else { return false }
        if let account = accounts[payer] {
            guard account.place == .idle, weight <= account.credit else { return false }
        } else {
            guard weight <= limits.quantum else { return false }
        }
        serving = (payer, false)
        return true
    }

    /// Begins a round: everybody may cost a quantum again, or several, if as many rounds went by in which nothing waited.
    package mutating func beginRound(after rounds: Int = 1) {
        allowance = limits.round
        for payer in idle {
            guard var account = accounts.removeValue(forKey: payer) else { continue }
            account.credit += rounds * limits.quantum
            if account.credit >= limits.quantum { idle.remove(payer) } else { accounts[payer] = account }
        }
    }

    /// Takes out the element whose turn it is; `nil` if nothing waits or the round has no more to give. Call
    /// ``charge(_:)`` before the next one.
    package mutating func next() -> Element? {
        precondition(serving == nil, "what was served last has not been charged")
        if let payer = ready.popFirst() { return take(from: payer, isRotated: false) }
        guard allowance > 0 else { return nil }
        // Each step lowers a debt by a quantum, so that there are as many for each payer as its debt may have, at most.
        while current == nil, let payer = rotation.popFirst() {
            guard var account = accounts.removeValue(forKey: payer) else { continue }
            account.credit = min(account.credit + limits.quantum, limits.quantum)
            if account.credit > 0 { current = payer } else { rotation.append(payer) }
            accounts[payer] = account
        }
        return current.flatMap { take(from: $0, isRotated: true) }
    }

    private mutating func take(from payer: Payer, isRotated: Bool) -> Element? {
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
        serving = (payer, isRotated)
        if account.optional <= limits.payerCount / 2, account.bytes <= limits.payerBytes / 2 {
            resumed += account.paused
            account.paused = []
        }
        return first.element
    }

    /// Charges whoever was served last with what that cost, at least 1.
    package mutating func charge(_ cost: Int) {
        guard let (payer, isRotated) = serving else { return }
        serving = nil
        var account = accounts.removeValue(forKey: payer) ?? Account(credit: limits.quantum)
        account.credit = credit(of: account, after: cost)
        if isRotated { allowance -= max(cost, 1) }
        let keepsTurn = isRotated && account.count > 0 && account.credit > 0
        if isRotated, !keepsTurn { current = nil }
        switch account.place {
        case .ready, .rotation: break  // Something came while its first element was served at once.
        case .idle, .serving:
            account.place = account.count > 0 ? .rotation : .idle
            // What is left of a turn is not served at once later: each thing that comes would have another turn in a round.
            if isRotated, account.count == 0 { account.credit = min(account.credit, 0) }
            if account.count > 0, !keepsTurn { rotation.append(payer) }
        }
        if account.place == .idle {
            // Whoever owes nothing is a stranger again.
            if account.credit >= limits.quantum { return }
            idle.insert(payer)
        }
        accounts[payer] = account
    }

    private func credit(of account: Account, after cost: Int) -> Int {
        max(account.credit - max(cost, 1), -limits.longestDebt * limits.quantum)
    }

    /// Charges a payer for something that was not served, but refused.
    package mutating func fine(_ payer: Payer, _ cost: Int) {
        var account = accounts[payer] ?? Account(credit: limits.quantum)
        account.credit = credit(of: account, after: cost)
        if account.place == .idle { idle.insert(payer) }
        accounts[payer] = account
    }

    /// Has ``takeResumed()`` name a line once there is room for it; false if nothing of its payer waits, so that nothing
    /// would tell when that is.
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
