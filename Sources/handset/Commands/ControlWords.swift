internal import ControlWire
internal import Files

/// The words behind `handset control`, as a request. Pure.
struct ControlWords: Error, CustomStringConvertible {
    /// What is wrong with the words, as a sentence.
    let description: String

    /// The words that make each request.
    static let forms = [
        "status", "mute", "unmute", "volume DB", "volume microphone DB", "call CALLEE", "answer [CALL]",
        "reject [CALL]", "busy [CALL]", "hangup [CALL]", "card CALL", "dtmf KEYS [CALL]", "play [CALL] FILE",
        "stop [CALL]", "record [CALL] start [FILE]", "record [CALL] stop", "attach [CALL]", "detach [CALL]",
        "transfer CALL CALLEE", "transfer CALL CALLEE to-call CALL", "bridge CALL CALL [goes-back]", "unbridge [CALL]",
        "handover CALL to=PERSON [whisper=TEXT|FILE] [accept=KEY] [music=FILE|bot] [ring=SECONDS] [bot=leaves|listens]",
        "handover CALL cancel", "park [CALL] [music=FILE] [seconds=SECONDS] [then=back|end]",
        "pickup SLOT CALL [goes-back]",
        "queue list", "queue take QUEUE CALL [goes-back]", "queue remove CALL",
        "drain", "undrain", "watch", "conference list", "conference mute CALL", "conference unmute CALL",
        "conference remove CALL", "conference record CALL start [FILE]", "conference record CALL stop",
    ]

    private init(_ description: String) { self.description = description }

    /// Reads the words.
    static func request(_ words: [String]) throws(ControlWords) -> ControlRequest {
        // Where no option can follow, people write so.
        let words = words.filter { $0 != "--" }
        guard let name = words.first else { throw ControlWords("Give a request: \(forms.joined(separator: ", ")).") }
        let rest = Array(words.dropFirst())
        func atMost(_ count: Int) throws(ControlWords) {
            guard rest.count <= count else { throw ControlWords("\(name) does not take \"\(rest[count])\".") }
        }
        switch name {
        case "status", "mute", "unmute", "drain", "undrain", "watch":
            try atMost(0)
            let actions: [String: ControlRequest.Action] = [
                "status": .status, "mute": .mute(true), "unmute": .mute(false), "drain": .drain(true),
                "undrain": .drain(false), "watch": .watch(levels: true),
            ]
            return ControlRequest(actions[name] ?? .status)
        case "volume": return ControlRequest(try volume(rest))
        case "call":
            try atMost(1)
            guard let user = rest.first, !user.isEmpty else { throw ControlWords("Give the callee: call CALLEE.") }
            guard user.utf8.count <= ControlLimits.nameBytes else { throw ControlWords("That name is too long.") }
            return ControlRequest(.call(to: user))
        case "answer", "reject", "busy", "hangup":
            try atMost(1)
            let call = try rest.first.map(number)
            switch name {
            case "answer": return ControlRequest(.answer(call))
            case "hangup": return ControlRequest(.hangUp(call))
            default: return ControlRequest(.reject(call, isBusy: name == "busy"))
            }
        case "card":
            try atMost(1)
            guard let call = try rest.first.map(number) else {
                throw ControlWords("Give the call that gets the card: card CALL.")
            }
            return ControlRequest(.card(call))
        case "dtmf":
            try atMost(2)
            guard let keys = rest.first, (1...ControlLimits.keys).contains(keys.utf8.count) else {
                throw ControlWords("Give 1 to \(ControlLimits.keys) keys of 0-9, *, #, A-D and !: dtmf KEYS [CALL].")
            }
            return ControlRequest(.dtmf(keys, rest.count > 1 ? try number(rest[1]) : nil))
        case "play":
            try atMost(2)
            guard let file = rest.last, !file.isEmpty else {
                throw ControlWords("Give the file to play: play [CALL] FILE.")
            }
            return ControlRequest(.play(file: try path(file), rest.count > 1 ? try number(rest[0]) : nil))
        case "record": return ControlRequest(try record(rest))
        case "conference": return ControlRequest(try conference(rest))
        case "queue": return ControlRequest(try queue(rest))
        case "transfer": return ControlRequest(try transfer(rest))
        case "bridge": return ControlRequest(try bridge(rest))
        case "handover", "park", "pickup": return ControlRequest(try joining(name, rest))
        case "stop", "attach", "detach", "unbridge":
            try atMost(1)
            let call = try rest.first.map(number)
            switch name {
            case "unbridge": return ControlRequest(.unbridge(call))
            case "stop": return ControlRequest(.stop(call))
            case "attach": return ControlRequest(.attach(call))
            default: return ControlRequest(.detach(call))
            }
        default: throw ControlWords("There is no \"\(name)\"; there are \(forms.joined(separator: ", ")).")
        }
    }

    private static func conference(_ words: [String]) throws(ControlWords) -> ControlRequest.Action {
        if words == ["list"] { return .conferences }
        if words.first == "record", words.count > 1 {
            guard case .record(let recording, let call?) = try record(Array(words.dropFirst())) else {
                throw ControlWords("Give a call that is in the room: conference record CALL start [FILE].")
            }
            return .conferenceRecord(call, recording)
        }
        guard words.count == 2, let verb = words.first, ["mute", "unmute", "remove"].contains(verb) else {
            throw ControlWords(
                "Give list, or mute, unmute, remove or record with a call: conference list, conference mute CALL.")
        }
        let call = try number(words[1])
        return verb == "remove" ? .conferenceRemove(call) : .conferenceMute(call, verb == "mute")
    }

    private static func queue(_ words: [String]) throws(ControlWords) -> ControlRequest.Action {
        switch (words.first, words.count) {
        case ("list", 1): return .queues
        case ("remove", 2): return .queueRemove(try number(words[1]))
        case ("take", 3),
            ("take", 4) where words.count == 3 || ["goes-back", "--goes-back"].contains(words[3]):
            guard (1...ControlLimits.nameBytes).contains(words[1].utf8.count) else {
                throw ControlWords("The name of a queue has 1 to \(ControlLimits.nameBytes) bytes.")
            }
            return .queueTake(words[1], try number(words[2]), goesBack: words.count == 4)
        default:
            throw ControlWords("Give one of \(forms.filter { $0.hasPrefix("queue") }.joined(separator: ", ")).")
        }
    }

    private static func bridge(_ words: [String]) throws(ControlWords) -> ControlRequest.Action {
        let goesBack = words.count == 3 && ["goes-back", "--goes-back"].contains(words[2])
        guard words.count == 2 || goesBack else {
            throw ControlWords("Give two calls: bridge CALL CALL, or bridge CALL CALL goes-back.")
        }
        return .bridge(try number(words[0]), to: try number(words[1]), goesBack: goesBack)
    }

    private static func transfer(_ words: [String]) throws(ControlWords) -> ControlRequest.Action {
        guard words.count == 2 || words.count == 4 && ["to-call", "--to-call"].contains(words[2]), !words[1].isEmpty
        else {
            throw ControlWords(
                "Give a call and the new callee of its peer: transfer CALL CALLEE, or transfer CALL CALLEE to-call CALL."
            )
        }
        guard words[1].utf8.count <= ControlLimits.nameBytes else { throw ControlWords("That name is too long.") }
        return .transfer(
            try number(words[0]), to: words[1], replacing: words.count == 4 ? try number(words[3]) : nil)
    }

    private static func record(_ words: [String]) throws(ControlWords) -> ControlRequest.Action {
        var rest = words[...]
        var call: UInt64?
        if let first = rest.first, first != "start", first != "stop" {
            call = try number(first)
            rest.removeFirst()
        }
        switch (rest.first, rest.count) {
        case ("stop", 1): return .record(.stop, call)
        case ("start", 1): return .record(.start(file: nil), call)
        case ("start", 2): return .record(.start(file: try path(words[words.count - 1])), call)
        default: throw ControlWords("Give start or stop: record [CALL] start [FILE], or record [CALL] stop.")
        }
    }

    private static func joining(_ name: String, _ words: [String]) throws(ControlWords) -> ControlRequest.Action {
        var (numbers, settings, flags): ([UInt64], [String: String], [String]) = ([], [:], [])
        for word in words {
            if let equals = word.firstIndex(of: "="), equals > word.startIndex {
                settings[String(word[..<equals])] = String(word[word.index(after: equals)...])
            } else if ["cancel", "goes-back"].contains(word) {
                flags.append(word)
            } else {
                numbers.append(try number(word))
            }
        }
        switch (name, numbers.count, flags) {
        case ("handover", 1, ["cancel"]) where settings.isEmpty: return .cancelHandover(numbers[0])
        case ("handover", 1, []): return .handover(numbers[0], try handover(settings))
        case ("park", 0...1, []): return .park(numbers.first, try parking(settings))
        case ("pickup", 2, []), ("pickup", 2, ["goes-back"]):
            guard settings.isEmpty, ControlLimits.slots.contains(Double(numbers[0])) else { break }
            return .pickUp(slot: Int(numbers[0]), numbers[1], goesBack: !flags.isEmpty)
        default: break
        }
        throw ControlWords("Give one of \(forms.filter { $0.hasPrefix(name) }.joined(separator: ", ")).")
    }

    private static func handover(_ given: [String: String]) throws(ControlWords) -> ControlHandover {
        var settings = given
        guard let target = settings.removeValue(forKey: "to"), !target.isEmpty,
            target.utf8.count <= ControlLimits.nameBytes
        else {
            throw ControlWords("Give the person: handover CALL to=PERSON.")
        }
        var asked = ControlHandover(to: target)
        if let whisper = settings.removeValue(forKey: "whisper") {
            guard (1...ControlLimits.whisperBytes).contains(whisper.utf8.count) else {
                throw ControlWords("A whisper has 1 to \(ControlLimits.whisperBytes) bytes.")
            }
            asked.whisper = try isSound(whisper) ? .file(path(whisper)) : .text(whisper)
        }
        if let key = settings.removeValue(forKey: "accept") {
            guard key.count == 1, ControlLimits.acceptKeys.contains(key) else {
                throw ControlWords("accept= takes one key of 0-9, *, # and A-D.")
            }
            asked.acceptKey = key.first
        }
        if let music = settings.removeValue(forKey: "music") {
            asked.music = music == "bot" ? .bot : .file(try path(music))
        }
        asked.ringSeconds = try seconds(settings.removeValue(forKey: "ring"), in: ControlLimits.ringSeconds, "ring")
        if let role = settings.removeValue(forKey: "bot") {
            guard ["leaves", "listens"].contains(role) else { throw ControlWords("bot= takes leaves or listens.") }
            asked.listens = role == "listens"
        }
        try expectNone(settings, "handover")
        return asked
    }

    private static func parking(_ given: [String: String]) throws(ControlWords) -> ControlParking {
        var settings = given
        var asked = ControlParking()
        asked.music = try settings.removeValue(forKey: "music").map(path)
        asked.longestSeconds = try seconds(
            settings.removeValue(forKey: "seconds"), in: ControlLimits.parkedSeconds, "seconds")
        if let sequel = settings.removeValue(forKey: "then") {
            guard ["back", "end"].contains(sequel) else { throw ControlWords("then= takes back or end.") }
            asked.endsThen = sequel == "end"
        }
        try expectNone(settings, "park")
        return asked
    }

    /// Whether a whisper is the name of a file, and no text.
    private static func isSound(_ whisper: String) -> Bool {
        [".wav", ".opus", ".ogg"].contains { whisper.hasSuffix($0) }
    }

    private static func seconds(
        _ text: String?, in range: ClosedRange<Double>, _ name: String
    ) throws(ControlWords) -> Int? {
        guard let text else { return nil }
        guard let seconds = Int(text), range.contains(Double(seconds)) else {
            throw ControlWords("\(name)= takes \(Int(range.lowerBound)) to \(Int(range.upperBound)) seconds.")
        }
        return seconds
    }

    private static func expectNone(_ settings: [String: String], _ name: String) throws(ControlWords) {
        guard let other = settings.keys.min() else { return }
        throw ControlWords("\(name) does not take \"\(other)=\".")
    }

    /// A path from the root: the device has a working folder of its own.
    private static func path(_ file: String) throws(ControlWords) -> String {
        let path = RegularFile.absolute(file)
        guard path.utf8.count <= ControlLimits.pathBytes else { throw ControlWords("That path is too long.") }
        return path
    }

    private static func volume(_ words: [String]) throws(ControlWords) -> ControlRequest.Action {
        let isMicrophone = words.first == "microphone"
        let range = ControlLimits.volumeDB
        guard words.count == (isMicrophone ? 2 : 1), let text = words.last, let value = Double(text),
            range.contains(value)
        else {
            throw ControlWords(
                "Give a volume from \(Int(range.lowerBound)) to \(Int(range.upperBound)) dB: volume DB, or volume "
                    + "microphone DB.")
        }
        return isMicrophone
            ? .volume(playbackDB: nil, microphoneDB: value) : .volume(playbackDB: value, microphoneDB: nil)
    }

    private static func number(_ text: String) throws(ControlWords) -> UInt64 {
        guard let number = UInt64(text), number > 0, number <= Int64.max else {
            throw ControlWords("\"\(text)\" is not the number of a call; status lists them.")
        }
        return number
    }
}
