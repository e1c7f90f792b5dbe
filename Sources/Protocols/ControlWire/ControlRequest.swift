public import JSON

/// One request of a client, and the id for its answer.
public struct ControlRequest: Hashable, Sendable {
    /// The requests' names on the wire.
    public enum Name: String, CaseIterable, Sendable {
        case status, mute, unmute, volume, call, answer, reject, hangup, card, dtmf, drain, undrain, watch
        case play, stop, record, attach, detach, transfer
        case bridge, unbridge
        case handover
        case cancelHandover = "handover_cancel"
        case park, pickup
        case conferences
        case conferenceMute = "conference_mute"
        case conferenceUnmute = "conference_unmute"
        case conferenceRemove = "conference_remove"
        case conferenceRecord = "conference_record"
        case queues
        case queueTake = "queue_take"
        case queueRemove = "queue_remove"
        case calls, history
    }

    /// The request itself. If it names no call, the device finds the call that is meant (``CallChoice``).
    public enum Action: Hashable, Sendable {
        /// Report the device's state.
        case status
        /// Mute the microphone, or unmute it.
        case mute(Bool)
        /// Set the volumes that are given, in dB.
        case volume(playbackDB: Double?, microphoneDB: Double?)
        /// Place a call.
        case call(to: String)
        /// Take a call that rings.
        case answer(UInt64?)
        /// Decline a call that rings, as busy or not.
        case reject(UInt64?, isBusy: Bool)
        /// Hang up, cancel or decline.
        case hangUp(UInt64?)
        /// Move the sound card to a call; the call that had it waits.
        case card(UInt64)
        /// Press telephone keys.
        case dtmf(String, UInt64?)
        /// Refuse new calls as busy, or take them again.
        case drain(Bool)
        /// Send events from now on, and the levels if `levels` is set.
        case watch(levels: Bool)
        /// Play the file at an absolute path instead of the call's source.
        case play(file: String, UInt64?)
        /// Stop what `play` plays.
        case stop(UInt64?)
        /// Begin to record the call, to the file at an absolute path or to one that the device chooses; or end the
        /// recording.
        case record(Recording, UInt64?)
        /// Add the configured program or bot to the call.
        case attach(UInt64?)
        /// Detach the program or bot from the call, which continues.
        case detach(UInt64?)
        /// Ask a call's peer to call another party instead of this device; `replacing` names another call, whose remote
        /// party the peer then talks to.
        case transfer(UInt64, to: String, replacing: UInt64?)
        /// Join two calls, which hear each other in place of their programs and sources. When one ends, the other is hung up, or
        /// continues as before if `goesBack`.
        case bridge(UInt64, to: UInt64, goesBack: Bool)
        /// Part a call from the one that it was joined to; both continue as before.
        case unbridge(UInt64?)
        /// Call a person for a call, and join the two when the person accepts.
        case handover(UInt64, ControlHandover)
        /// Take back a hand-over that is under way.
        case cancelHandover(UInt64)
        /// Put a call into a slot, where it hears music until another call picks it up.
        case park(UInt64?, ControlParking)
        /// Join a call to the one that is parked in a slot. When one ends, the other is hung up, or continues as before if `goesBack`.
        case pickUp(slot: Int, UInt64, goesBack: Bool)
        /// Report the rooms in which calls meet, and their members.
        case conferences
        /// Mute a call in its room, or have it heard again.
        case conferenceMute(UInt64, Bool)
        /// Hang up a call that is in a room.
        case conferenceRemove(UInt64)
        /// Begin to record the room that a call is in, or end that recording.
        case conferenceRecord(UInt64, Recording)
        /// Report the queues in which callers of flows wait.
        case queues
        /// Join a call to the caller of a queue that has waited longest. When the caller hangs up, the call is hung up, or continues as
        /// before if `goesBack`.
        case queueTake(String, UInt64, goesBack: Bool)
        /// Take a caller out of its queue; its flow continues.
        case queueRemove(UInt64)
        /// List calls, the oldest first, or one of them.
        case calls(Listing)
        /// List the records of calls that ended, the newest first, or one of them.
        case history(ControlHistoryQuery)
    }

    /// The calls that a list has.
    public enum Listing: Hashable, Sendable {
        /// This one alone.
        case one(UInt64)
        /// Those with higher numbers than `after`, the lowest first, at most `limit`.
        case page(after: UInt64, limit: Int)
    }

    /// A command for the recording of a call or a room.
    public enum Recording: Hashable, Sendable {
        case start(file: String?)
        case stop
    }

    /// A line that is no request, with its id if that could be read.
    public struct Refusal: Error, Hashable, Sendable {
        /// The request's id.
        public var id: JSONValue?
        /// What is wrong with the request.
        public var fault: ControlFault
    }

    /// The id for the answer: a string or a whole number; nil for none.
    public var id: JSONValue?
    /// The request itself.
    public var action: Action
    /// The account that is meant; nil if the named call implies it, or there is only one account.
    public var account: String?

    /// Makes a request.
    public init(_ action: Action, account: String? = nil, id: JSONValue? = nil) {
        self.action = action
        self.account = account
        self.id = id
    }

    /// Reads what was cut off a client's stream.
    public init(_ line: LineCutter.Line) throws(Refusal) {
        switch line {
        case .whole(let bytes): try self.init(line: bytes)
        case .tooLong:
            throw Refusal(
                id: nil,
                fault: ControlFault(.tooLong, "a request has \(ControlLimits.requestBytes) bytes on its line at most"))
        }
    }

    /// Reads one line. Any bytes may be given; nothing in them can trap.
    public init(line: [UInt8]) throws(Refusal) {
        guard case .object(let members)? = ControlCoding.value(of: line) else {
            throw Refusal(
                id: nil,
                fault: ControlFault(
                    .malformed, "a request is a JSON object on one line, such as {\"request\":\"status\"}"))
        }
        do throws(ControlFault) {
            try self.init(members)
        } catch {
            throw Refusal(id: try? RequestFields(members).readID(), fault: error)
        }
    }

    /// Reads the members of a request, from either wire.
    init(_ members: [String: JSONValue]) throws(ControlFault) {
        var fields = RequestFields(members)
        id = try fields.id()
        account = try fields.account()
        action = try Self.action(&fields)
        try fields.finish()
    }

    private static func action(_ fields: inout RequestFields) throws(ControlFault) -> Action {
        switch try fields.name() {
        case .status: return .status
        case .mute: return .mute(true)
        case .unmute: return .mute(false)
        case .volume:
            let playback = try fields.number("playback_db", in: ControlLimits.volumeDB)
            let microphone = try fields.number("microphone_db", in: ControlLimits.volumeDB)
            guard playback != nil || microphone != nil else {
                throw ControlFault(.wrongValue, "volume needs playback_db or microphone_db, in dB")
            }
            return .volume(playbackDB: playback, microphoneDB: microphone)
        case .call: return .call(to: try fields.text("to", maximumBytes: ControlLimits.nameBytes))
        case .answer: return .answer(try fields.call())
        case .reject:
            let isBusy = try fields.flag("busy") ?? false
            return .reject(try fields.call(), isBusy: isBusy)
        case .hangup: return .hangUp(try fields.call())
        case .card:
            guard let call = try fields.call() else {
                throw ControlFault(.wrongValue, "card needs call, the number of the call that is to have the card")
            }
            return .card(call)
        case .dtmf:
            let keys = try fields.text("keys", maximumBytes: ControlLimits.keys)
            return .dtmf(keys, try fields.call())
        case .drain: return .drain(true)
        case .undrain: return .drain(false)
        case .watch: return .watch(levels: try fields.flag("levels") ?? true)
        case .play:
            guard let file = try fields.path("file") else {
                throw ControlFault(.wrongValue, "play needs file, the path of a file from the root")
            }
            return .play(file: file, try fields.call())
        case .stop: return .stop(try fields.call())
        case .record:
            let recording = try Self.recording(&fields, "record")
            return .record(recording, try fields.call())
        case .attach: return .attach(try fields.call())
        case .detach: return .detach(try fields.call())
        case .transfer:
            let target = try fields.text("to", maximumBytes: ControlLimits.nameBytes)
            let other = try fields.call("to_call")
            guard let call = try fields.call() else {
                throw ControlFault(.wrongValue, "transfer needs call, the number of the call whose peer is asked")
            }
            return .transfer(call, to: target, replacing: other)
        case .bridge:
            let (call, other) = (try fields.call(), try fields.call("to_call"))
            let goesBack = try fields.flag("goes_back") ?? false
            guard let call, let other else {
                throw ControlFault(.wrongValue, "bridge needs call and to_call, the numbers of the calls to join")
            }
            return .bridge(call, to: other, goesBack: goesBack)
        case .unbridge: return .unbridge(try fields.call())
        case .handover: return .handover(try Self.call(&fields, "handover"), try ControlHandover(&fields))
        case .cancelHandover: return .cancelHandover(try Self.call(&fields, "handover_cancel"))
        case .park: return .park(try fields.call(), try ControlParking(&fields))
        case .pickup:
            let (call, goesBack) = (try Self.call(&fields, "pickup"), try fields.flag("goes_back") ?? false)
            guard let slot = try fields.number("slot", in: ControlLimits.slots) else {
                throw ControlFault(.wrongValue, "pickup needs slot, the number of the slot in which a call is parked")
            }
            return .pickUp(slot: Int(slot), call, goesBack: goesBack)
        case .conferences: return .conferences
        case .conferenceMute: return .conferenceMute(try member(&fields, "conference_mute"), true)
        case .conferenceUnmute: return .conferenceMute(try member(&fields, "conference_unmute"), false)
        case .conferenceRemove: return .conferenceRemove(try member(&fields, "conference_remove"))
        case .conferenceRecord:
            let recording = try Self.recording(&fields, "conference_record")
            return .conferenceRecord(try member(&fields, "conference_record"), recording)
        case .queues: return .queues
        case .queueTake:
            let (call, goesBack) = (try Self.call(&fields, "queue_take"), try fields.flag("goes_back") ?? false)
            return .queueTake(try fields.text("queue", maximumBytes: ControlLimits.nameBytes), call, goesBack: goesBack)
        case .queueRemove: return .queueRemove(try Self.call(&fields, "queue_remove"))
        case .calls: return .calls(try Self.listing(&fields))
        case .history: return .history(try ControlHistoryQuery(&fields))
        }
    }

    private static func recording(_ fields: inout RequestFields, _ name: String) throws(ControlFault) -> Recording {
        let file = try fields.path("file")
        guard let starts = try fields.flag("start") else {
            throw ControlFault(.wrongValue, "\(name) needs start, true to begin and false to end")
        }
        guard starts || file == nil else {
            throw ControlFault(.wrongValue, "\(name) takes a file with start: true only")
        }
        return starts ? .start(file: file) : .stop
    }

    private static func call(_ fields: inout RequestFields, _ name: String) throws(ControlFault) -> UInt64 {
        guard let call = try fields.call() else {
            throw ControlFault(.wrongValue, "\(name) needs call, the number of a call")
        }
        return call
    }

    private static func member(_ fields: inout RequestFields, _ name: String) throws(ControlFault) -> UInt64 {
        guard let call = try fields.call() else {
            throw ControlFault(.wrongValue, "\(name) needs call, the number of a call that is in a room")
        }
        return call
    }

    private static func listing(_ fields: inout RequestFields) throws(ControlFault) -> Listing {
        let call = try fields.call()
        let after = try fields.call("after")
        let limit = try fields.number("limit", in: 1...Double(ControlLimits.listedCalls))
        guard let call else {
            return .page(after: after ?? 0, limit: limit.map { Int($0) } ?? ControlLimits.listedCalls)
        }
        guard after == nil, limit == nil else {
            throw ControlFault(.wrongValue, "calls takes call, or after and limit")
        }
        return .one(call)
    }
}

extension ControlRequest.Recording {
    fileprivate var members: [String: JSONValue?] {
        switch self {
        case .start(let file): ["start": .bool(true), "file": file.map { .string($0) }]
        case .stop: ["start": .bool(false)]
        }
    }
}

extension ControlRequest: Encodable {
    /// Writes the request as it is read.
    public func encode(to encoder: any Encoder) throws {
        var members: [String: JSONValue] = [:]
        if let id { members["id"] = id }
        if let account { members["account"] = .string(account) }
        func set(_ name: Name, _ others: [String: JSONValue?] = [:]) {
            members["request"] = .string(name.rawValue)
            for case (let key, let value?) in others { members[key] = value }
        }
        func number(_ call: UInt64?) -> JSONValue? { call.map { .unsigned($0) } }
        switch action {
        case .status: set(.status)
        case .mute(let isMuted): set(isMuted ? .mute : .unmute)
        case .volume(let playback, let microphone):
            set(
                .volume, ["playback_db": playback.map { .number($0) }, "microphone_db": microphone.map { .number($0) }])
        case .call(let user): set(.call, ["to": .string(user)])
        case .answer(let call): set(.answer, ["call": number(call)])
        case .reject(let call, let isBusy): set(.reject, ["call": number(call), "busy": .bool(isBusy)])
        case .hangUp(let call): set(.hangup, ["call": number(call)])
        case .card(let call): set(.card, ["call": number(call)])
        case .dtmf(let keys, let call): set(.dtmf, ["keys": .string(keys), "call": number(call)])
        case .drain(let isDraining): set(isDraining ? .drain : .undrain)
        case .watch(let levels): set(.watch, ["levels": .bool(levels)])
        case .play(let file, let call): set(.play, ["file": .string(file), "call": number(call)])
        case .stop(let call): set(.stop, ["call": number(call)])
        case .record(let recording, let call):
            set(.record, recording.members.merging(["call": number(call)]) { first, _ in first })
        case .attach(let call): set(.attach, ["call": number(call)])
        case .detach(let call): set(.detach, ["call": number(call)])
        case .transfer(let call, let target, let other):
            set(.transfer, ["call": number(call), "to": .string(target), "to_call": number(other)])
        case .bridge(let call, let other, let goesBack):
            set(.bridge, ["call": number(call), "to_call": number(other), "goes_back": .bool(goesBack)])
        case .unbridge(let call): set(.unbridge, ["call": number(call)])
        case .handover(let call, let asked):
            set(.handover, asked.members.merging(["call": number(call)]) { first, _ in first })
        case .cancelHandover(let call): set(.cancelHandover, ["call": number(call)])
        case .park(let call, let asked): set(.park, asked.members.merging(["call": number(call)]) { first, _ in first })
        case .pickUp(let slot, let call, let goesBack):
            set(.pickup, ["call": number(call), "slot": .integer(Int64(slot)), "goes_back": .bool(goesBack)])
        case .conferences: set(.conferences)
        case .conferenceMute(let call, let isMuted):
            set(isMuted ? .conferenceMute : .conferenceUnmute, ["call": number(call)])
        case .conferenceRemove(let call): set(.conferenceRemove, ["call": number(call)])
        case .conferenceRecord(let call, let recording):
            set(.conferenceRecord, recording.members.merging(["call": number(call)]) { first, _ in first })
        case .queues: set(.queues)
        case .queueTake(let queue, let call, let goesBack):
            set(.queueTake, ["call": number(call), "queue": .string(queue), "goes_back": .bool(goesBack)])
        case .queueRemove(let call): set(.queueRemove, ["call": number(call)])
        case .calls(.one(let call)): set(.calls, ["call": number(call)])
        case .calls(.page(let after, let limit)):
            set(.calls, ["after": after > 0 ? number(after) : nil, "limit": .integer(Int64(limit))])
        case .history(let query): set(.history, query.members)
        }
        try JSONValue.object(members).encode(to: encoder)
    }
}
