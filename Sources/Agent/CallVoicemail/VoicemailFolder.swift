internal import AudioKit
internal import Files
internal import FoundationEssentials
internal import Glibc
internal import JSON
public import Voicemail

/// Why a mailbox cannot be used: what was being done with which file, what went wrong, and what to try.
public struct VoicemailError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The kinds of error.
    public enum Code: Sendable {
        /// There is no message of that name.
        case unknownMessage
        /// The mailbox takes no further message.
        case full
        /// The folder, or a file in it, cannot be used.
        case unusable
    }

    /// What to match on.
    public let code: Code
    /// The whole story in one line.
    public let description: String

    init(_ code: Code, _ description: String) {
        self.code = code
        self.description = description
    }

    init(_ error: PrivateFileError) { self.init(.unusable, "\(error)") }
}

/// The folder of a mailbox. A message is `NAME.wav`, with `NAME.json` beside it; while it is being left it is `NAME.part.wav`.
///
/// Any number of processes may use a folder: what changes more than one file holds the lock of the file `.lock` in it. Names of files are
/// those that the folder has, or that ``reserve(_:_:_:)`` gets, never those of callers. All methods block on the disk.
public struct VoicemailFolder: Hashable, Sendable {
    /// The folder's path.
    public let path: String

    /// The mailbox in a folder, which need not exist yet.
    public init(path: String) { self.path = path }

    /// Hundredths of a second for which a process waits for another one that changes the folder.
    private static let patience = 400
    private static let sound = ".wav"
    private static let part = ".part.wav"
    private static let cut = ".cut.wav"
    private static let details = ".json"

    // MARK: Messages

    /// A message, and the file of its sound.
    public struct Entry: Equatable, Sendable {
        /// What is known of it.
        public var message: VoicemailMessage
        /// The path of its sound, a WAV.
        public var file: String

        /// The message as a JSON object on one line, with its file.
        public var json: String { String(decoding: message.text(file: file), as: UTF8.self) }
    }

    /// The messages, the oldest first.
    ///
    /// - Throws: ``VoicemailError`` if the folder exists and cannot be read. Without a folder there are no messages.
    public func messages() throws(VoicemailError) -> [Entry] {
        try stems().compactMap { entry($0) }
    }

    /// The message of an id.
    public func message(_ id: String) throws(VoicemailError) -> Entry {
        guard let stem = try stems().first(where: { Self.id(of: $0) == id }), let entry = entry(stem) else {
            throw VoicemailError(.unknownMessage, "there is no message \"\(id.prefix(40))\" in \"\(path)\"")
        }
        return entry
    }

    /// Marks a message as heard, or as new.
    public func mark(_ id: String, isHeard: Bool) throws(VoicemailError) {
        try locked { () throws(VoicemailError) in
            var entry = try message(id)
            guard entry.message.isHeard != isHeard else { return }
            entry.message.isHeard = isHeard
            try write(entry.message, Self.stem(of: entry.file))
        }
    }

    /// Removes a message.
    public func delete(_ id: String) throws(VoicemailError) {
        try locked { () throws(VoicemailError) in
            try remove(Self.stem(of: try message(id).file))
        }
    }

    // MARK: A message that is being left

    /// Keeps room for a message, and begins its file.
    ///
    /// - Parameters:
    ///   - stem: The name of its file, without an ending; no other message has it.
    ///   - message: What is known of it.
    /// - Returns: The file, under the name of one that is not whole, whose whole name is ``soundPath(_:)``.
    /// - Throws: ``VoicemailError`` with the code `full` if there is no room.
    func reserve(
        _ stem: String, _ message: VoicemailMessage, _ bounds: VoicemailBounds
    ) throws(VoicemailError) -> WAVWriter {
        do throws(RegularFileError) {
            try WritableFolder.make(path)
        } catch {
            throw VoicemailError(.unusable, "cannot write to the mailbox \"\(path)\": \(error.message)")
        }
        let lock = try takeLock()
        defer { withExtendedLifetime(lock) {} }
        if let obstacle = bounds.obstacle(in: try contents(bounds, caller: Self.caller(of: stem))) {
            throw VoicemailError(.full, "the mailbox \"\(path)\" \(obstacle)")
        }
        guard !RegularFile.isThere(soundPath(stem)) else {
            throw VoicemailError(.unusable, "there is a message \"\(soundPath(stem))\" already")
        }
        var message = message
        message.reservedBytes = bounds.messageBytes
        try write(message, stem)
        do throws(AudioFileError) {
            return try WAVWriter(path: PartFile.path(of: soundPath(stem)), sampleRate: VoicemailBounds.rate)
        } catch {
            forget(stem)
            throw VoicemailError(.unusable, "\(error)")
        }
    }

    /// Where a message's sound is when it is whole.
    func soundPath(_ stem: String) -> String { "\(path)/\(stem)\(Self.sound)" }

    /// Completes what is known of a message whose sound is whole.
    ///
    /// - Returns: The message as it is kept.
    func complete(_ stem: String, isCut: Bool = false) throws(VoicemailError) -> Entry {
        try locked { () throws(VoicemailError) in
            guard var entry = entry(stem) else {
                throw VoicemailError(.unknownMessage, "the message \"\(soundPath(stem))\" was removed meanwhile")
            }
            entry.message.reservedBytes = nil
            entry.message.isCut = isCut
            entry.message.durationMilliseconds = VoicemailBounds.milliseconds(
                ofBytes: Self.status(of: entry.file)?.bytes ?? 0)
            try write(entry.message, stem)
            return entry
        }
    }

    /// Removes what is known of a message that came to nothing.
    func forget(_ stem: String) { try? PrivateFile.remove(detailsPath(stem)) }

    /// Makes a message of what was written until a failure, if that is long enough.
    ///
    /// - Returns: The message; nil if it is too short, and removed.
    func rescue(_ stem: String) throws(VoicemailError) -> Entry? {
        try keep(PartFile.path(of: soundPath(stem)), stem)
    }

    /// Makes messages of what processes have left that were killed while a message was being left.
    ///
    /// - Returns: The messages.
    public func recover() throws(VoicemailError) -> [Entry] {
        guard RegularFile.isFolder(path) else { return [] }
        let stems = try locked { () throws(VoicemailError) in
            _ = PartFile.keepLeftovers(in: path)
            return try names().filter { $0.hasSuffix(Self.cut) }.map { String($0.dropLast(Self.cut.count)) }
        }
        var kept: [Entry] = []
        for stem in stems {
            if let entry = try keep("\(path)/\(stem)\(Self.cut)", stem) { kept.append(entry) }
        }
        // Whole messages of which no one was notified: the process was killed in between, or the disk was full.
        for stem in try self.stems() where details(stem)?.reservedBytes != nil { kept.append(try complete(stem)) }
        try locked { () throws(VoicemailError) in try removeOrphans() }
        return kept
    }

    /// Removes messages that are older than they are kept.
    ///
    /// - Parameter earliest: Seconds since 1970: a message of before was left when the clock was not set, so its age is not known.
    /// - Returns: Their number.
    public func removeExpired(
        _ bounds: VoicemailBounds, leftSince earliest: Double = 0
    ) throws(VoicemailError) -> Int {
        guard bounds.days != nil, RegularFile.isFolder(path) else { return 0 }
        return try locked { () throws(VoicemailError) in
            let old = try stems().filter { stem in
                Self.status(of: soundPath(stem)).map { $0.time >= earliest && bounds.isExpired(age: $0.age) } ?? false
            }
            for stem in old { try remove(stem) }
            return old.count
        }
    }

    // MARK: Files

    /// What the folder contains.
    ///
    /// - Parameter caller: The caller who is to leave a message, as names of files have it.
    private func contents(
        _ bounds: VoicemailBounds, caller: Substring
    ) throws(VoicemailError) -> VoicemailBounds.Contents {
        var contents = VoicemailBounds.Contents()
        for name in try names() where name.hasSuffix(Self.sound) {
            var bytes = Self.status(of: "\(path)/\(name)")?.bytes ?? 0
            if name.hasSuffix(Self.part) {
                let reserved = details(String(name.dropLast(Self.part.count)))?.reservedBytes ?? bounds.messageBytes
                contents.beginning.append((reserved, bytes))
                bytes = max(reserved, bytes)
            } else {
                contents.messages += 1
                contents.bytes += bytes
            }
            guard Self.caller(of: name) == caller else { continue }
            contents.messagesOfCaller += 1
            contents.bytesOfCaller += bytes
        }
        contents.freeBytes = WritableFolder.freeBytes(at: path)
        return contents
    }

    /// - Parameter file: What was written of the message.
    private func keep(_ file: String, _ stem: String) throws(VoicemailError) -> Entry? {
        let isKept = try locked { () throws(VoicemailError) in
            // Another process may have kept it.
            guard let status = Self.status(of: file) else { return false }
            guard status.bytes >= VoicemailBounds.soundBytes(VoicemailBounds.leastSpeech) else {
                try removing(file)
                forget(stem)
                return false
            }
            do throws(PrivateFileError) {
                try PrivateFile.move(file, to: soundPath(stem))
            } catch {
                throw VoicemailError(error)
            }
            return true
        }
        return isKept ? try complete(stem, isCut: true) : nil
    }

    /// Removes what is known of messages without a sound.
    private func removeOrphans() throws(VoicemailError) {
        let names = Set(try names())
        for name in names where name.hasSuffix(Self.details) {
            let stem = name.dropLast(Self.details.count)
            guard ![Self.sound, Self.part, Self.cut].contains(where: { names.contains(stem + $0) }) else { continue }
            try removing("\(path)/\(name)")
        }
    }

    private func remove(_ stem: String) throws(VoicemailError) {
        // A sound without what is known of it is still a message; the other way round it is none.
        try removing(soundPath(stem))
        try removing(detailsPath(stem))
    }

    private func removing(_ file: String) throws(VoicemailError) {
        do throws(PrivateFileError) {
            try PrivateFile.remove(file)
        } catch {
            throw VoicemailError(error)
        }
    }

    private func write(_ message: VoicemailMessage, _ stem: String) throws(VoicemailError) {
        do throws(PrivateFileError) {
            try PrivateFile.replace(detailsPath(stem), with: message.text() + [UInt8(ascii: "\n")])
        } catch {
            throw VoicemailError(error)
        }
    }

    private func detailsPath(_ stem: String) -> String { "\(path)/\(stem)\(Self.details)" }

    private func details(_ stem: String) -> VoicemailMessage? {
        let bytes = try? PrivateFile.read(detailsPath(stem), maximumBytes: 4 * VoicemailMessage.mostBytes)
        let text = bytes.map { Array($0.prefix { $0 != UInt8(ascii: "\n") }) }
        return text.flatMap { JSONValue(plain: $0, nesting: 2) }.flatMap { VoicemailMessage($0, id: Self.id(of: stem)) }
    }

    /// Nil if it was removed. What is known of it may be missing.
    private func entry(_ stem: String) -> Entry? {
        let file = soundPath(stem)
        guard let status = Self.status(of: file) else { return nil }
        var message =
            details(stem)
            ?? VoicemailMessage(id: Self.id(of: stem), caller: "unknown", received: status.changed)
        message.durationMilliseconds =
            message.durationMilliseconds ?? VoicemailBounds.milliseconds(ofBytes: status.bytes)
        return Entry(message: message, file: file)
    }

    /// The names of whole messages without their ending, the oldest first: they begin with the time.
    private func stems() throws(VoicemailError) -> [String] {
        try names().filter {
            $0.hasSuffix(Self.sound) && !$0.hasSuffix(Self.part) && !$0.hasSuffix(Self.cut)
        }.map { String($0.dropLast(Self.sound.count)) }
    }

    private func names() throws(VoicemailError) -> [String] {
        guard RegularFile.isFolder(path) else { return [] }
        do {
            return try FileManager.default.contentsOfDirectory(atPath: path).filter { !$0.hasPrefix(".") }.sorted()
        } catch {
            throw VoicemailError(
                .unusable, "cannot read the mailbox \"\(path)\": \(error). Check who owns the folder.")
        }
    }

    private static func stem(of file: String) -> String {
        String(file.split(separator: "/").last?.dropLast(sound.count) ?? "")
    }

    /// The caller in the name of a file, `TIME_from_CALLER_ID`, with its escapes.
    private static func caller(of name: String) -> Substring {
        let marker = "_from_"
        guard let start = name.firstRange(of: marker)?.upperBound, let end = name.lastIndex(of: "_"), start < end
        else { return "" }
        return name[start..<end]
    }

    private static func id(of stem: String) -> String { String(stem.split(separator: "_").last ?? stem[...]) }

    private struct Status {
        let bytes: Int
        let age: Duration
        /// When it was last written to, in seconds since 1970.
        let time: Double
        /// When it was last written to (RFC 3339).
        let changed: String
    }

    private static func status(of file: String) -> Status? {
        guard let measure = FileMeasure(path: file) else { return nil }
        let time = Date(timeIntervalSince1970: measure.modified)
        return Status(
            bytes: measure.bytes, age: .seconds(Date().timeIntervalSince(time)), time: measure.modified,
            changed: time.ISO8601Format())
    }

    private func locked<Value>(
        _ work: () throws(VoicemailError) -> Value
    ) throws(VoicemailError) -> Value {
        let lock = try takeLock()
        defer { withExtendedLifetime(lock) {} }
        return try work()
    }

    /// Locks the folder until the lock is freed.
    private func takeLock() throws(VoicemailError) -> HeldLock {
        do throws(PrivateFileError) {
            return try HeldLock(LockFile("\(path)/.lock", patience: Self.patience))
        } catch {
            throw VoicemailError(error)
        }
    }

    private final class HeldLock: Sendable {
        private let lock: LockFile

        init(_ lock: consuming LockFile) { self.lock = lock }
    }
}
