public import AudioKit
internal import CallMedia
internal import Realtime
internal import Files
internal import Synchronization

/// A file that is being played or recorded. Its file thread alone opens and uses it.
protocol AudioFileStream: AnyObject, Sendable {
    var news: AudioFileNews { get }
    /// The file that is played, if one is, once it is open.
    var played: FileIdentity? { get }
    /// Opens the file.
    func open()
    /// Moves as many samples as there are, or as fit.
    func move()
    /// Moves what is left and closes the file.
    func finish()
    /// Closes a file that is not wanted, and leaves nothing behind that was not there.
    func discard()
    /// Reports the end of a file whose thread hangs, when the process ends. May be called on any thread.
    func abandon()
}

/// Fills a ring from a file.
final class PlayerStream: AudioFileStream {
    private struct State: ~Copyable {
        var reader: AudioFileReader?
        var ring: AudioRing.Producer
        var block = SampleBuffer(capacity: 4_096)
        var isOver = false

        /// Moves one block if there is room for it.
        ///
        /// - Returns: Whether there may be another.
        mutating func moveBlock() throws(AudioFileError) -> Bool {
            guard !isOver, ring.space >= block.capacity else { return false }
            let count = try Self.read(&reader, into: &block)
            Self.write(block, count, to: &ring)
            if count < block.capacity { end() }
            return true
        }

        mutating func end() {
            isOver = true
            ring.close()
        }

        private static func write(_ block: borrowing SampleBuffer, _ count: Int, to ring: inout AudioRing.Producer) {
            _ = ring.write(block.samples(count))
        }

        private static func read(
            _ reader: inout AudioFileReader?, into block: inout SampleBuffer
        ) throws(AudioFileError) -> Int {
            var room = block.mutableSamples(block.capacity)
            return try reader?.read(into: &room) ?? 0
        }
    }

    let news: AudioFileNews
    var played: FileIdentity? { identity.withLock { $0 } }
    private let loops: Bool
    // Beside the state, which is locked while the disk is waited for.
    private let identity = Mutex<FileIdentity?>(nil)
    private let state: Mutex<State>

    init(_ path: String, loops: Bool, into ring: consuming AudioRing.Producer, _ reports: FileReports) {
        news = AudioFileNews(path, .play, reports)
        self.loops = loops
        state = Mutex(State(reader: nil, ring: ring))
    }

    func open() {
        let (outcome, found): (AudioFileNews.Outcome, FileIdentity?) = state.withLock { state in
            do throws(AudioFileError) {
                let reader = try AudioFileReader(path: news.path, loops: loops)
                let found = reader.identity
                state.reader = .some(reader)
                return (.success(news.path), found)
            } catch {
                // Who reads the ring knows of the failure.
                return (.failure(error), nil)
            }
        }
        identity.withLock { $0 = found }
        // The first block is there before the call begins.
        if case .success = outcome { move() }
        news.settle(outcome)
        if case .failure = outcome { state.withLock { $0.end() } }
    }

    func move() {
        let failure: AudioFileError? = state.withLock { state in
            do throws(AudioFileError) {
                while try state.moveBlock() {}
                return nil
            } catch {
                return error
            }
        }
        guard let failure else { return }
        // The reader of the sound's end knows of the failure.
        news.fail(failure)
        state.withLock { $0.end() }
    }

    func finish() { discard() }

    func discard() {
        news.finish()
        state.withLock { state in
            state.isOver = true
            state.reader = nil
        }
    }

    func abandon() { news.finish() }
}

/// A recording that is to be made.
public struct RecordingOrder: Sendable {
    /// The file, unless `choose` names another one in that folder.
    public let path: String
    /// What is recorded, and how.
    public let format: RecordingFormat
    /// A finished file of that name stays, and the recording gets a number behind its name.
    let keepsEarlier: Bool
    /// Makes what the file needs, and returns its name. Runs on the file thread.
    let choose: @Sendable () throws(AudioFileError) -> String

    /// Makes an order for a recording in mid-call.
    ///
    /// - Parameters:
    ///   - path: The file, or another one of its folder.
    ///   - choose: Makes what the file needs, and returns its name. Runs on a file thread, so that it may block on the disk.
    public init(
        near path: String, _ format: RecordingFormat, choose: @escaping @Sendable () throws(AudioFileError) -> String
    ) {
        self.init(path: path, format, keepsEarlier: true, choose: choose)
    }

    init(path: String, _ format: RecordingFormat, keepsEarlier: Bool = true) {
        self.init(path: path, format, keepsEarlier: keepsEarlier) { () throws(AudioFileError) in path }
    }

    private init(
        path: String, _ format: RecordingFormat, keepsEarlier: Bool,
        choose: @escaping @Sendable () throws(AudioFileError) -> String
    ) {
        self.path = path
        self.format = format
        self.keepsEarlier = keepsEarlier
        self.choose = choose
    }

    /// The one that a call begins with; nil if it is not recorded.
    init?(_ audio: AudioBehaviour) {
        guard let path = audio.recording else { return nil }
        self.init(path: path, audio.recordingFormat, keepsEarlier: audio.keepsEarlierRecording) {
            () throws(AudioFileError) in
            // What is wrong with the folder is wrong with the file, too.
            if let folder = audio.recordingFolder { try? WritableFolder.make(folder) }
            return path
        }
    }
}

/// Empties the ring of what the peer says into a recording, and that of what this side says, if there is one.
final class RecorderStream: AudioFileStream {
    private struct State: ~Copyable {
        var writer: RecordingWriter?
        var path: String
        /// The file's name, once it is whole.
        var name: String?
        var ring: AudioRing.Consumer
        var sent: AudioRing.Consumer?
        var block = SampleBuffer(capacity: 4_096)
        var sentBlock = SampleBuffer(capacity: 4_096)
        var failure: AudioFileError?
        /// The file has failed or is finished: the rest is read and dropped.
        var isClosed = false
        /// Samples of each channel that the file got.
        var written = 0
        /// Samples that were dropped here.
        var dropped = 0

        /// Samples that the recording lacks.
        var missed: Int { mutating get { dropped + max(ring.refused(), sent?.refused() ?? 0) } }

        /// Sides of calls on a card come at different times; if one stalls for longer than this, its gap is silence.
        private static let largestGap = 9_600

        /// Moves all that waits on both sides, or at the end all that there is.
        mutating func drain(isLast: Bool = false) throws(AudioFileError) {
            while true {
                let (heard, said) = (ring.count, sent?.available())
                let common = min(heard, said ?? heard)
                var counts = (heard: common, said: said == nil ? 0 : common)
                if common == 0 {
                    guard isLast || max(heard, said ?? 0) > Self.largestGap else { return }
                    counts = (heard, said ?? 0)
                }
                counts = (min(counts.heard, block.capacity), min(counts.said, block.capacity))
                guard max(counts.heard, counts.said) > 0 else { return }
                try move(counts.heard, counts.said)
            }
        }

        private mutating func move(_ heard: Int, _ said: Int) throws(AudioFileError) {
            Self.read(&ring, heard, into: &block)
            if said > 0 { Self.read(&sent, said, into: &sentBlock) }
            if isClosed {
                dropped += max(heard, said)
            } else {
                try Self.append(block, heard, sentBlock, said, to: &writer)
                written += max(heard, said)
            }
        }

        private static func append(
            _ heard: borrowing SampleBuffer, _ heardCount: Int, _ said: borrowing SampleBuffer, _ saidCount: Int,
            to writer: inout RecordingWriter?
        ) throws(AudioFileError) {
            try writer?.append(heard: heard.samples(heardCount), said: said.samples(saidCount))
        }

        private static func read(_ ring: inout AudioRing.Consumer, _ count: Int, into block: inout SampleBuffer) {
            var room = block.mutableSamples(count)
            _ = ring.read(into: &room)
        }

        private static func read(_ ring: inout AudioRing.Consumer?, _ count: Int, into block: inout SampleBuffer) {
            var room = block.mutableSamples(count)
            _ = ring?.read(into: &room)
        }
    }

    let news: AudioFileNews
    var played: FileIdentity? { nil }
    private let order: RecordingOrder
    /// Files that must not be overwritten.
    private let spared: @Sendable () -> [FileIdentity]
    /// ``State/written``, beside the state, which is locked while the disk is waited for.
    private let written = Atomic(0)
    private let state: Mutex<State>

    init(
        _ order: RecordingOrder, from ring: consuming AudioRing.Consumer,
        and sent: consuming AudioRing.Consumer? = nil, sparing played: @escaping @Sendable () -> [FileIdentity],
        _ reports: FileReports
    ) {
        news = AudioFileNews(order.path, .record, reports)
        self.order = order
        spared = played
        state = Mutex(State(writer: nil, path: order.path, ring: ring, sent: sent))
    }

    func open() {
        let outcome: AudioFileNews.Outcome = state.withLock { state in
            do throws(AudioFileError) {
                let path = try order.choose()
                state.path = path
                state.writer = .some(
                    try RecordingWriter(
                        path: path, order.format, keepsEarlier: order.keepsEarlier, sparing: spared()))
                return .success(path)
            } catch {
                state.failure = error
                state.isClosed = true
                return .failure(error)
            }
        }
        news.settle(outcome)
    }

    func move() { report { state throws(AudioFileError) in try state.drain() } }

    func finish() {
        report { state throws(AudioFileError) in
            try state.drain(isLast: true)
            guard !state.isClosed else { return }
            state.name = try state.writer?.finish()
            state.isClosed = true
        }
        let end = state.withLock { state in
            let missed = state.missed
            if state.failure == nil, missed > 0 {
                state.failure = AudioFileError(
                    stalled: state.path, .record, reason: "its disk did not take \(missed / 48) ms of sound in time")
            }
            // The file is closed with its writer.
            state.writer = nil
            return RecordingEnd(
                path: state.name ?? PartFile.path(of: state.path), requestedPath: state.path,
                duration: .samples(state.written), missed: .samples(missed), failure: state.failure)
        }
        news.end(end)
    }

    func discard() {
        news.finish()
        state.withLock { state in
            guard state.writer != nil else { return }
            state.writer = nil
            state.isClosed = true
            PartFile.discard(state.path)
        }
    }

    func abandon() {
        news.noteStall("its disk has not answered until the end of the device")
        news.end(
            RecordingEnd(
                path: PartFile.path(of: order.path), requestedPath: order.path,
                duration: .samples(written.load(ordering: .relaxed)), missed: .zero, failure: news.stall))
    }

    /// Runs `body` on the file, and reports the first failure.
    private func report(_ action: (inout State) throws(AudioFileError) -> Void) {
        let failure: AudioFileError? = state.withLock { state in
            defer { written.store(state.written, ordering: .relaxed) }
            do throws(AudioFileError) {
                try action(&state)
                return nil
            } catch {
                guard !state.isClosed else { return nil }
                state.isClosed = true
                state.failure = error
                return error
            }
        }
        if let failure { news.fail(failure) }
    }
}
