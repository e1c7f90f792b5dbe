internal import JSON

/// What `handover` asks for: the person, and what both sides hear until they are joined.
public struct ControlHandover: Hashable, Sendable {
    /// What the person hears when it answers.
    public enum Whisper: Hashable, Sendable {
        /// A text, which the device speaks.
        case text(String)
        /// The path of a file, from the root.
        case file(String)
    }

    /// What the caller hears meanwhile.
    public enum Music: Hashable, Sendable {
        /// What it heard before.
        case bot
        /// A file at an absolute path, again and again.
        case file(String)
    }

    /// The person.
    public var target: String
    /// What the person hears; nil for nothing.
    public var whisper: Whisper?
    /// The key with which the person accepts; nil: it is joined when the whisper has ended.
    public var acceptKey: Character?
    /// What the caller hears; nil: the configured music, or what it heard before.
    public var music: Music?
    /// How long the person rings, in seconds; nil for 30.
    public var ringSeconds: Int?
    /// Whether the program, bot or flow continues to hear the caller once it is joined; otherwise it leaves.
    public var listens: Bool

    /// Asks for a person.
    public init(to target: String, listens: Bool = false) {
        self.target = target
        self.listens = listens
    }

    init(_ fields: inout RequestFields) throws(ControlFault) {
        target = try fields.text("to", maximumBytes: ControlLimits.nameBytes)
        let text = try fields.optionalText("whisper", maximumBytes: ControlLimits.whisperBytes)
        let file = try fields.path("whisper_file")
        guard text == nil || file == nil else {
            throw ControlFault(.wrongValue, "handover takes whisper or whisper_file")
        }
        whisper = text.map { .text($0) } ?? file.map { .file($0) }
        let key = try fields.optionalText("accept", maximumBytes: ControlLimits.nameBytes)
        guard key.map({ $0.count == 1 && ControlLimits.acceptKeys.contains($0) }) ?? true else {
            throw ControlFault(.wrongValue, "accept must be one key of 0-9, *, # and A-D")
        }
        acceptKey = key?.first
        music = try Self.music(&fields)
        ringSeconds = try fields.number("ring_seconds", in: ControlLimits.ringSeconds).map { Int($0) }
        listens = try Self.choice("bot", of: ["leaves", "listens"], &fields) == "listens"
    }

    private static func music(_ fields: inout RequestFields) throws(ControlFault) -> Music? {
        guard let music = try fields.optionalText("music", maximumBytes: ControlLimits.pathBytes) else { return nil }
        if music == "bot" { return .bot }
        guard music.hasPrefix("/") else {
            throw ControlFault(.wrongValue, "music must be \"bot\", or a path from the root")
        }
        return .file(music)
    }

    /// One of several words, the first without a value.
    static func choice(
        _ key: String, of words: [String], _ fields: inout RequestFields
    ) throws(ControlFault) -> String {
        let word = try fields.optionalText(key, maximumBytes: ControlLimits.nameBytes) ?? words[0]
        guard words.contains(word) else {
            throw ControlFault(.wrongValue, "\(key) must be \(words.joined(separator: " or "))")
        }
        return word
    }

    /// The members as they are read.
    var members: [String: JSONValue?] {
        var members: [String: JSONValue?] = [
            "to": .string(target), "accept": acceptKey.map { .string(String($0)) },
            "ring_seconds": ringSeconds.map { .integer(Int64($0)) }, "bot": listens ? "listens" : "leaves",
        ]
        switch whisper {
        case .text(let text)?: members["whisper"] = .string(text)
        case .file(let path)?: members["whisper_file"] = .string(path)
        case nil: break
        }
        switch music {
        case .bot?: members["music"] = "bot"
        case .file(let path)?: members["music"] = .string(path)
        case nil: break
        }
        return members
    }
}

/// What `park` asks for.
public struct ControlParking: Hashable, Sendable {
    /// The file that the call hears, at an absolute path; nil for the configured one.
    public var music: String?
    /// After which time it is no longer parked, in seconds; nil for 120.
    public var longestSeconds: Int?
    /// Whether it is hung up then; otherwise it does what it did before.
    public var endsThen: Bool

    /// Asks for a slot.
    public init(music: String? = nil, longestSeconds: Int? = nil, endsThen: Bool = false) {
        self.music = music
        self.longestSeconds = longestSeconds
        self.endsThen = endsThen
    }

    init(_ fields: inout RequestFields) throws(ControlFault) {
        music = try fields.path("music")
        longestSeconds = try fields.number("longest_s", in: ControlLimits.parkedSeconds).map { Int($0) }
        endsThen = try ControlHandover.choice("then", of: ["back", "end"], &fields) == "end"
    }

    /// The members as they are read.
    var members: [String: JSONValue?] {
        [
            "music": music.map { .string($0) }, "longest_s": longestSeconds.map { .integer(Int64($0)) },
            "then": endsThen ? "end" : "back",
        ]
    }
}
