internal import AudioKit
internal import AudioPort
internal import BlockingWork
internal import CallFlow
internal import Core
internal import Synchronization

/// A sound for a caller, at 48 kHz: a thread that may block gets it piece by piece, and the flows' thread puts it into a port.
///
/// One piece is in memory at a time: the next one is got when the port has taken it, and then has two thirds of a second.
final class SoundSource: Sendable {
    /// How a sound continues.
    enum Status: Equatable {
        case continuing, ended
        case failed(FlowUnusable)
    }

    /// Where the samples are.
    enum Contents: Sendable {
        case samples([Int16])
        case file(SoundFile)
    }

    private struct State {
        var piece: [Int16] = []
        var written = 0
        var isWaiting = false
        var isAtEnd = false
        var failure: FlowUnusable?
    }

    private let state = Mutex(State())
    private let threads: BlockingThreads
    private let open: @Sendable () throws(FlowUnusable) -> Contents
    private let contents = Mutex<Contents?>(nil)
    private let wake: @Sendable () -> Void

    /// - Parameters:
    ///   - threads: Run `open`, and read files.
    ///   - wake: Is called when there is another piece.
    ///   - open: Is called once, and may block.
    init(
        on threads: BlockingThreads, wake: @escaping @Sendable () -> Void,
        _ open: @escaping @Sendable () throws(FlowUnusable) -> Contents
    ) {
        self.threads = threads
        self.open = open
        self.wake = wake
        getPiece()
    }

    /// Puts as much into the port as there is room for.
    func write(into port: inout AudioPort, at now: Instant) -> Status {
        var status = Status.continuing
        var isEmpty = false
        state.withLock { state in
            if state.written < state.piece.count {
                let piece = state.piece
                state.written += port.write(
                    piece.span.extracting(state.written..<piece.count), rate: .hz48000, at: now)
            }
            guard state.written == state.piece.count, !state.isWaiting else { return }
            if let failure = state.failure { status = .failed(failure) } else if state.isAtEnd { status = .ended }
            isEmpty = status == .continuing
        }
        if isEmpty { getPiece() }
        return status
    }

    private func getPiece() {
        state.withLock { $0.isWaiting = true }
        Task { [self] in
            await threads.run { [self] in takePiece() }
            wake()
        }
    }

    private func nextPiece() throws(FlowUnusable) -> [Int16]? {
        try contents.withLock { contents throws(FlowUnusable) in
            let opened: Contents
            if let contents { opened = contents } else { opened = try open() }
            switch opened {
            case .samples(let samples):
                contents = .samples([])
                return samples.isEmpty ? nil : samples
            case .file(let file):
                contents = .file(file)
                return try file.next()
            }
        }
    }

    private func takePiece() {
        var piece: [Int16]?
        var failure: FlowUnusable?
        do throws(FlowUnusable) {
            piece = try nextPiece()
        } catch {
            failure = error
        }
        state.withLock { state in
            state.piece = piece ?? []
            state.written = 0
            state.isAtEnd = piece == nil
            state.failure = failure
            state.isWaiting = false
        }
    }
}

/// A file that is read piece by piece.
final class SoundFile: Sendable {
    private static let pieceSamples = AudioFormat.samples(milliseconds: 1_000)
    private let reader: Mutex<AudioFileReader>

    /// Opens a file.
    init(path: String) throws(FlowUnusable) {
        do throws(AudioFileError) {
            reader = Mutex(try AudioFileReader(path: path))
        } catch {
            throw FlowUnusable("\(error)")
        }
    }

    /// The next samples; nil at the end.
    func next() throws(FlowUnusable) -> [Int16]? {
        var piece = [Int16](repeating: 0, count: Self.pieceSamples)
        do throws(AudioFileError) {
            let count = try reader.withLock { reader throws(AudioFileError) in
                var room = piece.mutableSpan
                return try reader.read(into: &room)
            }
            return count == 0 ? nil : Array(piece[..<count])
        } catch {
            throw FlowUnusable("\(error)")
        }
    }
}
