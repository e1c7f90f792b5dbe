internal import AudioKit
public import ConfigReader

extension CallScript {
    /// A script has this many bytes at most.
    public static let longestFile = 65_536

    /// Reads a script.
    ///
    /// - Parameters:
    ///   - text: The file.
    ///   - file: Its name, for problems.
    /// - Throws: ``ConfigError`` with every line that cannot be understood, and the word at fault as its key.
    public init(reading text: String, file: String) throws(ConfigError) {
        var problems: [ConfigProblem] = []
        self.init(reading: text, file: file, &problems)
        guard problems.isEmpty else { throw ConfigError(problems) }
    }

    /// Reads the lines that can be understood, so that the files which they name can be checked, too.
    ///
    /// - Parameter problems: Gains one for each other line.
    public init(reading text: String, file: String, _ problems: inout [ConfigProblem]) {
        guard text.utf8.count <= Self.longestFile else {
            problems.append(
                ConfigProblem(file: file, message: "is longer than \(Self.longestFile) bytes, so it is not a script"))
            self.init(statements: [])
            return
        }
        var reader = ScriptReader(file: file)
        for (index, line) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated() {
            reader.take(line, number: index + 1)
        }
        self = reader.finish(&problems)
    }
}

/// Reads a script line by line.
private struct ScriptReader {
    let file: String
    private var script = CallScript(statements: [])
    private var problems: [ConfigProblem] = []
    private var limit = CallScript.usualLimit
    private var isRecording = false
    private var hasHungUp = false

    init(file: String) { self.file = file }

    /// A line that cannot be understood: the word, and what is wrong with it.
    private struct Slip: Error {
        let word: String
        let message: String

        init(_ word: Substring?, _ message: String) {
            self.word = word.map(String.init) ?? "at its end"
            self.message = message
        }
    }

    private static let verbs = [
        "expect", "hang", "limit", "play", "press", "record", "say", "silence", "voice", "wait",
    ]
    private static let longestMilliseconds =
        Double(CallScript.longestTime) / Double(AudioFormat.samples(milliseconds: 1))

    mutating func take(_ line: Substring, number: Int) {
        var words = Words(line)
        guard let verb = words.next(), !verb.hasPrefix("#") else { return }
        do throws(Slip) {
            try read(verb, &words, number)
        } catch {
            problems.append(ConfigProblem(file: file, line: number, key: error.word, message: error.message))
        }
    }

    consuming func finish(_ found: inout [ConfigProblem]) -> CallScript {
        if script.statements.isEmpty, problems.isEmpty {
            problems.append(
                ConfigProblem(file: file, message: "has no statement. docs/call-scripts.md has an example."))
        }
        if let text = script.texts.first, script.voice.isEmpty {
            problems.append(
                ConfigProblem(
                    file: file, line: text.line, key: "say",
                    message: "there is no voice. A line such as \"voice espeak-ng -w {file} {text}\" names the command."
                ))
        }
        found += problems
        return script
    }

    private mutating func read(_ verb: Substring, _ words: inout Words, _ line: Int) throws(Slip) {
        let action: CallScript.Action
        switch verb {
        case "limit": return limit = try Self.length(&words, ending: true)
        case "silence": return script.silence = try Self.length(&words, ending: true)
        case "voice":
            script.voice = words.rest.map(String.init)
            script.voiceLine = line
            guard script.voice.contains(where: { $0.contains("{file}") }) else {
                throw Slip(verb, "must be a command with {file}, where it writes its sound, and {text}")
            }
            return
        case "wait": action = try wait(&words)
        case "press":
            let word = words.next()
            guard let word, let keys = KeySequence(String(word)) else {
                throw Slip(word, "must be keys: \(KeySequence.allowed)")
            }
            action = .press(keys)
        case "play": action = .play(try Self.file(&words))
        case "say":
            let text = words.rest.joined(separator: " ")
            guard !text.isEmpty else { throw Slip(nil, "there must be a text after say") }
            action = .say(text)
        case "expect": action = try Self.expect(&words)
        case "record": action = try record(&words)
        case "hang":
            try Self.expect("up", &words)
            action = .hangUp
        default: throw Self.unknown(verb, "no statement", among: Self.verbs)
        }
        let limit = try within(&words)
        guard !hasHungUp else { throw Slip(verb, "comes after \"hang up\", so it would never be reached") }
        hasHungUp = action == .hangUp
        script.statements.append(
            CallScript.Statement(line: line, text: words.text, action: action, limit: limit))
    }

    private func within(_ words: inout Words) throws(Slip) -> Int {
        guard let word = words.next() else { return limit }
        guard word == "within" else { throw Self.unknown(word, "not expected here", among: ["within"]) }
        return try Self.length(&words, ending: true)
    }

    private func wait(_ words: inout Words) throws(Slip) -> CallScript.Action {
        guard words.peek == "for" else { return .pause(try Self.length(&words)) }
        _ = words.next()
        let word = words.next()
        switch word {
        case "sound": return .waitForSound
        case "silence":
            guard words.peek == "of" else { return .waitForSilence(script.silence) }
            _ = words.next()
            return .waitForSilence(try Self.length(&words))
        case "hang-up": return .waitForHangUp
        default: throw Self.unknown(word, "nothing to wait for", among: ["hang-up", "silence", "sound"])
        }
    }

    private static func expect(_ words: inout Words) throws(Slip) -> CallScript.Action {
        let word = words.next()
        switch word {
        case "length": return .expectLength(try lengths(&words))
        case "like":
            let path = try file(&words)
            guard words.peek == "at" else { return .expectLike(path, CallScript.usualLikeness) }
            _ = words.next()
            try expect("least", &words)
            let number = words.next()
            guard let number, let least = Double(number), least > 0, least <= 1 else {
                throw Slip(number, "must be a likeness above 0, up to 1, such as 0.8")
            }
            return .expectLike(path, least)
        case "silence":
            try expect("of", &words)
            return .expectSilence(try length(&words))
        default: throw unknown(word, "nothing to expect", among: ["length", "like", "silence"])
        }
    }

    private static func lengths(_ words: inout Words) throws(Slip) -> ClosedRange<Int> {
        let longest = CallScript.longestTime
        guard words.peek == "at" else {
            let least = try length(&words)
            let place = words.peek
            try expect("to", &words)
            let most = try length(&words)
            guard least <= most else { throw Slip(place, "the second length must not be the shorter one") }
            return least...most
        }
        _ = words.next()
        let word = words.next()
        switch word {
        case "least": return try length(&words)...longest
        case "most": return 0...(try length(&words))
        default: throw unknown(word, "not expected here", among: ["least", "most"])
        }
    }

    private mutating func record(_ words: inout Words) throws(Slip) -> CallScript.Action {
        if words.peek == "end" {
            let word = words.next()
            guard isRecording else { throw Slip(word, "nothing is being recorded here") }
            isRecording = false
            return .record(nil)
        }
        let path = try Self.file(&words)
        guard !script.recordings.contains(where: { $0.path == path }) else {
            throw Slip(path[...], "is recorded to by an earlier line. Name another file.")
        }
        isRecording = true
        return .record(path)
    }

    private static func file(_ words: inout Words) throws(Slip) -> String {
        guard let word = words.next() else { throw Slip(nil, "there must be a file") }
        return String(word)
    }

    private static func expect(_ word: String, _ words: inout Words) throws(Slip) {
        let found = words.next()
        guard found == word[...] else { throw unknown(found, "not expected here", among: [word]) }
    }

    /// A length of time: `2 s`, `2s`, `500 ms`.
    private static func length(_ words: inout Words, ending: Bool = false) throws(Slip) -> Int {
        let word = words.next()
        let digits = (word ?? "").prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
        var unit = (word ?? "").dropFirst(digits.count)
        if unit.isEmpty, !digits.isEmpty { unit = words.next() ?? "" }
        let scale: Double? = unit == "s" ? 1_000 : unit == "ms" ? 1 : nil
        guard let scale, let number = Double(digits), number > 0, number * scale <= longestMilliseconds else {
            throw Slip(word, "must be a time of up to 600 s with its unit, such as 2 s or 500 ms")
        }
        if ending, let more = words.next() { throw Slip(more, "is not expected here") }
        return AudioFormat.samples(milliseconds: Int(number * scale))
    }

    private static func unknown(_ word: Substring?, _ what: String, among known: [String]) -> Slip {
        let list = known.count == 1 ? known[0] : "one of \(known.joined(separator: ", "))"
        guard let word else { return Slip(nil, "a word is missing: \(list)") }
        let meant = NearestName.find(String(word), among: known).map { "Did you mean \"\($0)\"?" }
        return Slip(word, "is \(what). " + (meant ?? "Use \(list)."))
    }
}

/// The words of a line. Quotes hold words together.
private struct Words {
    private let words: [Substring]
    private var index = 0
    /// The whole line, without spaces at its ends.
    let text: String

    init(_ line: Substring) {
        var found: [Substring] = []
        var place = line.startIndex
        while let start = line[place...].firstIndex(where: { !$0.isWhitespace }) {
            if line[start] == "\"" {
                let inner = line[line.index(after: start)...]
                let end = inner.firstIndex(of: "\"")
                found.append(inner[..<(end ?? inner.endIndex)])
                place = end.map(line.index(after:)) ?? line.endIndex
            } else {
                place = line[start...].firstIndex(where: \.isWhitespace) ?? line.endIndex
                found.append(line[start..<place])
            }
        }
        words = found
        let first = line.firstIndex { !$0.isWhitespace } ?? line.endIndex
        let last = line.lastIndex { !$0.isWhitespace }.map(line.index(after:)) ?? first
        text = String(line[first..<last])
    }

    var peek: Substring? { index < words.count ? words[index] : nil }

    mutating func next() -> Substring? {
        guard index < words.count else { return nil }
        index += 1
        return words[index - 1]
    }

    /// What follows, all taken.
    var rest: ArraySlice<Substring> {
        mutating get {
            defer { index = words.count }
            return words[index...]
        }
    }
}
