internal import AudioKit
internal import Files
internal import Glibc
internal import Synchronization

/// The other side of one call, read from the recording that the device makes while the call runs.
///
/// Sound that was read, or that is too old to be heard, gives its room on the disk back, so that a call of hours needs no more than a
/// short one.
final class CallEar: Sendable {
    /// Bytes that are read at once, at most: a second of two channels at 48 kHz, several times.
    private static let blockBytes = 1 << 20
    /// The head of a WAV that the device writes has 44 bytes.
    private static let mostHeadBytes = 4_096
    private static let page = 4_096

    private struct State: ~Copyable {
        let file: OpenFile
        var header: WAVHeader?
        /// Of the next byte to read.
        var position = 0
        /// Bytes behind the head whose room was given back.
        var released = 0
    }

    /// The file's path, once it is whole.
    let path: String
    private let state: Mutex<State>
    private let ended = Atomic<Bool>(false)

    /// Opens the recording that the device has begun.
    ///
    /// - Parameter path: Its path, once it is whole.
    init(path: String) throws(SystemError) {
        self.path = path
        let file: OpenFile
        do throws(SystemError) {
            file = try OpenFile(PartFile.path(of: path), O_RDWR | O_NOFOLLOW)
        } catch {
            // A call may be over at once.
            guard error.code == ENOENT else { throw error }
            file = try OpenFile(path, O_RDWR | O_NOFOLLOW)
        }
        state = Mutex(State(file: file))
    }

    /// The call has ended: there will be no more sound than the file has shortly afterwards.
    func callEnded() { ended.store(true, ordering: .relaxed) }

    /// Whether the call has ended.
    var hasEnded: Bool { ended.load(ordering: .relaxed) }

    /// Samples a second, once they are known.
    var rateHz: Int? { state.withLock { $0.header?.sampleRate } }

    /// Reads the samples of the other side that came since the last time, at most a few seconds; empty if there are none.
    func read() throws(SystemError) -> [Int16] {
        try state.withLock { state throws(SystemError) in
            guard try Self.readHead(&state), let header = state.header else { return [] }
            let bytes = try Self.read(state.file, at: state.position, count: Self.blockBytes)
            let frame = header.frameByteCount
            let whole = bytes.count / frame * frame
            state.position += whole
            Self.release(&state, before: state.position)
            return stride(from: 0, to: whole, by: frame).map {
                Int16(bitPattern: UInt16(bytes[$0]) | UInt16(bytes[$0 + 1]) << 8)
            }
        }
    }

    /// Leaves out all but the newest sound that was not read.
    ///
    /// - Parameter seconds: How much is kept.
    func trim(toSeconds seconds: Int) throws(SystemError) {
        try state.withLock { state throws(SystemError) in
            guard try Self.readHead(&state), let header = state.header else { return }
            let size = lseek(state.file.number, 0, SEEK_END)
            guard size >= 0 else { throw SystemError.last }
            let (frame, kept) = (header.frameByteCount, seconds * header.sampleRate * header.frameByteCount)
            let frames = (size - header.dataOffset - kept) / frame
            state.position = max(state.position, header.dataOffset + max(0, frames) * frame)
            Self.release(&state, before: state.position)
        }
    }

    private static func readHead(_ state: inout State) throws(SystemError) -> Bool {
        guard state.header == nil else { return true }
        let head = try read(state.file, at: 0, count: mostHeadBytes)
        guard let header = try? unsafe WAVHeader(parsing: head.span.bytes), case .signed16 = header.sampleFormat else {
            return false
        }
        state.header = header
        (state.position, state.released) = (header.dataOffset, header.dataOffset)
        return true
    }

    private static func read(_ file: borrowing OpenFile, at offset: Int, count: Int) throws(SystemError) -> [UInt8] {
        guard lseek(file.number, offset, SEEK_SET) >= 0 else { throw SystemError.last }
        var bytes = [UInt8](repeating: 0, count: count)
        let read = try file.read(into: &bytes)
        return Array(bytes.prefix(read))
    }

    /// Gives the room of whole pages back. A file system that cannot do that keeps them until the call ends.
    private static func release(_ state: inout State, before position: Int) {
        let start = (state.released + page - 1) / page * page
        let end = position / page * page
        guard end - start >= 1 << 20 else { return }
        state.released = end
        let mapped = unsafe mmap(nil, end - start, PROT_READ | PROT_WRITE, MAP_SHARED, state.file.number, start)
        guard let mapped = unsafe mapped, unsafe mapped != UnsafeMutableRawPointer(bitPattern: -1) else { return }
        // Frees the pages and what backs them on the disk (madvise(2)), without changing the file's length.
        _ = unsafe madvise(mapped, end - start, MADV_REMOVE)
        _ = unsafe munmap(mapped, end - start)
    }
}
