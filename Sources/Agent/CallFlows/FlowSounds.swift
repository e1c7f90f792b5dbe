internal import BlockingWork
internal import BotWire
internal import CallFlow
internal import Core
internal import Files
internal import Realtime

/// A sound of a server, in a file that is removed with this.
public final class FlowSoundFile: Sendable {
    private let file: TemporaryFile

    /// The path of the file.
    public var path: String { file.path }

    init(_ bytes: [UInt8]) throws(SystemError) {
        let file = try TemporaryFile("handset-sound")
        try file.write(bytes)
        self.file = file
    }
}

/// The sounds of a flow's server: each is got once for all calls that play it at the same time, and then kept for a while.
actor FlowSounds {
    typealias Found = Result<FlowSoundFile, FlowUnusable>
    typealias Get = @Sendable () async -> Result<[UInt8], FlowUnusable>

    private struct Kept {
        let file: FlowSoundFile
        let bytes: Int
        let until: Instant
        var usedAt: Int
    }

    /// A kept sound is got again after this time.
    static let keptTime = Duration.seconds(300)
    /// Bytes of kept sounds, on disk. Beyond that the one that was used longest ago is dropped.
    static let mostBytes = 64 << 20
    /// Kept sounds, each of which has a descriptor.
    static let mostKept = 128
    private var kept: [WebAddress: Kept] = [:]
    private var bytes = 0
    private var uses = 0
    private var turns = SoundTurns()
    /// How sounds are got that wait for their turn.
    private var gets: [WebAddress: Get] = [:]
    /// Those who wait for a sound that is not there yet.
    private var waiters: [WebAddress: [CheckedContinuation<Found, Never>]] = [:]

    /// A sound's file.
    ///
    /// - Parameters:
    ///   - owner: Names the call that plays it.
    ///   - get: Gets the sound's bytes.
    func file(at address: WebAddress, for owner: String, get: @escaping Get) async -> Found {
        uses += 1
        if let known = kept[address], MonotonicClock.now < known.until {
            kept[address]?.usedAt = uses
            return .success(known.file)
        }
        if turns.contains(address) {
            drop(waiting: turns.share(address, with: owner))
        } else {
            do throws(SoundTurns.Full) {
                drop(waiting: try turns.add(address, for: owner))
            } catch {
                return .failure(
                    FlowUnusable(
                        "\(address.shown) is not got: \(SoundTurns.mostWaiting) others are waited for, the limit"))
            }
            gets[address] = get
        }
        return await withCheckedContinuation { waiter in
            waiters[address, default: []].append(waiter)
            advance()
        }
    }

    /// Begins what can be got now.
    private func advance() {
        while let address = turns.next() {
            guard let get = gets.removeValue(forKey: address) else { return }
            Task { await self.fetch(address, get) }
        }
    }

    private func fetch(_ address: WebAddress, _ get: Get) async {
        let found = await Self.written(await get(), address)
        turns.end(address)
        if case .success(let sound) = found { keep(sound.file, sound.bytes, address) }
        finish(address, found.map(\.file))
        advance()
    }

    private func drop(waiting address: WebAddress?) {
        guard let address else { return }
        gets[address] = nil
        finish(address, .failure(FlowUnusable("\(address.shown) is not waited for any more")))
    }

    private func finish(_ address: WebAddress, _ found: Found) {
        for waiter in waiters.removeValue(forKey: address) ?? [] { waiter.resume(returning: found) }
    }

    /// Writes a sound into a file, on a thread that a slow disk may hold up.
    private static func written(
        _ found: Result<[UInt8], FlowUnusable>, _ address: WebAddress
    ) async -> Result<(file: FlowSoundFile, bytes: Int), FlowUnusable> {
        switch found {
        case .failure(let fault): return .failure(fault)
        case .success(let sound):
            do throws(SystemError) {
                let file = try await BlockingThreads.files.run { () throws(SystemError) in try FlowSoundFile(sound) }
                return .success((file, sound.count))
            } catch {
                return .failure(
                    FlowUnusable("the sound \(address.shown) needs a file in the folder TMPDIR, or /tmp: \(error)"))
            }
        }
    }

    private func keep(_ file: FlowSoundFile, _ count: Int, _ address: WebAddress) {
        let now = MonotonicClock.now
        for (old, sound) in kept where sound.until <= now { drop(old) }
        drop(address)
        bytes += count
        kept[address] = Kept(file: file, bytes: count, until: now.advanced(by: Self.keptTime), usedAt: uses)
        while bytes > Self.mostBytes || kept.count > Self.mostKept,
            let oldest = kept.min(by: { $0.value.usedAt < $1.value.usedAt })
        {
            drop(oldest.key)
        }
    }

    private func drop(_ address: WebAddress) { bytes -= kept.removeValue(forKey: address)?.bytes ?? 0 }

    /// Sounds that are kept.
    var count: Int { kept.count }
}
