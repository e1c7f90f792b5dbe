internal import JSON

/// One route of the HTTP interface: a method, a path, and the ``ControlRequest`` that they are.
///
/// The table ``all`` both serves requests and is described in OpenAPI, so that the two cannot differ.
struct ControlRoute: InterfaceRoute {
    /// The methods of HTTP that routes have.
    enum Method: String, Sendable {
        case get = "GET"
        case post = "POST"
    }

    /// What the route does.
    enum Work: Sendable {
        /// A request to the device, with members that the route adds.
        case request(ControlRequest.Name, [String: JSONValue] = [:])
        /// The sound of a recording.
        case recording
        /// The events, as a stream.
        case events
        /// The description of the interface.
        case description
    }

    /// The content of an answer.
    enum Answer: Sendable, CaseIterable {
        case status, accounts, calls, call, placed, done, recording, sound, conferences, queues, history, record, file,
            nothing,
            events
        case description
    }

    /// A member of the body, or a parameter of the query.
    struct Member: Sendable {
        /// The values that it may have.
        enum Kind: Sendable {
            case text(maximumBytes: Int)
            case path
            case keys
            case callNumber
            case decibels
            case integer(ClosedRange<Int64>)
            case flag
            case cursor
            case acceptKey
            case music
            case webSocketURL
            case choice([String])
        }

        let name: String
        let kind: Kind
        var isRequired = false
        /// What it is, for people.
        let words: String
    }

    let method: Method
    /// With `{call}` in the place of a call's number.
    let path: String
    /// The name in OpenAPI.
    let name: String
    /// What it does, for people.
    let words: String
    let work: Work
    let answer: Answer
    /// The codes of errors that routes do not share.
    var faults: [ControlFault.Code] = []
    var query: [Member] = []
    var body: [Member] = []
    /// What a body's members must be together, as a JSON schema.
    var bodyRule: [String: JSONValue] = [:]

    /// Whether ``currentCall`` may be in the place of a call's number.
    var takesCurrent = false

    static let callPart = "{call}"
    /// In the place of a call's number: the call is found as it is for a request of the socket of lines that names none.
    static let currentCall = "current"
    /// In the place of a record's name.
    static let recordPart = "{record}"

    var isStream: Bool { answer == .events }

    func variable(_ part: Substring) -> PathVariable? {
        switch part {
        case Self.callPart[...]: takesCurrent ? Self.callOrCurrent : Self.callNumber
        case Self.recordPart[...]:
            PathVariable(
                words: "The record's name",
                schema: ["type": "string", "pattern": .string("^[0-9A-Za-z_-]{1,\(ControlLimits.recordBytes)}$")]
            ) { ControlHistoryQuery.isRecord($0) }
        default: nil
        }
    }

    /// A call's number.
    static let callNumber = PathVariable(
        words: "The call's number", schema: ["type": "integer", "minimum": 1]
    ) { ControlOperation.number($0) != nil }

    private static let callOrCurrent = PathVariable(
        words: "The call's number, or `current` for the only call that the request fits",
        schema: ["anyOf": [["type": "integer", "minimum": 1], ["const": .string(currentCall)]]]
    ) { $0 == currentCall || ControlOperation.number($0) != nil }

    /// The parameters of the query with those that every request to the device has.
    var parameters: [Member] {
        switch work {
        case .request, .recording: query + [Self.account]
        case .events: query
        case .description: []
        }
    }

    private static let account = Member(
        name: "account", kind: .text(maximumBytes: ControlLimits.accountBytes),
        words: "The account that is meant, if the device has several")
}

extension ControlRoute {
    /// All routes.
    static let all: [ControlRoute] = reports + sound + calls + actions + conferences + queues + history + interface

    private static let reports: [ControlRoute] = [
        ControlRoute(
            method: .get, path: "/v1/status", name: "getStatus",
            words: "The device's state, with a cursor: events after it are newer than this state.",
            work: .request(.status), answer: .status),
        ControlRoute(
            method: .get, path: "/v1/accounts", name: "listAccounts", words: "The device's accounts.",
            work: .request(.status), answer: .accounts),
        ControlRoute(
            method: .post, path: "/v1/drain", name: "drain",
            words: "Refuses new calls as busy; existing calls continue.",
            work: .request(.drain), answer: .nothing, faults: [.wrongState]),
        ControlRoute(
            method: .post, path: "/v1/undrain", name: "undrain", words: "Takes new calls again.",
            work: .request(.undrain), answer: .nothing, faults: [.wrongState]),
    ]

    private static let sound: [ControlRoute] = [
        ControlRoute(
            method: .get, path: "/v1/sound", name: "getSound", words: "Mute and volume of the sound card.",
            work: .request(.status), answer: .sound, faults: [.noSoundCard]),
        ControlRoute(
            method: .post, path: "/v1/sound/mute", name: "mute", words: "Mutes the microphone.",
            work: .request(.mute), answer: .sound, faults: [.noSoundCard]),
        ControlRoute(
            method: .post, path: "/v1/sound/unmute", name: "unmute", words: "Unmutes the microphone.",
            work: .request(.unmute), answer: .sound, faults: [.noSoundCard]),
        ControlRoute(
            method: .post, path: "/v1/sound/volume", name: "setVolume", words: "Sets one volume or both.",
            work: .request(.volume), answer: .sound, faults: [.noSoundCard],
            body: [
                Member(name: "playback_db", kind: .decibels, words: "The loudspeaker, in dB"),
                Member(name: "microphone_db", kind: .decibels, words: "The microphone, in dB"),
            ], bodyRule: ["anyOf": [given("playback_db"), given("microphone_db")]]),
    ]

    private static let calls: [ControlRoute] = [
        ControlRoute(
            method: .get, path: "/v1/calls", name: "listCalls",
            words: "The calls, the oldest first; `next` is the `after` of the next page, if there is one.",
            work: .request(.calls), answer: .calls,
            query: [
                Member(name: "after", kind: .callNumber, words: "Calls with higher numbers only"),
                Member(
                    name: "limit", kind: .integer(1...Int64(ControlLimits.listedCalls)), words: "Calls in the answer"),
            ]),
        ControlRoute(
            method: .post, path: "/v1/calls", name: "placeCall",
            words: "Places a call. With an `Idempotency-Key`, a request that is sent again places no second one.",
            work: .request(.call), answer: .placed, faults: [.notConnected, .wrongState, .severalAccounts],
            body: [
                Member(
                    name: "to", kind: .text(maximumBytes: ControlLimits.nameBytes), isRequired: true,
                    words: "The user to call")
            ]),
        ControlRoute(
            method: .get, path: "/v1/calls/{call}", name: "getCall", words: "One call.",
            work: .request(.calls), answer: .call, faults: [.noSuchCall]),
    ]

    private static let actions: [ControlRoute] = [
        action(.answer, "answerCall", "Answers a call that rings.", takesCurrent: true),
        action(
            .reject, "rejectCall", "Declines a call that rings.",
            [Member(name: "busy", kind: .flag, words: "Whether the caller receives that the user is busy")],
            takesCurrent: true),
        action(.hangup, "hangUpCall", "Hangs up, cancels or declines.", takesCurrent: true),
        action(
            .dtmf, "pressKeys", "Presses telephone keys.",
            [Member(name: "keys", kind: .keys, isRequired: true, words: "0-9, *, #, A-D and ! (flash)")],
            takesCurrent: true),
        action(
            .play, "playFile", "Plays a file once, in place of the call's source.",
            [Member(name: "file", kind: .path, isRequired: true, words: "A path from the root: WAV or Ogg Opus")],
            faults: [.fileUnusable], takesCurrent: true),
        action(.stop, "stopFile", "Ends the file that is played.", takesCurrent: true),
        action(
            .record, "recordCall", "Begins to record the call, or ends the recording.", recordingMembers,
            faults: [.fileUnusable, .notConfigured], answer: .recording, rule: recordingRule, takesCurrent: true),
        action(
            .attach, "attachProgram", "The configured program, bot or flow takes part in the call.",
            faults: [.notConfigured], takesCurrent: true),
        action(.detach, "detachProgram", "The program, bot or flow leaves; the call continues.", takesCurrent: true),
        action(
            .bridge, "bridgeCall", "Joins the call to another one of its account: each hears the other.",
            [
                Member(name: "to_call", kind: .callNumber, isRequired: true, words: "The other call"),
                Member(
                    name: "goes_back", kind: .flag,
                    words: "Whether a call continues as before when the other ends; otherwise it is hung up"),
            ]),
        action(
            .unbridge, "unbridgeCall", "Parts the call from the other one; both continue as before.", takesCurrent: true
        ),
        action(
            .handover, "handOverCall", "Calls a person, and joins the two when the person accepts.",
            [
                Member(
                    name: "to", kind: .text(maximumBytes: ControlLimits.nameBytes), isRequired: true,
                    words: "The person, which `account.callees` must admit"),
                Member(
                    name: "whisper", kind: .text(maximumBytes: ControlLimits.whisperBytes),
                    words: "A text that the person hears when it answers"),
                Member(name: "whisper_file", kind: .path, words: "A file in place of the text: WAV or Ogg Opus"),
                Member(
                    name: "accept", kind: .acceptKey,
                    words: "The key with which the person accepts; without it, it is joined when the whisper has ended"),
                Member(
                    name: "music", kind: .music,
                    words: "What the caller hears meanwhile: a file, or `bot`; without it, `handover.music`"),
                Member(
                    name: "ring_seconds",
                    kind: .integer(
                        Int64(ControlLimits.ringSeconds.lowerBound)...Int64(ControlLimits.ringSeconds.upperBound)),
                    words: "How long the person rings; 30 without it"),
                Member(
                    name: "bot", kind: .choice(["leaves", "listens"]),
                    words: "Whether the program, bot or flow leaves with the join, or continues to hear the caller"),
            ], faults: [.notConfigured],
            rule: [
                "anyOf": [
                    ["properties": ["whisper": ["type": "null"]]], ["properties": ["whisper_file": ["type": "null"]]],
                ]
            ]),
        action(.cancelHandover, "cancelHandover", "Takes back a hand-over: the person stops ringing, or is hung up."),
        action(
            .park, "parkCall", "Parks the call in a slot, where it hears music until it is picked up.",
            [
                Member(name: "music", kind: .path, words: "The file that it hears; without it, `handover.music`"),
                Member(
                    name: "longest_s",
                    kind: .integer(
                        Int64(ControlLimits.parkedSeconds.lowerBound)...Int64(ControlLimits.parkedSeconds.upperBound)),
                    words: "After which time it is no longer parked; 120 without it"),
                Member(
                    name: "then", kind: .choice(["back", "end"]),
                    words: "Whether it then does what it did before, or is hung up"),
            ], takesCurrent: true),
        action(
            .pickup, "pickUpCall", "Joins the call to the one that is parked in a slot.",
            [
                Member(
                    name: "slot",
                    kind: .integer(Int64(ControlLimits.slots.lowerBound)...Int64(ControlLimits.slots.upperBound)),
                    isRequired: true, words: "The slot"),
                Member(
                    name: "goes_back", kind: .flag,
                    words: "Whether a call continues as before when the other ends; otherwise it is hung up"),
            ]),
        action(
            .card, "moveCard", "Gives the sound card to the call, and puts the other on hold.", faults: [.noSoundCard]),
        action(
            .transfer, "transferCall", "Asks the call's peer to call another user in this device's place.",
            [
                Member(
                    name: "to", kind: .text(maximumBytes: ControlLimits.nameBytes), isRequired: true,
                    words: "The user that the peer is to call"),
                Member(name: "to_call", kind: .callNumber, words: "The call with that user, for an attended transfer"),
            ]),
    ]

    private static let recordingMembers = [
        Member(name: "start", kind: .flag, isRequired: true, words: "true begins, false ends"),
        Member(
            name: "file", kind: .path,
            words: "With true: a path from the root that does not exist; without it the device chooses"),
    ]
    private static let recordingRule: [String: JSONValue] = [
        "anyOf": [
            ["properties": ["start": ["const": true]]],
            ["properties": ["start": ["const": false], "file": ["type": "null"]]],
        ]
    ]

    private static let conferences: [ControlRoute] = [
        ControlRoute(
            method: .get, path: "/v1/conferences", name: "listConferences",
            words: "The rooms in which calls meet, and their members.", work: .request(.conferences),
            answer: .conferences),
        action(.conferenceMute, "muteInConference", "The others in the call's room do not hear it."),
        action(.conferenceUnmute, "unmuteInConference", "The others in the call's room hear it again."),
        action(.conferenceRemove, "removeFromConference", "Hangs up a call that is in a room."),
        action(
            .conferenceRecord, "recordConference", "Begins to record the call's room, or ends that recording.",
            recordingMembers, faults: [.fileUnusable, .notConfigured], answer: .recording, rule: recordingRule),
    ]

    private static let queues: [ControlRoute] = [
        ControlRoute(
            method: .get, path: "/v1/queues", name: "listQueues",
            words: "The queues in which callers of flows wait, and their callers, the next one first.",
            work: .request(.queues), answer: .queues),
        action(
            .queueTake, "takeFromQueue", "Joins the call to the caller of a queue that has waited longest.",
            [
                Member(
                    name: "queue", kind: .text(maximumBytes: ControlLimits.nameBytes), isRequired: true,
                    words: "The queue"),
                Member(
                    name: "goes_back", kind: .flag,
                    words: "Whether the call continues as before when the caller hangs up; otherwise it is hung up"),
            ]),
        action(.queueRemove, "removeFromQueue", "Takes a caller out of its queue; its flow continues."),
    ]

    private static let history: [ControlRoute] = [
        ControlRoute(
            method: .get, path: "/v1/history", name: "listHistory",
            words:
                "Records of calls that ended, the newest first; `next` is the `before` of the next page, if there is one.",
            work: .request(.history), answer: .history, faults: [.notConfigured],
            query: [
                Member(
                    name: "search", kind: .text(maximumBytes: ControlLimits.nameBytes),
                    words: "A part of the record's name, of the invite or of the other side's name"),
                Member(
                    name: "outcome", kind: .text(maximumBytes: ControlLimits.nameBytes),
                    words: "Why the calls ended, such as `completed`, `busy` or `noAnswer`"),
                Member(
                    name: "findings", kind: .flag,
                    words: "true: calls in which something went wrong only; false: the others only"),
                Member(name: "from_ms", kind: .integer(ControlLimits.times), words: "Ended then or later, since 1970"),
                Member(name: "to_ms", kind: .integer(ControlLimits.times), words: "Ended before, since 1970"),
                Member(
                    name: "before", kind: .text(maximumBytes: ControlHistoryQuery.cursorBytes),
                    words: "The `next` of the page before"),
                Member(
                    name: "limit", kind: .integer(1...Int64(ControlLimits.listedRecords)),
                    words: "Records in the answer"),
            ]),
        ControlRoute(
            method: .get, path: "/v1/history/{record}", name: "getRecord",
            words:
                "One record, with what went wrong in the call as `handset explain` says it, and the figures of its media.",
            work: .request(.history), answer: .record, faults: [.noSuchCall, .notConfigured]),
        ControlRoute(
            method: .get, path: "/v1/history/{record}/recording", name: "getRecording",
            words: "The sound of a recorded call, or the part of it that the field `Range` selects.",
            work: .recording, answer: .file,
            faults: [.noSuchCall, .noSuchRecording, .notConfigured, .rangeNotSatisfiable],
            query: [
                Member(
                    name: "number", kind: .integer(1...Int64(ControlRecordingQuery.most)),
                    words: "Which of the record's recordings; 1 without it")
            ]),
    ]

    private static let interface: [ControlRoute] = [
        ControlRoute(
            method: .get, path: "/v1/events", name: "streamEvents",
            words: "Events as server-sent events. Without a cursor the stream begins now.",
            work: .events, answer: .events, faults: [.noSuchAccount],
            query: [
                Member(
                    name: "after", kind: .cursor,
                    words: "Begin after this cursor, or with `oldest`; `Last-Event-ID` has precedence"),
                Member(name: "levels", kind: .flag, words: "true: levels of the sound card, too, five times a second"),
                account,
            ]),
        ControlRoute(
            method: .get, path: "/v1/openapi.json", name: "getDescription", words: "This description.",
            work: .description, answer: .description),
    ]

    private static func action(
        _ request: ControlRequest.Name, _ name: String, _ words: String, _ body: [Member] = [],
        faults: [ControlFault.Code] = [], answer: Answer = .done, rule: [String: JSONValue] = [:],
        takesCurrent: Bool = false
    ) -> ControlRoute {
        ControlRoute(
            method: .post, path: "/v1/calls/{call}/\(request.rawValue)", name: name, words: words,
            work: .request(request), answer: answer,
            faults: [.noSuchCall, .wrongState] + (takesCurrent ? [.severalCalls] : []) + faults, body: body,
            bodyRule: rule, takesCurrent: takesCurrent)
    }

    /// A schema of bodies in which a number is given, and not null.
    private static func given(_ name: String) -> JSONValue {
        ["required": [.string(name)], "properties": .object([name: ["type": "number"]])]
    }
}
