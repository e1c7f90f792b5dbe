import NIOCore
import SignalWire
import Timekeeping

/// What may have to wait for its turn.
enum Work {
    /// A message as it came in. It is read when it is served, so that what waits takes up no more than it did on the wire.
    case message([UInt8], ConnectionID)
    case input(ExchangeCore.Input)
    /// A request over HTTP.
    case task(() -> Void)
}

/// What clients ask for is served by turns, so that one who asks for much does not hold up the others.
///
/// A round lasts as long as the disk takes for the batch before: what is served in it makes up the next one. If nothing is
/// written, it lasts one turn of the event loop.
extension ExchangeHub {
    typealias Turns = FairQueue<Payer, WorkLine, Work>

    /// How long a round lasts in which nothing waits and nothing is written.
    private static let idleRound = Duration.milliseconds(1)

    // MARK: - Coming

    /// Takes one text message from a socket.
    func receive(_ bytes: [UInt8], from connection: ConnectionID) {
        let line = WorkLine.connection(connection)
        if let payer = turns.payer(of: line) ?? core.payer(on: connection), turns.hasBacklog(payer) {
            submit(.message(bytes, connection), bytes: bytes.count, weight: 1, on: line, of: payer)
            return
        }
        let input = read(bytes, from: connection)
        submit(
            .input(input), bytes: bytes.count, weight: core.expectedCost(of: input, bytes: bytes.count), on: line,
            of: payer(of: input, from: connection))
    }

    /// Takes a request of a connection of the exchange's own, or the news that a connection is gone.
    func submit(_ input: ExchangeCore.Input, from connection: ConnectionID, bytes: Int = 0, isOptional: Bool = true) {
        submit(
            .input(input), bytes: bytes, weight: core.expectedCost(of: input, bytes: bytes),
            on: .connection(connection), of: payer(of: input, from: connection), isOptional: isOptional)
    }

    /// Does a request over HTTP when it is its turn; false if too many wait.
    func inTurn(of payer: Payer, bytes: Int, _ task: @escaping () -> Void) -> Bool {
        lastRequest += 1
        return submit(.task(task), bytes: bytes, weight: Self.taskWeight, on: .request(lastRequest), of: payer)
    }

    /// What a request over HTTP is expected to cost: a login, or a stream's invite.
    private static let taskWeight = 8

    @discardableResult
    func submit(
        _ work: Work, bytes: Int, weight: Int, on line: WorkLine, of payer: Payer, isOptional: Bool = true
    ) -> Bool {
        beginRoundIfIdle()
        if !isBusy, turns.serveAtOnce(payer, weight: weight) {
            costBytes = bytes
            begin(work)
            self.work()
            return true
        }
        switch turns.enqueue(work, bytes: bytes, weight: weight, on: line, of: payer, isOptional: isOptional) {
        case .taken: break
        case .takenAndPaused: if case .connection(let connection) = line { sockets[connection]?.pause() }
        case .refused:
            counters.crowdedTurns += 1
            refuse(work)
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
    private func read(_ bytes: [UInt8], from connection: ConnectionID) -> ExchangeCore.Input {
        do throws(RPCMessage.Malformed) {
            let message = try RPCMessage(decoding: bytes)
            guard case .request(let id, let method) = message.kind else {
                let error = RPCError(.invalidRequest, "The exchange takes requests only, and those have an id.")
                throw RPCMessage.Malformed(id: nil, error: error)
            }
            do throws(RPCError) {
                let request = try ClientRequest(method: method, in: message)
                return refusal(of: request, id, from: connection) ?? .request(connection, id, request)
            } catch {
                throw RPCMessage.Malformed(id: id, error: error)
            }
        } catch {
            return .malformed(connection, error)
        }
    }

    private func refuse(_ work: Work) {
        let error = RPCError(
            .tooManyRequests, "Too many requests of this user wait; ask again when some are answered.")
        switch work {
        case .message(let bytes, let connection):
            guard case .request(let id, _)? = (try? RPCMessage(decoding: bytes))?.kind else { return }
            carryOut(.refuse(connection, id, error))
        case .input(.request(let connection, let id, _)): carryOut(.refuse(connection, id, error))
        case .input, .task: break
        }
    }

    // MARK: - Going

    /// Begins what has its turn. What comes of it is charged by ``chargeTurn()``.
    func begin(_ work: Work) {
        switch work {
        case .message(let bytes, let connection):
            costBytes = bytes.count
            let wasBusy = isBusy
            isBusy = true
            let input = read(bytes, from: connection)
            isBusy = wasBusy
            waiting.append(input)
        case .input(let input): waiting.append(input)
        case .task(let task):
            // What it asks of the core is done by the time that it goes on.
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
        costBytes = 0
        begin(work)
        return true
    }

    /// Charges what was served for what came of it.
    func chargeTurn() {
        guard !isInTask else { return }
        turns.charge(WorkCost.of(pieces: costPieces, bytes: costBytes))
        costPieces = 0
    }

    // MARK: - Rounds

    /// What has been handed to the disk was the round before.
    private func beginRoundIfWritten() {
        guard let journal, journal.begun != roundBatch else { return }
        roundBatch = journal.begun
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
        let hub = NIOLoopBound(self, eventLoop: loop)
        loop.execute {
            let hub = hub.value
            hub.isRoundPlanned = false
            if hub.journal?.isWriting != true {
                hub.roundBegan = hub.now
                hub.turns.beginRound()
            }
            if !hub.isBusy { hub.work() }
        }
    }
}
