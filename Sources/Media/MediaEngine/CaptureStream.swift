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
        var file: AppendedFile
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
            try file.append(bytes)
        }
    }

    var played: FileIdentity? { nil }
    private let state: Mutex<State>
    private let onFailure: @Sendable (AudioFileError) -> Void

    /// Makes the file, which begins with how the call is played out.
    init(
        _ order: CaptureOrder, from ring: consuming SPSCRing<CaptureRecord>.Consumer,
        onFailure: @escaping @Sendable (AudioFileError) -> Void
    ) throws(AudioFileError) {
        let base = max(order.at.nanoseconds, 0)
        let note = CaptureNote.start(
            codec: order.codec, order.playout, baseNanoseconds: base, decoder: OpusLibrary.version)
        let first = PcapWriter.record(
            note.bytes, atNanoseconds: base, sourcePort: CaptureNote.port, destinationPort: CaptureNote.port)
        let file = try AppendedFile(
            path: order.path, beginningWith: PcapWriter.header + (first ?? []), maximumBytes: Self.maximumBytes)
        state = Mutex(State(file: file, ring: ring))
        self.onFailure = onFailure
    }

    func move() { report { state throws(AudioFileError) in try state.drain() } }

    func finish() {
        report { state throws(AudioFileError) in
            try state.drain()
            guard !state.isClosed else { return }
            state.isClosed = true
            try state.file.finish()
        }
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
        if let failure { onFailure(failure) }
    }
}
