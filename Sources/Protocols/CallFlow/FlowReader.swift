public import BotWire
internal import Core
internal import XML

extension FlowDocument {
    private static let limits = XMLLimits(bytes: longest, depth: 8, elements: 1_000, attributes: 16)

    /// Reads a document: XML whose root is `Response`.
    ///
    /// An element or attribute that is not supported is a fault, because a call would otherwise skip it silently.
    ///
    /// - Parameters:
    ///   - bytes: Any bytes; nothing in them can trap.
    ///   - base: Where a server has given it, so that it names documents and sounds by URLs; nil for one of files.
    /// - Throws: All faults that were found.
    public init(parsing bytes: [UInt8], from base: WebAddress? = nil) throws(FlowFaults) {
        let root: XMLElement
        do throws(XMLFault) {
            root = try XMLReader.root(of: bytes, within: Self.limits)
        } catch {
            throw FlowFaults(faults: [FlowFault(message: error.description)])
        }
        var reader = FlowReader(base: base)
        let steps = reader.steps(ofRoot: root)
        guard reader.faults.isEmpty else { throw FlowFaults(faults: reader.faults) }
        self.init(steps: steps)
    }
}

/// Reads elements, and gathers what is wrong with them.
private struct FlowReader {
    private(set) var faults: [FlowFault] = []
    private let base: WebAddress?

    init(base: WebAddress?) { self.base = base }

    /// Verbs of a document, in the order of the alphabet.
    private static let verbs = [
        "Connect", "Dial", "Enqueue", "Gather", "Hangup", "Leave", "Pause", "Play", "Record", "Redirect", "Reject",
        "Say", "Start", "Stop",
    ]
    private static let prompts = ["Pause", "Play", "Say"]
    /// Times that a sound is played with `loop="0"`, which TwiML calls endless.
    private static let mostTimes = 1_000
    private static let longestText = 4_096
    private static let keys = "0123456789*#"

    mutating func steps(ofRoot root: XMLElement) -> [FlowDocument.Step] {
        guard root.name == "Response" else {
            add(root, "is no call flow: the root of one is Response")
            return []
        }
        check(root, attributes: [], text: false)
        let steps = root.children.compactMap { step($0, among: Self.verbs) }
        for (index, step) in steps.enumerated() where index > 0 {
            guard case .reject = step.verb else { continue }
            faults.append(
                FlowFault(
                    line: step.line, element: step.verb.name,
                    message:
                        "must be the first verb, because a call that is answered cannot be rejected; use Hangup here"))
        }
        return steps
    }

    private mutating func add(_ element: XMLElement, _ message: String) {
        faults.append(FlowFault(line: element.line, element: String(element.name.prefix(40)), message: message))
    }

    private mutating func step(_ element: XMLElement, among allowed: [String]) -> FlowDocument.Step? {
        guard allowed.contains(element.name) else {
            addUnsupported(element, allowed)
            return nil
        }
        return verb(element).map { FlowDocument.Step(line: element.line, verb: $0) }
    }

    private mutating func addUnsupported(_ element: XMLElement, _ allowed: [String]) {
        if let meant = allowed.first(where: { $0.lowercased() == element.name.lowercased() }) {
            add(element, "is not supported: names are case-sensitive. Did you mean \(meant)?")
        } else if Self.verbs.contains(element.name) {
            add(element, "is not supported within Gather; supported there are \(allowed.joined(separator: ", "))")
        } else {
            add(element, "is not supported; supported are \(allowed.joined(separator: ", "))")
        }
    }

    private mutating func verb(_ element: XMLElement) -> FlowVerb? {
        switch element.name {
        case "Say":
            check(element, attributes: ["loop"], text: true, children: false)
            let times = times(element)
            return text(element).map { .say($0, times: times) }
        case "Play":
            check(element, attributes: ["loop"], text: true, children: false)
            let times = times(element)
            return file(element, element.text).map { .play($0, times: times) }
        case "Pause":
            check(element, attributes: ["length"], text: false, children: false)
            return .pause(seconds(element, "length", in: 1...3_600, otherwise: 1))
        case "Gather": return .gather(gather(element))
        case "Record": return .record(record(element))
        case "Redirect":
            check(element, attributes: asking([]), text: true, children: false)
            let method = method(element)
            return file(element, element.text).map { .redirect($0, method) }
        case "Dial": return dial(element).map { .dial($0) }
        case "Connect": return connect(element).map { .connect($0) }
        case "Start":
            check(element, attributes: [], text: false)
            return child(of: element, "Stream").flatMap { stream($0, isForked: true) }.map { .start($0) }
        case "Stop":
            check(element, attributes: [], text: false)
            return child(of: element, "Stream").flatMap { stoppedName($0) }.map { .stop($0) }
        case "Enqueue": return enqueue(element).map { .enqueue($0) }
        case "Leave":
            check(element, attributes: [], text: false, children: false)
            return .leave
        case "Reject":
            check(element, attributes: ["reason"], text: false, children: false)
            return .reject(rejection(element))
        case "Hangup":
            check(element, attributes: [], text: false, children: false)
            return .hangup
        default: return nil
        }
    }

    private mutating func gather(_ element: XMLElement) -> FlowGather {
        let attributes = [
            "action", "actionOnEmptyResult", "finishOnKey", "input", "numDigits", "timeout",
        ]
        check(element, attributes: asking(attributes), text: false)
        if let input = element[attribute: "input"], input != "dtmf" {
            add(element, "input is \"\(input.prefix(40))\", and only dtmf is supported")
        }
        let finish = element[attribute: "finishOnKey"] ?? "#"
        if finish.count > 1 || !finish.allSatisfy(Self.keys.contains) {
            add(element, "finishOnKey must be one of 0-9, * and #, or empty, not \"\(finish.prefix(40))\"")
        }
        return FlowGather(
            prompts: element.children.compactMap { step($0, among: Self.prompts) },
            keys: integer(element, "numDigits", in: 1...FlowGather.mostKeys, otherwise: FlowGather.mostKeys),
            finishKey: finish.first, timeout: seconds(element, "timeout", in: 1...600, otherwise: 5),
            action: action(element), method: method(element),
            actsOnEmptyResult: flag(element, "actionOnEmptyResult", otherwise: false))
    }

    private mutating func record(_ element: XMLElement) -> FlowRecord {
        let attributes = ["action", "finishOnKey", "maxLength", "playBeep", "timeout", "trim"]
        check(element, attributes: asking(attributes), text: false, children: false)
        let finish = element[attribute: "finishOnKey"] ?? Self.keys
        if !finish.allSatisfy(Self.keys.contains) {
            add(element, "finishOnKey must be made of 0-9, * and #, or be empty, not \"\(finish.prefix(40))\"")
        }
        let trim = element[attribute: "trim"] ?? "trim-silence"
        if trim != "trim-silence", trim != "do-not-trim" {
            add(element, "trim must be trim-silence or do-not-trim, not \"\(trim.prefix(40))\"")
        }
        return FlowRecord(
            longest: seconds(element, "maxLength", in: 1...14_400, otherwise: 3_600),
            timeout: seconds(element, "timeout", in: 1...FlowRecord.longestPause, otherwise: 5),
            finishKeys: Set(finish),
            beeps: flag(element, "playBeep", otherwise: true), trims: trim == "trim-silence", action: action(element),
            method: method(element))
    }

    // MARK: Dial

    private static let callees = ["Client", "Number", "Sip"]

    private mutating func dial(_ element: XMLElement) -> FlowDial? {
        let attributes = ["action", "answerOnBridge", "hangupOnStar", "timeLimit", "timeout"]
        check(element, attributes: asking(attributes), text: true)
        let destination = destination(of: element)
        let answersOnBridge = flag(element, "answerOnBridge", otherwise: false)
        if answersOnBridge, case .room? = destination {
            add(element, "answerOnBridge is not supported with Conference, which answers the caller")
        }
        let longest = answersOnBridge ? FlowDial.longestUnanswered : 600
        let timeout = seconds(element, "timeout", in: 1...longest, otherwise: min(30, longest))
        let limit =
            element[attribute: "timeLimit"] == nil
            ? nil : seconds(element, "timeLimit", in: 1...86_400, otherwise: 14_400)
        let (action, method) = (action(element), method(element))
        let hangsUpOnStar = flag(element, "hangupOnStar", otherwise: false)
        return destination.map {
            FlowDial(
                destination: $0, timeout: timeout, timeLimit: limit, action: action, method: method,
                hangsUpOnStar: hangsUpOnStar, answersOnBridge: answersOnBridge)
        }
    }

    private mutating func destination(of element: XMLElement) -> FlowDial.Destination? {
        let text = Self.trimmed(element.text)
        guard let first = element.children.first else { return number(element).map { .callees([$0], asking: nil) } }
        if !text.isEmpty { add(element, "has a number beside \(first.name.prefix(40)); put it into a Number") }
        if first.name == "Queue" {
            if element.children.count > 1 { add(element, "has more than a Queue; a call takes one caller at a time") }
            return queue(first)
        }
        guard first.name == "Conference" else { return callees(of: element) }
        if element.children.count > 1 { add(element, "has more than a Conference; a caller is in one room at a time") }
        return room(first)
    }

    private mutating func callees(of element: XMLElement) -> FlowDial.Destination? {
        if element.children.count > FlowDial.mostCallees {
            add(element, "has \(element.children.count) callees; at most \(FlowDial.mostCallees) are supported")
        }
        var screens: [FlowText?] = []
        let found = element.children.compactMap { child -> FlowText? in
            guard Self.callees.contains(child.name) else {
                let all = (Self.callees + ["Conference", "Queue"]).sorted().joined(separator: ", ")
                add(child, "is not supported within Dial; supported there are \(all)")
                return nil
            }
            check(child, attributes: ["url"], text: true, children: false)
            screens.append(child[attribute: "url"].flatMap { file(child, $0) })
            return child.name == "Number" ? number(child) : address(child)
        }
        if screens.contains(where: { $0 != screens[0] }) {
            add(
                element,
                "has callees with different url; all callees of a Dial go through the same document, or none does")
        }
        return found.isEmpty ? nil : .callees(found, asking: screens.first ?? nil)
    }

    private mutating func queue(_ element: XMLElement) -> FlowDial.Destination? {
        check(element, attributes: asking(["url"]), text: true, children: false)
        let method = method(element)
        let whisper = element[attribute: "url"].flatMap { file(element, $0) }
        return queueName(element).map { .queue($0, whisper: whisper, method) }
    }

    private mutating func room(_ element: XMLElement) -> FlowDial.Destination? {
        check(element, attributes: ["beep", "maxParticipants"], text: true, children: false)
        let most = integer(element, "maxParticipants", in: 2...250, otherwise: 50)
        let hasTones = flag(element, "beep", otherwise: true)
        return address(element).map { .room($0, mostMembers: most, hasTones: hasTones) }
    }

    /// A telephone number, without what makes it easier to read; or another name.
    private mutating func number(_ element: XMLElement) -> FlowText? {
        let number = element.text.filter { !$0.isWhitespace && !"()-/".contains($0) }
        let isNumber = number.drop { $0 == "+" }.allSatisfy { ("0"..."9").contains($0) }
        return address(element, isNumber ? String(number) : nil)
    }

    private mutating func address(_ element: XMLElement, _ text: String? = nil) -> FlowText? {
        let text = text ?? Self.trimmed(element.text)
        guard !text.isEmpty, text.utf8.count <= 256 else {
            add(element, text.isEmpty ? "names no one to connect with" : "has a name of more than 256 bytes")
            return nil
        }
        return template(element, text)
    }

    // MARK: Streams

    private mutating func connect(_ element: XMLElement) -> FlowConnect? {
        check(element, attributes: asking(["action"]), text: false)
        let (action, method) = (action(element), method(element))
        return child(of: element, "Stream").flatMap { stream($0, isForked: false) }.map {
            FlowConnect(stream: $0, action: action, method: method)
        }
    }

    /// The only element within another one.
    private mutating func child(of element: XMLElement, _ name: String) -> XMLElement? {
        for child in element.children where child.name != name {
            add(child, "is not supported within \(element.name); supported there is \(name)")
        }
        let found = element.children.filter { $0.name == name }
        guard found.count == 1, element.children.count == 1 else {
            if element.children.allSatisfy({ $0.name == name }) {
                add(element, "has \(found.count) \(name); exactly one is supported")
            }
            return nil
        }
        return found.first
    }

    private mutating func stream(_ element: XMLElement, isForked: Bool) -> FlowStream? {
        check(element, attributes: ["name", "track", "url"], text: false)
        let name = element[attribute: "name"].flatMap { streamName(element, $0) }
        let tracks = tracks(element, isForked: isForked)
        let parameters = parameters(of: element)
        guard let text = element[attribute: "url"] else {
            add(element, "has no url, which names a server by wss:// or ws://")
            return nil
        }
        guard let url = template(element, Self.trimmed(text)) else { return nil }
        guard url.socketAddress(Self.triedValues) != nil else {
            add(
                element,
                "url must begin with wss:// or ws://, have no user and no password, and be of "
                    + "\(WireLimits.addressBytes) bytes at most, not \"\(FlowFileName.shown(url.source))\"")
            return nil
        }
        return FlowStream(url: url, name: name, tracks: tracks, parameters: parameters)
    }

    private mutating func tracks(_ element: XMLElement, isForked: Bool) -> ForkTracks {
        guard let text = element[attribute: "track"] else { return .inbound }
        let allowed = isForked ? ForkTracks.allCases : [.inbound]
        if let known = allowed.first(where: { $0.rawValue == text }) { return known }
        let all = allowed.map(\.rawValue).joined(separator: ", ")
        add(element, "track must be \(isForked ? "one of " : "")\(all), not \"\(text.prefix(40))\"")
        return .inbound
    }

    private mutating func parameters(of element: XMLElement) -> [FlowStream.Parameter] {
        var found: [FlowStream.Parameter] = []
        for child in element.children {
            guard child.name == "Parameter" else {
                add(child, "is not supported within Stream; supported there is Parameter")
                continue
            }
            check(child, attributes: ["name", "value"], text: false, children: false)
            guard let name = child[attribute: "name"], !name.isEmpty else {
                add(child, "has no name")
                continue
            }
            let value = child[attribute: "value"] ?? ""
            if name.utf8.count + value.utf8.count > WireLimits.parameterBytes {
                add(child, "has a name and a value of more than \(WireLimits.parameterBytes) bytes")
            }
            if found.contains(where: { $0.name == name }) { add(child, "has the name of another one") }
            if let value = template(child, value) { found.append(FlowStream.Parameter(name: name, value: value)) }
        }
        if found.count > WireLimits.parameters {
            add(element, "has \(found.count) parameters; at most \(WireLimits.parameters) are supported")
        }
        return found
    }

    private mutating func stoppedName(_ element: XMLElement) -> String? {
        check(element, attributes: ["name"], text: false, children: false)
        return streamName(element, element[attribute: "name"] ?? "")
    }

    private mutating func streamName(_ element: XMLElement, _ name: String) -> String? {
        guard !name.isEmpty, name.utf8.count <= FlowStream.longestName else {
            add(
                element, name.isEmpty ? "has no name" : "has a name of more than \(FlowStream.longestName) bytes")
            return nil
        }
        return name
    }

    // MARK: Queues

    private mutating func enqueue(_ element: XMLElement) -> FlowEnqueue? {
        let methods = base == nil ? [] : ["waitUrlMethod"]
        check(
            element, attributes: asking(["action", "waitUrl"] + methods).sorted(), text: true, children: false)
        let wait = element[attribute: "waitUrl"].flatMap { file(element, $0) }
        let (waitMethod, action) = (method(element, "waitUrlMethod"), action(element))
        let method = method(element)
        return queueName(element).map {
            FlowEnqueue(queue: $0, wait: wait, waitMethod: waitMethod, action: action, method: method)
        }
    }

    private mutating func queueName(_ element: XMLElement) -> FlowText? {
        let name = Self.trimmed(element.text)
        guard !name.isEmpty, name.utf8.count <= FlowEnqueue.longestName else {
            add(
                element,
                name.isEmpty ? "names no queue" : "has a name of more than \(FlowEnqueue.longestName) bytes")
            return nil
        }
        return template(element, name)
    }

    private mutating func rejection(_ element: XMLElement) -> FlowRejection {
        guard let reason = element[attribute: "reason"] else { return .rejected }
        if let known = FlowRejection(rawValue: reason) { return known }
        let all = FlowRejection.allCases.map(\.rawValue).joined(separator: " or ")
        add(element, "reason must be \(all), not \"\(reason.prefix(40))\"")
        return .rejected
    }

    // MARK: Attributes and texts

    private mutating func check(_ element: XMLElement, attributes: [String], text: Bool, children: Bool = true) {
        for attribute in element.attributes where !attributes.contains(attribute.name) {
            let known = attributes.isEmpty ? "it has none" : "supported are \(attributes.joined(separator: ", "))"
            add(element, "the attribute \(attribute.name.prefix(40)) is not supported; \(known)")
        }
        if !text, element.text.contains(where: { !$0.isWhitespace }) {
            add(element, "has text, \"\(Self.trimmed(element.text).prefix(40))\", and takes none")
        }
        if !children, let child = element.children.first {
            add(child, "is not supported within \(element.name), which has no elements in it")
        }
    }

    private mutating func times(_ element: XMLElement) -> Int {
        let times = integer(element, "loop", in: 0...Self.mostTimes, otherwise: 1)
        return times == 0 ? Self.mostTimes : times
    }

    private mutating func seconds(
        _ element: XMLElement, _ name: String, in range: ClosedRange<Int>, otherwise usual: Int
    ) -> Duration { .seconds(integer(element, name, in: range, otherwise: usual)) }

    private mutating func integer(
        _ element: XMLElement, _ name: String, in range: ClosedRange<Int>, otherwise usual: Int
    ) -> Int {
        guard let text = element[attribute: name] else { return usual }
        if text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int(text), range.contains(number) {
            return number
        }
        add(
            element,
            "\(name) must be a whole number from \(range.lowerBound) to \(range.upperBound), not \"\(text.prefix(40))\""
        )
        return usual
    }

    private mutating func flag(_ element: XMLElement, _ name: String, otherwise usual: Bool) -> Bool {
        switch element[attribute: name] {
        case nil: return usual
        case "true": return true
        case "false": return false
        case let text?:
            add(element, "\(name) must be true or false, not \"\(text.prefix(40))\"")
            return usual
        }
    }

    /// Attributes of a verb after which a server may be asked.
    private func asking(_ attributes: [String]) -> [String] {
        base == nil ? attributes : (attributes + ["method"]).sorted()
    }

    private mutating func method(_ element: XMLElement, _ name: String = "method") -> Webhook.Method {
        guard base != nil, let text = element[attribute: name] else { return .post }
        if let method = Webhook.Method(rawValue: text) { return method }
        add(element, "\(name) must be POST or GET, not \"\(text.prefix(40))\"")
        return .post
    }

    private mutating func action(_ element: XMLElement) -> FlowText? {
        element[attribute: "action"].flatMap { file(element, $0) }
    }

    /// A text that is spoken: white space between words is one space.
    private mutating func text(_ element: XMLElement) -> FlowText? {
        let words = element.text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        guard words.utf8.count <= Self.longestText else {
            add(element, "has a text of \(words.utf8.count) bytes; at most \(Self.longestText) are supported")
            return nil
        }
        guard let text = template(element, words) else { return nil }
        if text.isEmpty { add(element, "has no text to say") }
        return text
    }

    /// A name of a file, or a URL. Whether every call can make one of it is tried with values that change nothing.
    private mutating func file(_ element: XMLElement, _ text: String) -> FlowText? {
        guard let name = template(element, Self.trimmed(text)) else { return nil }
        let values = Self.triedValues
        do throws(FlowFileName.Fault) {
            if let base {
                _ = try name.address(values, from: base)
            } else {
                _ = try name.fileName(values)
            }
            return name
        } catch {
            add(element, error.message)
            return nil
        }
    }

    /// Values that change nothing.
    private static var triedValues: FlowValues {
        var values = FlowValues(from: "a", to: "b", callSid: "c")
        values.digits = "1"
        (values.dialStatus, values.dialSeconds) = (DialStatus.completed.rawValue, "1")
        values.handoverStatus = "busy"
        values.streamEvent = FlowStreamEnd(sid: "").event
        values.queueResult = QueueResult.bridged.rawValue
        QueuePlace(sid: "d", position: 1, size: 1, most: 1, since: .zero, meanSince: .zero).put(
            into: &values, at: .zero)
        return values
    }

    private mutating func template(_ element: XMLElement, _ text: String) -> FlowText? {
        do throws(FlowText.Fault) {
            return try FlowText(text)
        } catch {
            add(element, error.message)
            return nil
        }
    }

    private static func trimmed(_ text: String) -> String {
        let first = text.firstIndex { !$0.isWhitespace } ?? text.endIndex
        let last = text.lastIndex { !$0.isWhitespace }.map(text.index(after:)) ?? first
        return String(text[first..<last])
    }
}
