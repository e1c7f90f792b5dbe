internal import Core

/// What a mailbox has room for. The longest message is counted before it begins, so none is lost for want of room.
public struct VoicemailBounds: Equatable, Sendable {
    /// The longest message.
    public var longest = Duration.seconds(180)
    /// Messages, with those that are being left.
    public var mostMessages = 100
    /// Megabytes (10^6 bytes) of all messages, with those that are being left.
    public var megabytes = 500
    /// Days for which a message is kept; nil for ever.
    public var days: Int?

    /// The usual bounds.
    public init() {}

    /// Samples a second of a message.
    public static let rate = 16_000
    /// Bytes before the samples of a WAV.
    public static let headBytes = 44
    /// Speech without which there is no message.
    public static let leastSpeech = Duration.seconds(1)
    /// Bytes that a disk keeps free beside messages.
    public static let spareBytes = 16_000_000
    /// One caller has a mailbox's messages and megabytes divided by this, so that no caller fills it alone.
    public static let callerShare = 4
    /// The longest messages that each caller may leave, also in a small mailbox.
    public static let leastOfCaller = 5

    /// Bytes of a message's sound.
    public static func soundBytes(_ length: Duration) -> Int {
        headBytes + Int(length.milliseconds) * rate / 1_000 * MemoryLayout<Int16>.size
    }

    /// The length of a sound of that number of bytes, in milliseconds.
    public static func milliseconds(ofBytes bytes: Int) -> Int {
        max(0, bytes - headBytes) / MemoryLayout<Int16>.size * 1_000 / rate
    }

    /// Bytes of the longest message: its sound, and what is written beside it.
    public var messageBytes: Int { Self.soundBytes(longest) + VoicemailMessage.mostBytes }

    /// Messages that one caller may have in the mailbox, with those that are being left.
    public var mostOfCaller: Int { max(Self.leastOfCaller, mostMessages / Self.callerShare) }
    /// Bytes of their sounds.
    public var bytesOfCaller: Int {
        max(Self.leastOfCaller * messageBytes, megabytes * 1_000_000 / Self.callerShare)
    }

    /// What a mailbox contains.
    public struct Contents: Equatable, Sendable {
        /// Messages.
        public var messages = 0
        /// Bytes of their sounds.
        public var bytes = 0
        /// For each message that is being left: the bytes that are kept free for it, and those that are written.
        public var beginning: [(reserved: Int, written: Int)] = []
        /// Messages of the caller who is to leave another one, with those that are being left.
        public var messagesOfCaller = 0
        /// Bytes of their sounds, and those that are kept free for them.
        public var bytesOfCaller = 0
        /// Bytes that the disk has free; nil if that is not known.
        public var freeBytes: Int?

        /// An empty mailbox.
        public init() {}

        /// Whether two are the same.
        public static func == (left: Self, right: Self) -> Bool {
            left.messages == right.messages && left.bytes == right.bytes && left.freeBytes == right.freeBytes
                && left.messagesOfCaller == right.messagesOfCaller && left.bytesOfCaller == right.bytesOfCaller
                && left.beginning.elementsEqual(right.beginning) { $0 == $1 }
        }
    }

    /// Why a mailbox takes no further message; nil if it takes one. To be read after the mailbox.
    public func obstacle(in contents: Contents) -> String? {
        let count = contents.messages + contents.beginning.count
        guard count < mostMessages else { return "is full: it has \(count) messages (most_messages)" }
        let reserved = contents.beginning.reduce(0) { $0 + $1.reserved }
        let left = megabytes * 1_000_000 - contents.bytes - reserved
        guard messageBytes <= left else {
            return "is full: \(max(0, left) / 1_000_000) of \(megabytes) MB are left (megabytes)"
        }
        if let obstacle = obstacle(ofCaller: contents) { return obstacle }
        guard let free = contents.freeBytes else { return nil }
        let unwritten = contents.beginning.reduce(0) { $0 + max(0, $1.reserved - $1.written) }
        guard messageBytes + unwritten + Self.spareBytes <= free else {
            return "is full: its disk has \(free / 1_000_000) MB free"
        }
        return nil
    }

    private func obstacle(ofCaller contents: Contents) -> String? {
        guard contents.messagesOfCaller < mostOfCaller else {
            return "has \(contents.messagesOfCaller) messages of this caller, the limit for one caller"
        }
        let left = bytesOfCaller - contents.bytesOfCaller
        guard messageBytes <= left else {
            let (used, most) = (contents.bytesOfCaller / 1_000_000, bytesOfCaller / 1_000_000)
            return "has \(used) MB of this caller, and \(most) is the limit for one caller"
        }
        return nil
    }

    /// Whether a message of this age goes.
    public func isExpired(age: Duration) -> Bool { days.map { age > .seconds($0 * 86_400) } ?? false }
}
