internal import Core

/// Text files in one file, as tar(1) reads it (POSIX.1-1988, ustar). A value.
struct TarArchive: Sendable {
    private static let block = 512

    private(set) var bytes: [UInt8] = []

    /// Adds a file that only its owner may read.
    ///
    /// - Parameter name: Its path in the archive: plain characters, 99 at most; a longer one is cut.
    mutating func add(_ name: String, _ text: String, at time: WallClock) {
        let contents = Array(text.utf8)
        var header = [UInt8](repeating: 0, count: Self.block)
        func put(_ text: String, at offset: Int) {
            for (index, byte) in text.utf8.enumerated() { header[offset + index] = byte }
        }
        put(String(name.utf8.prefix(99)) ?? "file", at: 0)
        put("0000600", at: 100)
        put("0000000", at: 108)
        put("0000000", at: 116)
        put(Self.octal(contents.count, digits: 11), at: 124)
        put(Self.octal(Int(clamping: max(0, time.unixMilliseconds / 1_000)), digits: 11), at: 136)
        // The sum is made as if its own place held blanks.
        put("        ", at: 148)
        put("0", at: 156)
        put("ustar", at: 257)
        put("00", at: 263)
        put(Self.octal(header.reduce(0) { $0 + Int($1) }, digits: 6), at: 148)
        header[154] = 0
        bytes += header + contents + [UInt8](repeating: 0, count: -contents.count & (Self.block - 1))
    }

    /// Ends the archive.
    mutating func finish() { bytes += [UInt8](repeating: 0, count: 2 * Self.block) }

    private static func octal(_ number: Int, digits: Int) -> String {
        let text = String(number, radix: 8)
        return String(repeating: "0", count: max(0, digits - text.utf8.count)) + text.suffix(digits)
    }
}
