import ExchangeCore
import NIOCore
import SignalWire
import Core

/// What clients ask for is served by turns, so that one who asks for much does not hold up the others.
///
/// A round lasts as long as the disk takes for the batch before: what is served in it makes up the next one. If nothing is
/// written, it lasts one turn of the event loop.
extension ExchangeHub {
    /// How long a round lasts in which nothing waits and nothing is written.
    private static let idleRound = Duration.milliseconds(1)

    /// The event loop's time for sockets between two rounds in which nothing is written. Without it the loop would run
    /// its next task before it polls the sockets.
    private static let breath = TimeAmount.microseconds(50)

    // MARK: - Coming

    /// Takes one text message from a socket. It is read at once, so that what it asks for can be judged, unless its user
    /// must wait, or reading alone may cost more than is served at once. Without a session it is not known whose it is until
    /// it is read: that is done for everybody, if it costs little.
    func receive(_ bytes: [UInt8], from connection: ConnectionID) {
        let line = WorkLine.connection(connection)
        let reading = WorkCost.reading(bytes)
        let known = turns.payer(of: line) ?? core.payer(on: connection)
        let payer = known ?? (isBusy || reading > WorkCost.littleReading ? .strangers : nil)
        if let payer, isBusy || reading > turns.limits.quantum || turns.mustWait(payer) {
            submit(.message(bytes, connection), weight: reading, on: line, of: payer)
            return
        }
        let (input, cost) = readAtOnce(bytes, from: connection)
        let weight = max(core.expectedCost(of: input, bytes: bytes.count), cost.units())
        submit(.input(input, cost), weight: weight, on: line, of: self.payer(of: input, from: connection))
    }

    /// Reads a message at once, although its input may then have to wait, and returns the cost. No other work runs
    /// meanwhile.
    private func readAtOnce(_ bytes: [UInt8], from connection: ConnectionID) -> (ExchangeCore.Input, WorkCost) {
        let (outer, began) = (cost, now)
        cost = WorkCost(messageBytes: bytes.count)
        isBusy = true
        let input = reader(self, bytes, connection)
        // Who pays is known once the core knows of a token in it.
        handleWaiting()
        isBusy = false
        defer { cost = outer }
        cost.time = began.duration(to: now)
        roundBegan = roundBegan.advanced(by: cost.time)
        return (input, cost)
    }

    /// Submits a request of one of the exchange's own connections, or the end of a connection.
    func submit(_ input: ExchangeCore.Input, from connection: ConnectionID, bytes: Int = 0, isOptional: Bool = true) {
        submit(
            .input(input, WorkCost(messageBytes: bytes)), weight: core.expectedCost(of: input, bytes: bytes),
            on: .connection(connection), of: payer(of: input, from: connection), isOptional: isOptional)
    }

    /// Does a request over HTTP when it is its turn; false if too many wait.
    ///
    /// - Parameter began: Since when it has been looked at.
    func inTurn(of payer: Payer, bytes: Int, since began: Instant, _ task: @escaping () -> Void) -> Bool {
        lastRequest += 1
        var cost = WorkCost(messageBytes: bytes)
        cost.time = began.duration(to: now)
        roundBegan = roundBegan.advanced(by: cost.time)
        let weight = max(Self.taskWeight, cost.units())
        return submit(.task(cost, task), weight: weight, on: .request(lastRequest), of: payer)
    }

    /// What a request over HTTP is expected to cost: a login, or a stream's invite.
    private static let taskWeight = 8

    /// Does something when it is its turn; false if too much waits.
    ///
    /// - Parameter weight: What it is expected to cost.
    @discardableResult
    func submit(_ work: Work, weight: Int, on line: WorkLine, of payer: Payer, isOptional: Bool = true) -> Bool {
        beginRoundIfIdle()
        if !isBusy, turns.serveAtOnce(payer, weight: weight) {
            begin(work)
            self.work()
            return true
        }
        let bytes = work.cost.messageBytes
        switch turns.enqueue(work, bytes: bytes, weight: weight, on: line, of: payer, isOptional: isOptional) {
        case .taken: break
        case .takenAndPaused: if case .connection(let connection) = line { sockets[connection]?.pause() }
        case .refused:
            counters.crowdedTurns += 1
            refuse(work, on: line, of: turns.payer(of: line) ?? payer)
            return false
        }
        if !isBusy { self.work() }
        return true
    }

    private func payer(of input: ExchangeCore.Input, from connection: ConnectionID) -> Payer {
        if let payer = attached[connection] ?? core.payer(on: connection) { return payer }
        guard case .request(_, _, let request) = input, let token = request.token else { return .strangers }
        return core.payer(with: token, at: now) ?? .strangers
    }

    /// Reads a message. A signed token in it becomes known to the core.
    static func read(_ hub: ExchangeHub, _ bytes: [UInt8], from connection: ConnectionID) -> ExchangeCore.Input {
        ExchangeCore.input(reading: bytes, from: connection) { token throws(RPCError) in try hub.admit(token) }
    }

    /// Refuses work that exceeds the limits. A refusal takes time as well, so the client's connection is paused.
    private func refuse(_ work: Work, on line: WorkLine, of payer: Payer) {
        if case .connection(let connection) = line, turns.pause(line, of: payer) { sockets[connection]?.pause() }
        let began = now
        let error = RPCError(
            .tooManyRequests, "Too many requests of this user are waiting; try again when some are answered.")
        switch work {
        case .message(let bytes, let connection):
            if case .request(let id, _)? = (try? RPCMessage(decoding: bytes))?.kind {
                carryOut(.refuse(connection, id, error))
            }
        case .input(.request(let connection, let id, _), _): carryOut(.refuse(connection, id, error))
        case .input, .task: break
        }
        let time = began.duration(to: now)
        turns.fine(payer, work.cost.units(after: time))
        roundBegan = roundBegan.advanced(by: time)
    }

    // MARK: - Going

    /// Begins what has its turn. What comes of it is charged by ``chargeTurn()``.
    func begin(_ work: Work) {
        (cost, turnBegan) = (work.cost, now)
        switch work {
        case .message(let bytes, let connection):
            let wasBusy = isBusy
            isBusy = true
            let input = reader(self, bytes, connection)
            isBusy = wasBusy
            waiting.append(input)
        case .input(let input, _): waiting.append(input)
        case .task(_, let task):
            // The core has handled the task's inputs by the time that the task continues.
            let wasBusy = isBusy
            (isBusy, isInTask) = (false, true)
            task()
            (isBusy, isInTask) = (wasBusy, false)
        }
    }

    /// Takes out what has its turn next and begins it; false if nothing has.
    func beginNext() -> Bool {
        beginRoundIfWritten()
        guard !isInTask, let work = turns.next() else { return false }
        begin(work)
        return true
    }

    /// Charges what was served for what came of it.
    func chargeTurn() {
        guard !isInTask else { return }
        defer { cost = WorkCost() }
        guard turns.isServing else { return }
        let time = turnBegan.duration(to: now)
        turns.charge(cost.units(after: time))
        // Time spent here does not advance the round, so that slow work earns its payer no credit.
        roundBegan = roundBegan.advanced(by: time)
    }

    // MARK: - Rounds

    /// What has been handed to the disk was the round before.
    private func beginRoundIfWritten() {
        guard let journal, journal.begun != roundBatch else { return }
        roundBatch = journal.begun
        // What is paid back by this round is not paid back once more by the time that it takes.
        roundBegan = now
        turns.beginRound()
    }

    private func beginRoundIfIdle() {
        guard turns.isEmpty, journal?.isWriting != true else { return }
        let now = now
        let rounds = roundBegan.duration(to: now).nanoseconds / Self.idleRound.nanoseconds
        guard rounds > 0 else { return }
        roundBegan = now
        turns.beginRound(after: Int(clamping: min(rounds, 1_000_000)))
    }

    /// Sees to it that what waits has another round: when the disk is done, or in the next turn of the event loop.
    func planRound() {
        for case .connection(let connection) in turns.takeResumed() { sockets[connection]?.resume() }
        guard !turns.isEmpty, !isRoundPlanned, journal?.isWriting != true else { return }
        isRoundPlanned = true
        loop.assumeIsolated().scheduleTask(in: Self.breath) { [weak self] in
            guard let self else { return }
            isRoundPlanned = false
            if journal?.isWriting != true {
                roundBegan = now
                turns.beginRound()
            }
            if !isBusy { work() }
        }
    }
}
