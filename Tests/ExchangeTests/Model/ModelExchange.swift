@testable import ExchangeCore
import ExchangeServer
import Foundation
import SignalWire
import Synchronization
import TestSupport
import Core

/// Virtual time, which the exchange and its database share.
final class ModelClock: Sendable {
    /// The time of day at ``Core/Instant/zero``, in milliseconds since 1970.
    static let epoch: Int64 = 1_760_000_000_000

    private let time = Mutex(Instant.zero)

    var now: Instant {
        get { time.withLock { $0 } }
        set { time.withLock { $0 = newValue } }
    }

    var wall: WallClock { WallClock(unixMilliseconds: Self.epoch + now.nanoseconds / 1_000_000) }
}

/// The exchange that is attacked: the core, its database on disk, and what the hub does between them, in virtual time.
///
/// Bytes are read as those from a socket are. What the core says to persist is written in transactions of several inputs,
/// as the journal writes them; a crash may lose what an input changed together with all that came of it, or only the
/// latter.
final class ModelExchange {
    typealias Output = ExchangeCore.Output

    private(set) var core: ExchangeCore
    let clock = ModelClock()
    let settings: ExchangeCore.Settings
    let signedTokens: SignedTokenReader
    private(set) var accounts: [Account]
    private let folder: URL
    private var store: ExchangeStore
    private var unwritten: [Change] = []
    /// How many of those an earlier step caused.
    private var settled = 0
    private var lastConnection: UInt64 = 0
    private var seeds: SeededGenerator

    init(
        settings: ExchangeCore.Settings, accounts: [Account], signedTokens: SignedTokenReader, seed: UInt64
    ) throws {
        self.settings = settings
        self.accounts = accounts
        self.signedTokens = signedTokens
        seeds = SeededGenerator(seed: seed)
        folder = FileManager.default.temporaryDirectory.appending(path: "handset-model-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        store = try Self.open(folder, clock)
        core = ExchangeCore(accounts: accounts, settings: settings, run: RunSeed(using: &seeds))
        lastConnection = try store.read().run << 32
    }

    deinit {
        store.close()
        try? FileManager.default.removeItem(at: folder)
    }

    private static func open(_ folder: URL, _ clock: ModelClock) throws -> ExchangeStore {
        try ExchangeStore.open(
            path: folder.appending(path: "exchange.db").path(), durability: .normal,
            clock: StoreClock(instant: { clock.now }, timeOfDay: { clock.wall }, boot: "model"))
    }

    var now: Instant { clock.now }

    // MARK: - Inputs

    func connect() -> ConnectionID {
        lastConnection += 1
        return ConnectionID(number: lastConnection)
    }

    func handle(_ input: ExchangeCore.Input) -> [Output] {
        var outputs: [Output] = []
        if case .accountsChanged(let accounts) = input { self.accounts = accounts }
        core.handle(input, at: now, into: &outputs)
        for case .persist(let change) in outputs { unwritten.append(change) }
        return outputs
    }

    /// Takes one text message, as the hub does.
    func receive(_ bytes: [UInt8], from connection: ConnectionID) -> [Output] {
        var outputs: [Output] = []
        let input = ExchangeCore.input(reading: bytes, from: connection) { token throws(RPCError) in
            let wall = Double(ModelClock.epoch) / 1_000 + Instant.zero.duration(to: now).seconds
            guard let shown = try core.presentation(of: token, to: signedTokens, wall: wall, at: now) else { return }
            outputs += handle(shown)
        }
        return outputs + handle(input)
    }

    /// Takes out what is due, with whose turn it takes.
    func takeDue() -> [(deadline: ExchangeCore.Deadline, payer: Payer)] {
        core.takeDue(at: now, atMost: ExchangeCore.timersAtOnce)
    }

    // MARK: - The disk

    /// What comes now is a step of its own, which a crash may undo.
    func beginStep() throws {
        settled = unwritten.count
        if unwritten.count > 200 { try write() }
    }

    private func write() throws {
        guard !unwritten.isEmpty else { return }
        try store.write(unwritten)
        unwritten = []
        settled = 0
    }

    /// The process dies, and another goes on with what is on disk.
    ///
    /// - Parameter losesStep: What the last step changed was not written yet, so that nobody has heard of it either.
    func restart(losesStep: Bool = false) throws {
        if losesStep { unwritten.removeLast(unwritten.count - settled) }
        try write()
        store.close()
        store = try Self.open(folder, clock)
        let saved = try store.read()
        core = ExchangeCore(accounts: accounts, settings: settings, run: RunSeed(using: &seeds))
        core.restore(saved, at: now)
        lastConnection = saved.run << 32
    }
}
