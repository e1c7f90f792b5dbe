@testable import ExchangeCore
import Foundation
import JSON
import SignalWire
import TestSupport
import Core

/// Attackers, two correct clients and the exchange between them, step by step at random, judged by the oracle.
final class AttackersModel {
    /// The correct clients: nobody takes their accounts from them, and they follow docs/protocol.md.
    static let honest = ["grace", "henry"]
    /// Accounts of attackers; the last may lose its account and get it again.
    static let attackers = ["mallory", "eve", "oscar", "trudy"]
    static let guests = ["guest-1", "trudy", "vera"]
    private static let sockets = 18
    /// After how many steps a long run tells how far it is.
    private static let stage = 50_000

    let exchange: ModelExchange
    let oracle: Oracle
    var wire: WireGenerator
    private var honest: [HonestClient]
    private var enrollments = EnrollmentModel()
    private var sockets: [ConnectionID] = []
    /// Closed by the exchange, and not gone yet.
    private var pushes: [StoredPushRef] = []
    private(set) var steps = 0
    private var isLate = false
    private var trace: [String] = []
    private let traced: Int

    struct StoredPushRef {
        var id: PushID
        var attempt: Int
    }

    /// - Parameter traced: How many of the last messages are told with what the exchange did wrong.
    init(seed: UInt64, signed: SignedPool, traced: Int = 60) throws {
        self.traced = traced
        var settings = ExchangeCore.Settings(push: PushConfiguration(kinds: ["apns", "push"]))
        settings.tokenLifetime = .seconds(900)
        settings.refreshLifetime = .seconds(3_000)
        settings.push.chosen.life = .seconds(300)
        // Attackers come to the edges of small budgets, large ones, and their own.
        settings.kept.total = [256, 24, 4][Int(seed % 3)] << 20
        // And of the share that strangers have of a user's invites.
        settings.invites.ofStrangers = [64, 10, 5][Int(seed % 3)]
        exchange = try ModelExchange(
            settings: settings, accounts: Self.accounts(with: true), signedTokens: signed.reader, seed: seed)
        oracle = Oracle(window: settings.resumeWindow, strangersShare: settings.invites.ofStrangers)
        wire = WireGenerator(seed: seed, oracle: oracle, users: Self.attackers + Self.guests)
        honest = Self.honest.map { HonestClient(user: $0) }
        renameUsers()
        for credential in signed.credentials {
            oracle.logins.append(credential.login)
            oracle.credentials[credential.token.text] = credential.token.of(oracle.logins.count - 1)
            wire.tokens[credential.login.user, default: []].append(credential.token.text)
        }
        for user in Self.attackers { try logIn(user) }
        for user in Self.guests where user != "trudy" { try logIn(user, isGuest: true) }
    }

    private static func accounts(with trudy: Bool) -> [Account] {
        (honest + attackers).filter { trudy || $0 != "trudy" }.map { user in
            var account = Account(id: UserID(ours: user), publicIDs: [UserID(ours: "\(user)@localhost")])
            if let code = EnrollmentModel.codes[user] { account.enrollments = [EnrollmentRecord(code, at: 0)] }
            return account
        }
    }

    private func renameUsers() {
        for account in exchange.accounts {
            oracle.accounts.insert(account.id.text)
            for name in [account.id] + account.publicIDs { oracle.names[name.text] = account.id.text }
        }
    }

    // MARK: - Running

    /// Goes so many steps on.
    ///
    /// - Throws: What the exchange did wrong, with the last messages before it.
    func run(_ count: Int) throws {
        do {
            for index in honest.indices { try honest[index].begin(self) }
            let clock = ContinuousClock()
            for stage in stride(from: 0, to: count, by: Self.stage) {
                let isWhole = stage + Self.stage <= count
                let time = try clock.measure { for _ in stage..<min(count, stage + Self.stage) { try step() } }
                if isWhole { tellProgress(time) }
            }
            try leaveNothing()
        } catch {
            let last = trace.joined(separator: "\n")
            throw Oracle.Violation(description: "step \(steps) at \(exchange.now): \(error)\nbefore that:\n\(last)")
        }
    }

    /// Says of a long run how fast it is, and how much is kept: neither may get worse with the steps.
    private func tellProgress(_ time: Duration) {
        let core = exchange.core
        let virtual = Instant.zero.duration(to: exchange.now).seconds
        print(
            "\(steps) steps: the last \(Self.stage) took \(time.seconds) s; \(virtual) s of virtual time; the exchange keeps",
            "\(core.quota.total) bytes, \(core.invites.count) invites, \(core.sessions.resumable.count) sessions,",
            "\(core.accounts.tokenCount) tokens, \(core.deadlineCount) deadlines, \(core.streams.count) logs; the oracle knows",
            "\(oracle.invites.count) invites, \(oracle.seats.count) sessions, \(oracle.groups.count) groups,",
            "\(oracle.calls.count) calls, \(oracle.allowed.count) secrets, \(oracle.credentials.count) tokens")
    }

    func note(_ text: @autoclosure () -> String) {
        trace.append("\(steps) \(Instant.zero.duration(to: exchange.now).seconds): \(text())")
        if trace.count > traced + 20 { trace.removeFirst(20) }
    }

    private func step() throws {
        steps += 1
        oracle.now = exchange.now
        switch wire.number(0...999) {
        case 0..<692: try attack()
        case 692..<700: try giveOrder()
        case 700..<800: try honestStep()
        case 800..<830: try connect()
        case 830..<850: try drop()
        case 850..<900: try answerPush()
        case 900..<925: try refresh()
        case 925..<940: try logIn()
        case 940..<945: try logOut()
        case 945..<948: try administer()
        case 948..<955: try enrollments.step(exchange.core.accounts.directory, &wire, oracle)
        case 955..<990: try pass(.milliseconds(wire.number(1...900)))
        case 990..<996: try pass(.seconds(wire.number(1...12)))
        case 996...998: try pass(wire.chance(70) ? .seconds(wire.number(55...65)) : .seconds(wire.number(300...1_000)))
        default: if wire.chance(50) { try restart() }
        }
        // The hub serves the timer by turns: what is due may come after what others ask for.
        if !isLate || wire.chance(30) { try fire() }
        try closeSockets()
        oracle.noteUnkept(exchange.core.counters.unkeptEvents)
        if steps.isMultiple(of: 40) { try audit() }
    }

    /// Hands the exchange a message, and what comes of it to the oracle.
    func send(_ frame: Frame) throws {
        note(frame.summary)
        try exchange.beginStep()
        let outputs = exchange.receive(frame.bytes, from: frame.connection)
        switch wire.number(0...2_999) {
        case 0:
            note("the exchange dies, and nothing of that was written")
            try restart(losesStep: true)
        case 1:
            note("the exchange dies, and all of that was written")
            try oracle.judge(outputs, of: frame, isDelivered: false)
            try restart()
        default: try take(outputs, of: frame)
        }
    }

    @discardableResult
    func feed(_ input: ExchangeCore.Input) throws -> [ExchangeCore.Output] {
        let outputs = exchange.handle(input)
        try take(outputs)
        return outputs
    }

    private func take(_ outputs: [ExchangeCore.Output], of frame: Frame? = nil) throws {
        oracle.now = exchange.now
        oracle.noteUnkept(exchange.core.counters.unkeptEvents)
        for case .push(let push) in outputs { pushes.append(StoredPushRef(id: push.id, attempt: push.attempts)) }
        try oracle.judge(outputs, of: frame)
    }

    // MARK: - What can happen

    private func attack() throws {
        guard let connection = wire.pick(sockets) else { return try connect() }
        // Some send as fast as they can.
        for _ in 0..<(wire.number(0...400) == 0 ? 700 : 1) where oracle.open.contains(connection) {
            guard oracle.closed[connection] == nil else { return }
            try send(wire.frame(on: connection))
        }
    }

    private func honestStep() throws {
        let index = wire.number(0...honest.count - 1)
        try honest[index].step(self)
    }

    /// Opens a socket.
    func open() throws -> ConnectionID {
        let connection = exchange.connect()
        oracle.open.insert(connection)
        try feed(.connected(connection))
        return connection
    }

    private func connect() throws {
        guard sockets.count < Self.sockets else { return }
        sockets.append(try open())
    }

    private func drop() throws {
        guard let connection = wire.pick(sockets) else { return }
        try lose(connection)
    }

    /// A socket is gone.
    func lose(_ connection: ConnectionID) throws {
        sockets.removeAll { $0 == connection }
        note("\(connection.name) is gone")
        let outputs = exchange.handle(.disconnected(connection))
        oracle.disconnect(connection)
        try take(outputs)
    }

    /// Sockets that were said goodbye to go, sooner or later.
    private func closeSockets() throws {
        for connection in oracle.closed.keys.sorted(by: { $0.number < $1.number }) where wire.chance(50) {
            for index in honest.indices { try honest[index].hearsGoodbye(on: connection, oracle) }
            try lose(connection)
        }
    }

    private func answerPush() throws {
        guard !pushes.isEmpty else { return }
        let push = pushes.remove(at: wire.number(0...pushes.count - 1))
        let answer: PushAnswer =
            switch wire.number(0...5) {
            case 0: .gone("410")
            case 1: .refused("400")
            case 2: .failed("503", wait: .seconds(3), isAboutAll: true)
            default: .taken
            }
        try feed(.pushAnswered(push.id, attempt: push.attempt, answer))
    }

    // MARK: - Time

    private func pass(_ time: Duration) throws {
        let end = exchange.now.advanced(by: time)
        isLate = wire.chance(time > .seconds(50) && time < .seconds(70) ? 50 : 12)
        if !isLate {
            while let due = exchange.core.nextDeadline, due <= end {
                exchange.clock.now = max(exchange.now, due)
                try meetDeadlines()
            }
        }
        exchange.clock.now = end
        oracle.now = end
    }

    private func fire() throws {
        isLate = false
        while let due = exchange.core.nextDeadline, due <= exchange.now { try meetDeadlines() }
        try oracle.checkTokens()
    }

    /// As the hub does: what is due has turns by whose it is, in whatever order those come.
    private func meetDeadlines() throws {
        var left = exchange.takeDue()
        while let next = wire.pick(left) {
            guard let index = left.firstIndex(where: { $0.payer == next.payer }) else { break }
            try feed(.due(left.remove(at: index).deadline))
        }
        try feed(.pushesAreDue)
    }

    private func restart(losesStep: Bool = false) throws {
        note("the exchange starts anew")
        try exchange.restart(losesStep: losesStep)
        oracle.restart()
        sockets = []
        pushes = []
        // The hub begins so.
        try feed(.timer)
    }

    // MARK: - Administration

    private func administer() throws {
        switch wire.number(0...7) {
        case 0...2:
            let hasTrudy = oracle.accounts.contains("trudy")
            note(hasTrudy ? "trudy is removed" : "somebody else is called trudy")
            if hasTrudy { oracle.removeAccount("trudy") } else { oracle.endLogins(of: "trudy") }
            try feed(.accountsChanged(Self.accounts(with: !hasTrudy)))
            renameUsers()
            if !hasTrudy { try logIn("trudy") }
        case 3:
            let user = wire.pick(Self.attackers) ?? ""
            note("\(user)'s logins are ended")
            oracle.endLogins(of: user)
            try feed(.userRevoked(UserID(ours: user)))
        case 4...5:
            let user = wire.pick(Self.attackers + Self.honest) ?? ""
            let marker = oracle.marker(by: oracle.account(user))
            for seat in oracle.seats.values where seat.place.bearer == oracle.account(user) && seat.connection != nil {
                oracle.expect("notification", of: seat)
            }
            try feed(.notify(UserID(ours: user), .string(marker)))
        default:
            for seat in oracle.seats.values where seat.connection.map({ oracle.closed[$0] == nil }) ?? false {
                oracle.expect("moveRequested", of: seat)
            }
            try feed(.move(within: .seconds(30), to: nil))
        }
    }

    // MARK: - The end

    /// Once everybody has gone, nothing is left but what is meant to stay.
    private func leaveNothing() throws {
        try audit()
        for connection in oracle.open.sorted(by: { $0.number < $1.number }) { try lose(connection) }
        for _ in 0..<100 { try pass(.seconds(50)) }
        try fire()
        try oracle.require(exchange.core.sessions.resumable.isEmpty, "sessions are left")
        try oracle.require(exchange.core.invites.calls.count == 0, "calls are left")
        try oracle.require(exchange.core.quota.bodies.isEmpty, "events are left")
        try oracle.require(exchange.core.sessions.connections.isEmpty, "connections are left")
    }
}
