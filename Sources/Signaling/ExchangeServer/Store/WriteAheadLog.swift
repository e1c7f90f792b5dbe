internal import ExchangeCore
internal import Files
internal import Glibc

/// SQLite's write-ahead log as it is on disk (https://www.sqlite.org/fileformat2.html, chapter 4): whether it has the frames that SQLite
/// has written, so that a restart finds them.
///
/// A restart reads frames up to the first that does not continue the checksum of those before it. SQLite itself does not read what it has
/// written again.
struct WriteAheadLog: ~Copyable {
    private static let headerBytes = 32
    private static let frameHeaderBytes = 24
    /// Frames that are read at once.
    private static let framesAtOnce = 32

    // The log has no locks of SQLite, which another descriptor could drop.
    private let file: OpenFile
    private var header: [UInt8]
    private var frames: Int
    /// The header of the last frame.
    private var lastFrame: [UInt8]
    private var verifiedFrames = 0

    /// Reads the beginning and the end of the log.
    init(path: String, frames: Int) throws(StoreError) {
        let file: OpenFile
        do throws(RegularFileError) {
            file = try RegularFile.open(path, O_RDONLY | O_NOFOLLOW)
        } catch {
            throw StoreError(.notReachable, "cannot read the database's log \(path): \(error.message).")
        }
        self.frames = frames
        header = Self.read(file, 0, Self.headerBytes)
        lastFrame = []
        self.file = file
        if frames > 0 { lastFrame = frameHeader(frames - 1) }
    }

    /// Frames behind those that were read when the log was verified last.
    var framesSinceVerified: Int { frames - verifiedFrames }

    /// Finds out whether the log continues where it was, or has begun again from its front, as SQLite does when all of it was copied back.
    ///
    /// - Parameters:
    ///   - frames: Those that it has now.
    ///   - bytes: Its length.
    /// - Returns: False if another program has cut it, or has written over its beginning or end.
    mutating func noteCommit(frames: Int, bytes: Int) -> Bool {
        let header = Self.read(file, 0, Self.headerBytes)
        if header == self.header {
            guard frames >= self.frames, self.frames == 0 || frameHeader(self.frames - 1) == lastFrame else {
                return false
            }
        } else {
            // Each time it begins again the first salt is one more, also for a commit that fails, and the second another.
            let step = Self.word(header, 16) &- Self.word(self.header, 16)
            guard Self.isValid(header), (1...64).contains(step) else { return false }
            self.header = header
            verifiedFrames = 0
        }
        guard bytes >= offset(ofFrame: frames) else { return false }
        self.frames = frames
        guard frames > 0 else { return true }
        lastFrame = frameHeader(frames - 1)
        return lastFrame.count == Self.frameHeaderBytes && lastFrame[8..<16] == header[16..<24]
    }

    /// Reads all frames as a restart would.
    ///
    /// - Returns: Whether each continues the checksum of those before it.
    mutating func verify() -> Bool {
        guard Self.isValid(header) else { return false }
        let isBigEndian = header[3] & 1 == 1
        let length = Self.frameHeaderBytes + pageBytes
        var sum = (Self.word(header, 24), Self.word(header, 28))
        var next = 0
        while next < frames {
            let count = min(Self.framesAtOnce, frames - next)
            let bytes = Self.read(file, offset(ofFrame: next), count * length)
            guard bytes.count == count * length else { return false }
            for start in stride(from: 0, to: bytes.count, by: length) {
                guard bytes[(start + 8)..<(start + 16)] == header[16..<24] else { return false }
                Self.add(bytes, start..<(start + 8), isBigEndian, to: &sum)
                Self.add(bytes, (start + Self.frameHeaderBytes)..<(start + length), isBigEndian, to: &sum)
                guard sum == (Self.word(bytes, start + 16), Self.word(bytes, start + 20)) else { return false }
            }
            next += count
        }
        verifiedFrames = frames
        return true
    }

    private var pageBytes: Int { Int(Self.word(header, 8)) }

    private func offset(ofFrame number: Int) -> Int { Self.headerBytes + number * (Self.frameHeaderBytes + pageBytes) }

    private func frameHeader(_ number: Int) -> [UInt8] {
        Self.read(file, offset(ofFrame: number), Self.frameHeaderBytes)
    }

    /// Whether its own checksum is right, and the size of a page is one that SQLite has.
    private static func isValid(_ header: [UInt8]) -> Bool {
        guard header.count == headerBytes, word(header, 0) & ~1 == 0x377F_0682,
            (512...65_536).contains(word(header, 8))
        else { return false }
        var sum: (UInt32, UInt32) = (0, 0)
        add(header, 0..<24, header[3] & 1 == 1, to: &sum)
        return sum == (word(header, 24), word(header, 28))
    }

    /// Continues SQLite's checksum: over pairs of words of four bytes, in the byte order that the log's magic names.
    private static func add(
        _ bytes: [UInt8], _ range: Range<Int>, _ isBigEndian: Bool, to sum: inout (UInt32, UInt32)
    ) {
        for index in stride(from: range.lowerBound, to: range.upperBound, by: 8) {
            let (first, second) = (word(bytes, index), word(bytes, index + 4))
            sum.0 = sum.0 &+ (isBigEndian ? first : first.byteSwapped) &+ sum.1
            sum.1 = sum.1 &+ (isBigEndian ? second : second.byteSwapped) &+ sum.0
        }
    }

    /// Four bytes, the most significant first.
    private static func word(_ bytes: [UInt8], _ index: Int) -> UInt32 {
        guard index + 4 <= bytes.count else { return 0 }
        return UInt32(bytes[index]) << 24 | UInt32(bytes[index + 1]) << 16 | UInt32(bytes[index + 2]) << 8
            | UInt32(bytes[index + 3])
    }

    /// Fewer bytes than `count` if the file has no more, or cannot be read.
    private static func read(_ file: borrowing OpenFile, _ position: Int, _ count: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        let read = (try? file.read(into: &bytes, atPosition: position)) ?? 0
        return read == count ? bytes : Array(bytes.prefix(read))
    }
}
