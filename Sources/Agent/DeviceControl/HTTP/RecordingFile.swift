internal import CallAgent
internal import ControlWire
internal import Files
internal import Glibc

/// The file of a recording, open for a client that hears it.
///
/// Only a file that the device has written for the call's record is opened: the record names it, it is no link, it is WAV or Ogg Opus, and
/// it was last written to while the call ran.
final class RecordingFile: Sendable {
    /// Its length.
    let bytes: Int
    /// The same as long as it has the same bytes.
    let entityTag: String
    /// Its media type.
    let contentType: String
    private let file: OpenFile

    /// Seconds that the disk may take to complete a recording after its call.
    private static let longestCompletion = 60.0
    /// Seconds by which times of a file system may be coarser than those of records.
    private static let coarseness = 2.0

    private init(_ file: consuming OpenFile, _ measure: FileMeasure, _ contentType: String) {
        self.file = file
        self.contentType = contentType
        bytes = measure.bytes
        entityTag = "\"\(measure.bytes)-\(Int64(measure.modified * 1_000_000))\""
    }

    /// Opens a recording. Blocks.
    ///
    /// - Parameter end: When its call ended, in milliseconds since 1970.
    /// - Throws: ``ControlFault`` with `noSuchRecording` if it is gone, or another file has its name.
    static func open(
        _ recording: KeptCall.Recording, endOfCall end: Int64
    ) throws(ControlFault) -> RecordingFile {
        do throws(RegularFileError) {
            return try open(at: recording.file, writtenFrom: recording.began, to: end)
        } catch {
            throw ControlFault(
                .noSuchRecording,
                "the recording \"\(recording.file)\" is not there: \(error.message); it may have been removed or moved")
        }
    }

    private static func open(
        at path: String, writtenFrom begin: Int64, to end: Int64
    ) throws(RegularFileError) -> RecordingFile {
        // A relative path would depend on where the device was started.
        guard path.hasPrefix("/") else { throw RegularFileError("its record has no path from the root") }
        let file = try RegularFile.open(path, O_RDONLY | O_NOFOLLOW)
        guard let measure = FileMeasure(descriptor: file.number) else { throw RegularFileError("it cannot be read") }
        let earliest = Double(begin) / 1_000 - coarseness
        guard measure.modified >= earliest, measure.modified <= Double(end) / 1_000 + longestCompletion else {
            throw RegularFileError("the file there was written at another time than the call's")
        }
        let type = try contentType(of: file)
        return RecordingFile(file, measure, type)
    }

    private static func contentType(of file: borrowing OpenFile) throws(RegularFileError) -> String {
        var head = [UInt8](repeating: 0, count: 36)
        do throws(SystemError) {
            _ = try file.read(into: &head, atPosition: 0)
        } catch {
            throw RegularFileError(error)
        }
        func has(_ text: String, at start: Int) -> Bool { head[start...].starts(with: text.utf8) }
        if has("RIFF", at: 0), has("WAVE", at: 8) { return "audio/wav" }
        if has("OggS", at: 0), has("OpusHead", at: 28) { return "audio/ogg" }
        throw RegularFileError("the file there is neither WAV nor Ogg Opus")
    }

    /// Reads a part, or the beginning of it; nothing if the file has been cut, or cannot be read. Blocks.
    func read(_ part: Range<Int>) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: part.count)
        let count = (try? file.read(into: &bytes, atPosition: part.lowerBound)) ?? 0
        bytes.removeLast(bytes.count - count)
        return bytes
    }
}
