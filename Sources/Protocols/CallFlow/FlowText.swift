public import BotWire
internal import Core

/// What `{{Digits}}` and the like in a document become in a call.
public struct FlowValues: Equatable, Sendable {
    /// The keys of the last answer.
    public var digits = ""
    /// How the last dialled call has ended; empty before one has.
    public var dialStatus = ""
    /// Seconds for which the caller was connected with it.
    public var dialSeconds = ""
    /// How the last hand-over of the call has ended that others have asked for; empty before one has.
    public var handoverStatus = ""
    /// How the last bot's part in the call has ended; empty before one has.
    public var streamEvent = ""
    /// How the caller's time in the last queue has ended; empty before it has.
    public var queueResult = ""
    /// The queue in which the caller waits, or has waited; empty before that.
    public var queueSid = ""
    /// Where in the queue the caller is.
    public var queuePosition = ""
    /// Seconds for which the caller waits, or has waited.
    public var queueSeconds = ""
    /// The mean of that of all callers in the queue.
    public var averageQueueSeconds = ""
    /// Callers in the queue.
    public var queueSize = ""
    /// Callers that the queue can have.
    public var mostQueued = ""
    /// The caller.
    public var from: String
    /// The callee.
    public var to: String
    /// The call's name.
    public var callSid: String

    subscript(name: FlowText.Name) -> String {
        switch name {
        case .digits: digits
        case .from: from
        case .to: to
        case .callSid: callSid
        case .dialStatus: dialStatus
        case .dialSeconds: dialSeconds
        case .handoverStatus: handoverStatus
        case .streamEvent: streamEvent
        case .queueResult: queueResult
        case .queueSid: queueSid
        case .queuePosition: queuePosition
        case .queueSeconds: queueSeconds
        case .averageQueueSeconds: averageQueueSeconds
        case .queueSize: queueSize
        case .mostQueued: mostQueued
        }
    }

    /// The values of a call in which no key was pressed yet.
    public init(from: String, to: String, callSid: String) {
        self.from = from
        self.to = to
        self.callSid = callSid
    }
}

/// A text of a document, in which `{{Digits}}`, `{{From}}`, `{{To}}` and the like are replaced, as in Twilio's TwiML Bins.
public struct FlowText: Equatable, Sendable {
    /// A value that a call has. The names are those of documents.
    public enum Name: String, CaseIterable, Sendable {
        /// The keys of the last answer.
        case digits = "Digits"
        /// The caller.
        case from = "From"
        /// The callee.
        case to = "To"
        /// The call's name.
        case callSid = "CallSid"
        /// How the last dialled call has ended.
        case dialStatus = "DialCallStatus"
        /// Seconds for which the caller was connected with it.
        case dialSeconds = "DialCallDuration"
        /// How the last hand-over of the call has ended.
        case handoverStatus = "HandoverStatus"
        /// How the last bot's part in the call has ended.
        case streamEvent = "StreamEvent"
        /// How the caller's time in the last queue has ended.
        case queueResult = "QueueResult"
        /// The queue.
        case queueSid = "QueueSid"
        /// Where in the queue the caller is, from 1.
        case queuePosition = "QueuePosition"
        /// Seconds in the queue.
        case queueSeconds = "QueueTime"
        /// The mean of that of all callers in the queue.
        case averageQueueSeconds = "AvgQueueTime"
        /// Callers in the queue.
        case queueSize = "CurrentQueueSize"
        /// Callers that the queue can have.
        case mostQueued = "MaxQueueSize"
    }

    private enum Part: Equatable, Sendable {
        case text(String)
        case value(Name)
    }

    private let parts: [Part]

    /// Why a text cannot be used, to be read after its element.
    struct Fault: Error {
        let message: String
    }

    /// Reads a text with its placeholders.
    init(_ text: String) throws(Fault) {
        var parts: [Part] = []
        var rest = text[...]
        while let open = rest.firstRange(of: "{{") {
            parts.append(.text(String(rest[..<open.lowerBound])))
            let inner = rest[open.upperBound...]
            guard let close = inner.firstRange(of: "}}") else { throw Fault(message: "has \"{{\" without \"}}\"") }
            let name = inner[..<close.lowerBound]
            guard let value = Name(rawValue: String(name)) else {
                let known = Name.allCases.map { "{{\($0.rawValue)}}" }.joined(separator: ", ")
                throw Fault(message: "has {{\(name.prefix(40))}}, which is unknown; there are \(known)")
            }
            parts.append(.value(value))
            rest = inner[close.upperBound...]
        }
        parts.append(.text(String(rest)))
        self.parts = parts.filter { $0 != .text("") }
    }

    /// The text of a call, as it is spoken: keys are as they were pressed.
    public func spoken(_ values: FlowValues) -> String {
        parts.map { part in
            switch part {
            case .text(let text): text
            case .value(let name): values[name]
            }
        }.joined()
    }

    /// The name of a file that the text of a call names, within the flow's folder.
    ///
    /// No value can change the folder: `*` and `#` are the words `star` and `pound`, and of other values only letters and digits of
    /// ASCII and `-`, `+`, `@`, `_` and `.` are taken; everything else is `_`.
    ///
    /// - Throws: ``FlowFileName/Fault`` for a name that could lead out of the folder.
    public func fileName(_ values: FlowValues) throws(FlowFileName.Fault) -> FlowFileName {
        try FlowFileName(fileText(values))
    }

    /// The address of a document or sound that the text of a call names, in a document from this address. Values are escaped, so that
    /// they change neither the host nor the form of it.
    public func address(_ values: FlowValues, from base: WebAddress) throws(FlowFileName.Fault) -> WebAddress {
        let reference = escaped(values)
        if reference.isEmpty { return base }
        if let address = base.resolving(reference) { return address }
        throw FlowFileName.Fault(
            message: "\"\(FlowFileName.shown(source))\" is no URL of http or https, of "
                + "\(WireLimits.addressBytes) bytes at most, without a user and a password, or a reference to one")
    }

    /// The WebSocket that the text of a call names; nil if it names none. Values are escaped, as in other addresses.
    public func socketAddress(_ values: FlowValues) -> WebAddress? {
        WebAddress(escaped(values), WebAddress.Scheme.sockets)
    }

    /// The host of the WebSocket if it is the same in every call; nil if it depends on the call.
    public var fixedSocketHost: String? { fixed.flatMap { WebAddress($0, WebAddress.Scheme.sockets)?.host } }

    private func escaped(_ values: FlowValues) -> String {
        parts.map { part in
            switch part {
            case .text(let text): text
            case .value(let name): PercentEscape.escaped(values[name], allowing: PercentEscape.isUnreserved)
            }
        }.joined()
    }

    private func fileText(_ values: FlowValues) -> String {
        parts.map { part in
            switch part {
            case .text(let text): text
            case .value(.digits): Self.words(values.digits)
            case .value(.from): Self.plain(values.from)
            case .value(.to): Self.plain(values.to)
            case .value(.callSid): Self.plain(values.callSid)
            case .value(let name): values[name]
            }
        }.joined()
    }

    /// The file's name if it is the same in every call; nil if it depends on the call.
    public var fixedFileName: FlowFileName? {
        guard parts.allSatisfy({ if case .text = $0 { true } else { false } }) else { return nil }
        return try? FlowFileName(parts.map { if case .text(let text) = $0 { text } else { "" } }.joined())
    }

    /// Whether some call could name this file.
    public func canName(_ name: FlowFileName) -> Bool {
        let name = Array(name.text.utf8)
        // Where in the name the parts so far may end. No value has a slash in it.
        var ends: Set<Int> = [0]
        for part in parts {
            switch part {
            case .text(let text):
                let bytes = Array(text.utf8)
                ends = Set(ends.filter { name[$0...].starts(with: bytes) }.map { $0 + bytes.count })
            case .value:
                ends = Set(ends.flatMap { $0...($0 + name[$0...].prefix { $0 != UInt8(ascii: "/") }.count) })
            }
        }
        return ends.contains(name.count)
    }

    /// As it is written in a document.
    public var source: String {
        parts.map { part in
            switch part {
            case .text(let text): text
            case .value(let name): "{{\(name.rawValue)}}"
            }
        }.joined()
    }

    var isEmpty: Bool { parts.isEmpty }

    /// The text if it is the same in every call; nil if it depends on the call.
    public var fixed: String? {
        guard parts.allSatisfy({ if case .text = $0 { true } else { false } }) else { return nil }
        return source
    }

    /// Whether it depends on what the caller, a dialled call, a hand-over or a queue has done, so that a missing file is no fault.
    var dependsOnResult: Bool {
        parts.contains { part in
            switch part {
            case .text, .value(.from), .value(.to), .value(.callSid), .value(.queueSid), .value(.mostQueued): false
            case .value(.digits), .value(.dialStatus), .value(.dialSeconds), .value(.handoverStatus),
                .value(.streamEvent), .value(.queueResult), .value(.queuePosition), .value(.queueSeconds),
                .value(.averageQueueSeconds),
                .value(.queueSize):
                true
            }
        }
    }

    private static func words(_ keys: String) -> String {
        keys.map { key in
            switch key {
            case "*": "star"
            case "#": "pound"
            default: plain(String(key))
            }
        }.joined()
    }

    private static func plain(_ text: String) -> String {
        String(
            text.unicodeScalars.map { scalar -> Character in
                switch scalar {
                case "a"..."z", "A"..."Z", "0"..."9", "-", "+", "@", "_", ".": Character(scalar)
                default: "_"
                }
            })
    }
}

/// The name of a file within the folder of a flow, whose folders are separated by `/`.
public struct FlowFileName: Hashable, Sendable, CustomStringConvertible {
    /// A name that is not allowed.
    public struct Fault: Error, Equatable, Sendable {
        /// What is wrong with it, to be read after its element.
        public let message: String
    }

    /// The name.
    public let text: String

    /// Bytes in a name.
    private static let longest = 255

    /// - Throws: A fault if the name is a URL, is absolute, is empty or too long, or has a part that begins with a dot, such as `..`, or is
    ///   empty.
    public init(_ text: String) throws(Fault) {
        func refuse(_ why: String) -> Fault { Fault(message: "\"\(Self.shown(text))\" \(why)") }
        if text.isEmpty { throw Fault(message: "names no file") }
        if text.contains("://") {
            throw refuse(
                "is a URL; a flow of files names files in its folder, and one of a server has behaviour.flow.url")
        }
        guard text.utf8.count <= Self.longest else {
            throw refuse("is longer than \(Self.longest) bytes; a shorter name is needed")
        }
        guard text.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7F }) else {
            throw refuse("has control characters")
        }
        for part in text.split(separator: "/", omittingEmptySubsequences: false)
        where part.isEmpty || part.hasPrefix(".") {
            throw refuse(
                "could lead out of the flow's folder: a name has no slash at its beginning, and no part in it begins with a dot"
            )
        }
        self.text = text
    }

    /// The name.
    public var description: String { text }

    /// The beginning of a text that is no name, for messages: without the query of a URL, and without a user and a password.
    static func shown(_ text: String) -> String {
        let part = text.prefix { $0 != "?" }
        return part.contains("@") && part.contains("//") ? "…" : String(part.prefix(80))
    }
}
