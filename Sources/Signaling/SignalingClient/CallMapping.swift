internal import CallControl
internal import JSON
internal import SignalWire

// What calls say, as the exchange carries it (docs/protocol.md, "Signals of a call"). No other module knows this JSON.

extension CallDescription {
    /// Reads a description of the peer's. Its unknown members are ignored.
    init(_ value: JSONValue) {
        let sdp = value["sdp"]?.string
        let content: Content =
            switch (value["type"]?.string, sdp) {
            case ("offer"?, let sdp?): .offer(sdp)
            case ("answer"?, let sdp?): .answer(sdp)
            case ("wanted"?, _): .wanted
            default: .unreadable  // The peer may send anything.
            }
        // A peer that says itself where it comes from opens only its own call to that host, as its description can.
        self.init(content, source: value["source"]?.string)
    }

    /// As it is sent.
    var value: JSONValue {
        switch content {
        case .offer(let sdp): ["type": "offer", "sdp": .string(sdp)]
        case .answer(let sdp): ["type": "answer", "sdp": .string(sdp)]
        case .wanted: ["type": "wanted"]
        case .unreadable: .null
        }
    }
}

extension CallCandidate {
    /// Reads a candidate of the peer's (RTCIceCandidateInit); nil if it is none.
    fileprivate init?(_ data: JSONValue) {
        guard let text = data["candidate"]?.string else { return nil }
        let mid = data["sdpMid"]?.string
        self = text.isEmpty ? .end(mid: mid) : .candidate(text, mid: mid)
    }

    /// As it is sent.
    fileprivate var value: JSONValue {
        switch self {
        case .candidate(let text, let mid): Self.value(text, mid)
        case .end(let mid): Self.value("", mid)
        }
    }

    private static func value(_ text: String, _ mid: String?) -> JSONValue {
        ["candidate": .string(text), "sdpMid": mid.map(JSONValue.string) ?? .null, "sdpMLineIndex": 0]
    }
}

extension CallTransfer.Request {
    /// Reads a peer's request; nil if it names no target.
    fileprivate init?(_ data: JSONValue) {
        guard let text = data["to"]?.string, let target = try? UserID(text) else { return nil }
        self.init(
            target: target, replaces: data["replaces"]?.string.flatMap { try? InviteID($0) },
            isOutside: data["outside"] == .bool(true), isUnlisted: data["unlisted"] == .bool(true))
    }

    /// As it is sent.
    fileprivate var value: JSONValue {
        var members: [String: JSONValue] = ["to": .string(target.text)]
        members["replaces"] = replaces.map { .string($0.text) }
        if isOutside { members["outside"] = .bool(true) }
        if isUnlisted { members["unlisted"] = .bool(true) }
        return .object(members)
    }
}

extension CallTransfer.Origin {
    /// Reads the member `transfer` of an invite; nil if it is no object.
    init?(_ value: JSONValue) {
        guard case .object = value else { return nil }
        self.init(
            invite: value["invite"]?.string.flatMap { try? InviteID($0) },
            by: value["by"]?.string.flatMap { try? UserID($0) },
            replaces: value["replaces"]?.string.flatMap { try? InviteID($0) })
    }

    /// As it is sent.
    fileprivate var value: JSONValue {
        var members: [String: JSONValue] = [:]
        members["invite"] = invite.map { .string($0.text) }
        members["by"] = by.map { .string($0.text) }
        members["replaces"] = replaces.map { .string($0.text) }
        return .object(members)
    }
}

extension TrunkCall {
    /// Reads the member `trunk` of an invite; nil if it is no object.
    init?(_ value: JSONValue) {
        guard case .object = value else { return nil }
        self.init(dialled: value["dialled"]?.string, caller: value["caller"]?.string, name: value["name"]?.string)
    }

    /// As it is sent.
    fileprivate var value: JSONValue {
        var members: [String: JSONValue] = [:]
        members["dialled"] = dialled.map(JSONValue.string)
        members["caller"] = caller.map(JSONValue.string)
        members["name"] = name.map(JSONValue.string)
        return .object(members)
    }
}

extension CallMessage {
    /// Reads a signal of the peer's; nil if it is an application's, or cannot be read.
    init?(type: String, _ data: JSONValue) {
        switch Kind(rawValue: type) {
        case .candidate:
            guard let candidate = CallCandidate(data) else { return nil }
            self = .candidate(candidate)
        case .offer: self = .offer(CallDescription(data))
        case .answer: self = .answer(CallDescription(data))
        case .offerRefused: self = .offerRefused
        case .transfer:
            guard let request = CallTransfer.Request(data) else { return nil }
            self = .transfer(request)
        case .transferProgress:
            guard let progress = data["state"]?.string.flatMap(CallTransfer.Progress.init(rawValue:)) else {
                return nil
            }
            self = .transferProgress(progress)
        case .probe: self = .probe
        // On an exchange these are an application's.
        case .earlyAnswer, .key, .acknowledged, nil: return nil
        }
    }

    /// As it is sent; nil if an exchange has no such message.
    fileprivate var value: JSONValue? {
        switch self {
        case .candidate(let candidate): candidate.value
        case .offer(let description), .answer(let description): description.value
        case .offerRefused, .probe: [:]
        case .transfer(let request): request.value
        case .transferProgress(let progress): ["state": .string(progress.rawValue)]
        case .earlyAnswer, .key, .acknowledged: nil
        }
    }
}

extension SignalWire.CallSignal {
    /// A signal for the peer of a call.
    ///
    /// - Throws: ``SignalingError`` if an exchange has no such message.
    init(_ signal: CallControl.CallSignal, doing activity: String) throws(SignalingError) {
        var data = signal.data
        if let message = signal.message {
            guard let value = message.value else {
                throw SignalingError(
                    .invalidRequest, activity: activity,
                    cause: "an exchange has no message of the type \"\(signal.type)\"")
            }
            data = value
        }
        self.init(invite: signal.invite, type: signal.type, data: data, peer: signal.peer)
    }
}

extension InviteAcceptance {
    /// The data of an accept.
    var data: JSONValue {
        switch self {
        case .call(let description): [description.isOffer ? "offer" : "answer": description.value]
        case .application(let data): data
        }
    }
}

extension InviteRejection {
    /// Reads the data of a rejection. A reason that is missing or unknown is `declined`, and an unknown cause says nothing.
    init(_ data: JSONValue) {
        self.init(
            data["reason"]?.string.flatMap(RejectReason.init(rawValue:)) ?? .declined,
            cause: data["cause"]?.string.flatMap(CallFailureCause.init(rawValue:)))
    }

    /// The data of a rejection.
    var data: JSONValue {
        var members: [String: JSONValue] = ["reason": .string(reason.rawValue)]
        members["cause"] = cause.map { .string($0.rawValue) }
        return .object(members)
    }
}

extension InviteWithdrawal {
    /// The data of a cancel.
    var data: JSONValue {
        switch self {
        case .call(let reason): ["reason": .string(reason.rawValue)]
        case .application(let data): data
        }
    }
}

extension CallEndReason {
    /// Reads the reason that a peer gives for hanging up; an unknown one counts as an ordinary hang-up.
    init(told text: String) { self = CallEndReason(rawValue: text) ?? .completed }
}

extension InviteOptions {
    /// The data of the invite: the application's, and what is said of the call. Data that is no object gives way to the latter.
    var sentData: JSONValue {
        var said: [String: JSONValue] = [:]
        said["offer"] = offer?.value
        said["trunk"] = trunk?.value
        said["transfer"] = transfer?.value
        said["traceparent"] = trace.map { .string("\($0)") }
        if hops.count > 0 { said["hops"] = .integer(Int64(hops.count)) }
        guard !said.isEmpty else { return data }
        guard case .object(let members) = data else { return .object(said) }
        return .object(members.merging(said) { _, own in own })
    }
}
