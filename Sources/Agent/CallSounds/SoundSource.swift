// CallSounds: what participants that play files and record callers have in common: their sounds, their recordings and their thread.

internal import AudioKit
public import AudioPort
public import BlockingWork
public import Core
internal import Synchronization

/// Why a sound cannot be played, or a recording cannot be written: what was tried with which file, and what went wrong.
public struct SoundFault: Error, Equatable, Sendable, CustomStringConvertible {
    /// The whole story in one line.
    public let message: String

    /// Makes a fault.
    public init(_ message: String) { self.message = message }

    /// The message.
    public var description: String { message }
}

/// A sound for a caller, at 48 kHz: a thread that may block gets it piece by piece, and the calls' thread puts it into a port.
///
/// One piece is in memory at a time: the next one is got when the port has taken it, and then has two thirds of a second.
public final class SoundSource: Sendable {
    /// How a sound continues.
    public enum Status: Equatable, Sendable {
        /// There is more, or it is being read.
        case continuing
        /// All of it is in the port.
        case ended
        /// It cannot be played on.
        case failed(SoundFault)
    }

    /// Where the samples are.
    public enum Contents: Sendable {
        /// In memory.
        case samples([Int16])
        /// In a file.
        case file(SoundFile)
    }

    private struct State {
        var piece: [Int16] = []
        var written = 0
        var isWaiting = false
        var isAtEnd = false
        var failure: SoundFault?
    }

    private let state = Mutex(State())
    private let threads: BlockingThreads
    private let open: @Sendable () throws(SoundFault) -> Contents
    private let contents = Mutex<Contents?>(nil)
    private let wake: @Sendable () -> Void

    /// Begins to get a sound.
    ///
    /// - Parameters:
    ///   - threads: Run `open`, and read files.
    ///   - wake: Is called when there is another piece.
    ///   - open: Is called once, and may block.
    public init(
        on threads: BlockingThreads, wake: @escaping @Sendable () -> Void,
        _ open: @escaping @Sendable () throws(SoundFault) -> Contents
    ) {
        self.threads = threads
        self.open = open
        self.wake = wake
        getPiece()
    }

    private static let beepMilliseconds = 400

    /// The tone before a recording: 0.4 s of 1,000 Hz.
    ///
    /// - Parameter wake: As for any sound.
    public static func beep(wake: @escaping @Sendable () -> Void) -> SoundSource {
        SoundSource(on: .files, wake: wake) {
            var tone = ToneGenerator(frequencyHz: 1_000)
            var samples = [Int16](repeating: 0, count: AudioFormat.samples(milliseconds: beepMilliseconds))
            var room = samples.mutableSpan
            tone.fill(&room)
            return .samples(samples)
        }
    }

    /// Puts as much into the port as there is room for.
    ///
    /// - Parameter note: Receives what was put there, at 48 kHz.
    public func write(
        into port: inout AudioPort, at now: Instant, noting note: (ArraySlice<Int16>) -> Void = { _ in }
    ) -> Status {
        var status = Status.continuing
        var isEmpty = false
        state.withLock { state in
            if state.written < state.piece.count {
                let piece = state.piece
                let count = port.write(
                    piece.span.extracting(state.written..<piece.count), rate: .hz48000, at: now)
                note(piece[state.written..<state.written + count])
                state.written += count
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

    private func nextPiece() throws(SoundFault) -> [Int16]? {
        try contents.withLock { contents throws(SoundFault) in
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
        var failure: SoundFault?
        do throws(SoundFault) {
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
public final class SoundFile: Sendable {
    /// Samples of one piece.
    static let pieceSamples = AudioFormat.samples(milliseconds: 1_000)
    private let reader: Mutex<AudioFileReader>

    /// Opens a file.
    public init(path: String) throws(SoundFault) {
        do throws(AudioFileError) {
            reader = Mutex(try AudioFileReader(path: path))
        } catch {
            throw SoundFault("\(error)")
        }
    }

    /// The next samples; nil at the end.
    func next() throws(SoundFault) -> [Int16]? {
        var piece = [Int16](repeating: 0, count: Self.pieceSamples)
        do throws(AudioFileError) {
            let count = try reader.withLock { reader throws(AudioFileError) in
                var room = piece.mutableSpan
                return try reader.read(into: &room)
            }
            return count == 0 ? nil : Array(piece[..<count])
        } catch {
            throw SoundFault("\(error)")
        }
    }
}
