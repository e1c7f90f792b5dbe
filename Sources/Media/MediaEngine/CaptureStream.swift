internal import AudioKit
internal import CallMedia
internal import Playout
internal import RTP
internal import Realtime
internal import Files
internal import Synchronization
internal import Core

/// What is to be captured of a call, and where.
struct CaptureOrder {
    var path: String
    /// What the call begins with.
    var codec: SoundCodec
    var playout: PlayoutConfiguration
    /// When the call begins.
    var at: Instant
    /// Capacity of the ring; more for a call that runs faster than real time.
    var records = CaptureWriter.capacity
}

/// Empties a capture's ring into its file.
final class CaptureStream: AudioFileStream {
    /// Some five hours of a call.
    static let maximumBytes = 256 << 20

    private struct State: ~Copyable {
        var file: AppendedFile?
        var ring: SPSCRing<CaptureRecord>.Consumer
        /// The file has failed or is finished: the rest is read and dropped.
        var isClosed = false

        mutating func drain() throws(AudioFileError) {
            var bytes: [UInt8] = []
            while let record = ring.pop() {
                if isClosed { continue }
                for datagram in record.datagrams {
                    bytes +=
                        PcapWriter.record(
                            datagram.bytes, atNanoseconds: record.at.nanoseconds, sourcePort: datagram.source,
                            destinationPort: datagram.destination) ?? []
                }
            }
            try file?.append(bytes)
        }
    }

    let news: AudioFileNews
    var played: FileIdentity? { nil }
    private let order: CaptureOrder
    private let state: Mutex<State>

    init(_ order: CaptureOrder, from ring: consuming SPSCRing<CaptureRecord>.Consumer, _ reports: FileReports) {
        news = AudioFileNews(order.path, .record, reports)
        self.order = order
        state = Mutex(State(file: nil, ring: ring))
    }

    /// Makes the file, which begins with how the call is played out.
    func open() {
        let base = max(order.at.nanoseconds, 0)
        let note = CaptureNote.start(
            codec: order.codec, order.playout, baseNanoseconds: base, decoder: OpusLibrary.version)
        let first = PcapWriter.record(
            note.bytes, atNanoseconds: base, sourcePort: CaptureNote.port, destinationPort: CaptureNote.port)
        let outcome: AudioFileNews.Outcome = state.withLock { state in
            do throws(AudioFileError) {
                state.file = .some(
                    try AppendedFile(
                        path: order.path, beginningWith: PcapWriter.header + (first ?? []),
                        maximumBytes: Self.maximumBytes))
                return .success(order.path)
            } catch {
                state.isClosed = true
                return .failure(error)
            }
        }
        news.settle(outcome)
    }

    func move() { report { state throws(AudioFileError) in try state.drain() } }

    func finish() {
        report { state throws(AudioFileError) in
            try state.drain()
            guard !state.isClosed else { return }
            state.isClosed = true
            try state.file?.finish()
        }
        discard()
    }

    func discard() {
        news.finish()
        state.withLock { state in
            state.isClosed = true
            // The file is closed with its writer.
            state.file = nil
        }
    }

    func abandon() {
        news.noteStall("its disk has not answered until the end of the device")
        news.finish()
    }

    /// Runs `body` on the file, and reports the first failure.
    private func report(_ action: (inout State) throws(AudioFileError) -> Void) {
        let failure: AudioFileError? = state.withLock { state in
            do throws(AudioFileError) {
                try action(&state)
                return nil
            } catch {
                state.isClosed = true
                return error
            }
        }
        if let failure { news.fail(failure) }
    }
}
