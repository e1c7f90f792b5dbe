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
    private typealias Found = Result<FlowSoundFile, FlowUnusable>

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
    /// Sounds that are got at a time: each may be in memory as a whole.
    static let mostRunning = 4
    /// Sounds that calls wait for.
    static let mostWaiting = 64

    private var kept: [WebAddress: Kept] = [:]
    private var bytes = 0
    private var uses = 0
    private var fetches: [WebAddress: Task<Found, Never>] = [:]
    private var running = 0
    private var queue: [CheckedContinuation<Void, Never>] = []

    /// A sound's file.
    ///
    /// - Parameter get: Gets the sound's bytes.
    func file(
        at address: WebAddress, get: @escaping @Sendable () async -> Result<[UInt8], FlowUnusable>
    ) async -> Result<FlowSoundFile, FlowUnusable> {
        uses += 1
        if let known = kept[address], MonotonicClock.now < known.until {
            kept[address]?.usedAt = uses
            return .success(known.file)
        }
        if let fetch = fetches[address] { return await fetch.value }
        guard fetches.count < Self.mostWaiting else {
            return .failure(
                FlowUnusable("\(address.shown) is not got: \(Self.mostWaiting) others are waited for, the limit"))
        }
        let fetch = Task { await self.fetch(address, get) }
        fetches[address] = fetch
        return await fetch.value
    }

    private func fetch(
        _ address: WebAddress, _ get: @Sendable () async -> Result<[UInt8], FlowUnusable>
    ) async -> Found {
        if running < Self.mostRunning {
            running += 1
        } else {
            // The fetch that resumes it has left its own place to it.
            await withCheckedContinuation { queue.append($0) }
        }
        let found = await Self.written(await get(), address)
        if queue.isEmpty { running -= 1 } else { queue.removeFirst().resume() }
        fetches[address] = nil
        return found.map { sound in
            keep(sound.file, sound.bytes, address)
            return sound.file
        }
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
