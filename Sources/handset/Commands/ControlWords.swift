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
        "drain", "undrain", "watch", "conference list", "conference mute CALL", "conference unmute CALL",
        "conference remove CALL",
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
        case "transfer": return ControlRequest(try transfer(rest))
        case "bridge": return ControlRequest(try bridge(rest))
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
        guard words.count == 2, let verb = words.first, ["mute", "unmute", "remove"].contains(verb) else {
            throw ControlWords(
                "Give list, or mute, unmute or remove with a call: conference list, conference mute CALL.")
        }
        let call = try number(words[1])
        return verb == "remove" ? .conferenceRemove(call) : .conferenceMute(call, verb == "mute")
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
