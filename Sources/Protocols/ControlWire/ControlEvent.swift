/// An event that clients with `watch` receive.
public enum ControlEvent: Hashable, Sendable {
    /// The connection to the service: `connected`, `reconnecting` or `disconnected`.
    case connection(String)
    /// The id by which the remote party and the service know the call.
    case identified(call: UInt64, invite: String)
    /// A call comes in.
    case incoming(call: UInt64, from: String)
    /// A client has started an outgoing call.
    case calling(call: UInt64, to: String)
    /// The call was answered.
    case answered(call: UInt64)
    /// The call can carry media; its duration begins. The time counts from the invite.
    case established(call: UInt64, establishedMilliseconds: Double)
    /// Media flows in both directions. Both times count from the invite.
    case media(call: UInt64, setUpMilliseconds: Double, establishedMilliseconds: Double)
    /// The call ended.
    case ended(call: UInt64, End)
    /// The peer pressed a telephone key.
    case digit(call: UInt64, key: String)
    /// The caller has begun to speak to the call's program, or has ended: `begin` or `end`. From the beginning of the call's
    /// sound.
    case speech(call: UInt64, String, positionMilliseconds: Double)
    /// The caller's speech stopped the call's program after this much of it was played.
    case interrupted(call: UInt64, playedMilliseconds: Double)
    /// The time from the end of the caller's speech to the first sound of the program's answer that was sent.
    case response(call: UInt64, afterMilliseconds: Double)
    /// The file that the call plays has ended.
    case playbackEnded(call: UInt64)
    /// A file is played instead of the call's source, or has ended.
    case play(call: UInt64, File)
    /// The call, or the room that it is in, is being recorded, or such a recording has ended.
    case recording(call: UInt64, File)
    /// A caller has left a message; without a call, an earlier process has left it unfinished.
    case voicemail(call: UInt64?, Voicemail)
    /// A program or bot joined an established call.
    case attached(call: UInt64)
    /// The program or bot left the call, which continues.
    case detached(call: UInt64)
    /// A transfer: requested by the call's peer (`requested`, or `refused` if this device does not carry it out), or
    /// its progress: `trying`, `ringing`, `accepted`, `failed`.
    case transfer(call: UInt64, state: String, to: String)
    /// A step of the hand-over of the call to a person.
    case handover(call: UInt64, Handover)
    /// The call was parked in this slot, or is no longer: `parked`, `picked_up`, `back`, `expired`, `gone`.
    case park(call: UInt64, state: String, slot: Int)
    /// The call waits in a queue, at this place from 1.
    case queued(call: UInt64, queue: String, position: Int)
    /// The call has left its queue: `bridged`, `hangup` and the other results of TwiML.
    case leftQueue(call: UInt64, queue: String, result: String, waitedSeconds: Double)
    /// The call sends no more, for this reason; nil: it sends again.
    case sending(call: UInt64, stopped: String?)
    /// Mute or volume were changed by a client.
    case sound(ControlSound)
    /// The card: `running`, `unavailable`, `lost` and the like.
    case card(String)
    /// The device spends less effort on encoding, or refuses calls, because it is busy; or it has stopped doing so.
    case load(ControlLoad)
    /// The levels on the meters; nil: no call uses the card any more.
    case levels(ControlLevels?)
    /// Something that only newer programs know.
    case unknown(String)

    /// An event of a file.
    public struct File: Codable, Hashable, Sendable {
        /// `started`, `failed` or `ended`.
        public var state: String
        /// Its path.
        public var path: String
        /// Why it ended.
        public var reason: String?
        /// Seconds of sound in a recording that ended.
        public var durationSeconds: Double?
        /// Seconds that are missing at its end, after a failure.
        public var missedSeconds: Double?
        /// The error, if there was one.
        public var error: String?
        /// The room that is recorded; nil if that is the call.
        public var room: String?

        enum CodingKeys: String, CodingKey {
            case state, path, reason, error, room
            case durationSeconds = "duration_s"
            case missedSeconds = "missed_s"
        }

        /// Makes one.
        public init(state: String, path: String, reason: String? = nil) {
            self.state = state
            self.path = path
            self.reason = reason
        }
    }

    /// A message that a caller has left.
    public struct Voicemail: Codable, Hashable, Sendable {
        /// Names it in its mailbox.
        public var id: String
        /// Who has called: a user, or a telephone number.
        public var caller: String
        /// What the caller calls itself, if it does.
        public var name: String?
        /// Who was called.
        public var called: String?
        /// When the call came, in UTC (RFC 3339).
        public var received: String
        /// Seconds of sound.
        public var durationSeconds: Double
        /// The path of its sound.
        public var path: String
        /// Whether its end is missing, after a failure.
        public var isCut: Bool?

        enum CodingKeys: String, CodingKey {
            case id, caller, name, called, received, path
            case durationSeconds = "duration_s"
            case isCut = "cut"
        }

        /// Makes one.
        public init(id: String, caller: String, received: String, durationSeconds: Double, path: String) {
            self.id = id
            self.caller = caller
            self.received = received
            self.durationSeconds = durationSeconds
            self.path = path
        }
    }

    /// A step of a hand-over.
    public struct Handover: Codable, Hashable, Sendable {
        /// `asked`, `ringing`, `whispering`, `accepted`, `joined`; at the end `refused`, `busy`, `no_answer`, `gone`, `failed`,
        /// `cancelled` or `ended`.
        public var state: String
        /// The person.
        public var to: String
        /// The call with the person, once there is one.
        public var toCall: UInt64?
        /// Why it has ended, in words.
        public var reason: String?

        enum CodingKeys: String, CodingKey {
            case state, to, reason
            case toCall = "to_call"
        }

        /// Makes one.
        public init(state: String, to: String, toCall: UInt64? = nil, reason: String? = nil) {
            self.state = state
            self.to = to
            self.toCall = toCall
            self.reason = reason
        }
    }

    /// How a call ended.
    public struct End: Codable, Hashable, Sendable {
        /// The other side.
        public var peer: String
        /// One of the contract's reasons (CALL-5).
        public var reason: String
        /// `local`, `remote` or `neither`.
        public var endedBy: String
        /// Seconds for which the call was established.
        public var durationSeconds: Double
        /// Why the device hung up, if it did.
        public var hangUpCause: String?
        /// By what the other end and the service know the call, if it came so far.
        public var invite: String?

        enum CodingKeys: String, CodingKey {
            case peer, reason, invite
            case hangUpCause = "hung_up_because"
            case endedBy = "ended_by"
            case durationSeconds = "duration_s"
        }

        /// Makes an end.
        public init(
            peer: String, reason: String, endedBy: String, durationSeconds: Double, hangUpCause: String? = nil,
            invite: String? = nil
        ) {
            self.invite = invite
            self.hangUpCause = hangUpCause
            self.peer = peer
            self.reason = reason
            self.endedBy = endedBy
            self.durationSeconds = durationSeconds
        }
    }
}

extension ControlEvent: Codable {
    private enum Key: String, CodingKey {
        case event, state, call, invite, from, to, key, stopped, slot, queue, result
        case setUp = "setup_ms"
        case established = "established_ms"
        case waited = "waited_s"
        case position = "position_ms"
        case place = "position"
        case played = "played_ms"
        case after = "after_ms"
    }

    /// Reads the line of an event.
    public init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: Key.self)
        func text(_ key: Key) throws -> String { try members.decode(String.self, forKey: key) }
        func call() throws -> UInt64 { try members.decode(UInt64.self, forKey: .call) }
        switch try text(.event) {
        case "connection": self = .connection(try text(.state))
        case "identified": self = .identified(call: try call(), invite: try text(.invite))
        case "incoming": self = .incoming(call: try call(), from: try text(.from))
        case "calling": self = .calling(call: try call(), to: try text(.to))
        case "answered": self = .answered(call: try call())
        case "established":
            self = .established(
                call: try call(), establishedMilliseconds: try members.decode(Double.self, forKey: .established))
        case "media":
            self = .media(
                call: try call(), setUpMilliseconds: try members.decode(Double.self, forKey: .setUp),
                establishedMilliseconds: try members.decode(Double.self, forKey: .established))
        case "ended": self = .ended(call: try call(), try End(from: decoder))
        case "digit": self = .digit(call: try call(), key: try text(.key))
        case "speech":
            self = .speech(
                call: try call(), try text(.state),
                positionMilliseconds: try members.decode(Double.self, forKey: .position))
        case "interrupted":
            self = .interrupted(
                call: try call(), playedMilliseconds: try members.decode(Double.self, forKey: .played))
        case "response":
            self = .response(call: try call(), afterMilliseconds: try members.decode(Double.self, forKey: .after))
        case "playback_ended": self = .playbackEnded(call: try call())
        case "play": self = .play(call: try call(), try File(from: decoder))
        case "recording": self = .recording(call: try call(), try File(from: decoder))
        case "voicemail":
            self = .voicemail(
                call: try members.decodeIfPresent(UInt64.self, forKey: .call), try Voicemail(from: decoder))
        case "attached": self = .attached(call: try call())
        case "detached": self = .detached(call: try call())
        case "transfer": self = .transfer(call: try call(), state: try text(.state), to: try text(.to))
        case "handover": self = .handover(call: try call(), try Handover(from: decoder))
        case "park":
            self = .park(
                call: try call(), state: try text(.state), slot: try members.decode(Int.self, forKey: .slot))
        case "queued":
            self = .queued(
                call: try call(), queue: try text(.queue), position: try members.decode(Int.self, forKey: .place))
        case "left_queue":
            self = .leftQueue(
                call: try call(), queue: try text(.queue), result: try text(.result),
                waitedSeconds: try members.decode(Double.self, forKey: .waited))
        case "sending":
            self = .sending(call: try call(), stopped: try members.decodeIfPresent(String.self, forKey: .stopped))
        case "sound": self = .sound(try ControlSound(from: decoder))
        case "card": self = .card(try text(.state))
        case "load": self = .load(try ControlLoad(from: decoder))
        case "levels": self = .levels(try? ControlLevels(from: decoder))
        case let other: self = .unknown(other)
        }
    }

    /// Writes the line of an event.
    public func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: Key.self)
        func name(_ event: String, call: UInt64? = nil) throws {
            try members.encode(event, forKey: .event)
            try members.encodeIfPresent(call, forKey: .call)
        }
        switch self {
        case .connection(let state):
            try name("connection")
            try members.encode(state, forKey: .state)
        case .identified(let call, let invite):
            try name("identified", call: call)
            try members.encode(invite, forKey: .invite)
        case .incoming(let call, let user):
            try name("incoming", call: call)
            try members.encode(user, forKey: .from)
        case .calling(let call, let user):
            try name("calling", call: call)
            try members.encode(user, forKey: .to)
        case .answered(let call): try name("answered", call: call)
        case .established(let call, let milliseconds):
            try name("established", call: call)
            try members.encode(milliseconds, forKey: .established)
        case .media(let call, let milliseconds, let established):
            try name("media", call: call)
            try members.encode(milliseconds, forKey: .setUp)
            try members.encode(established, forKey: .established)
        case .ended(let call, let end):
            try name("ended", call: call)
            try end.encode(to: encoder)
        case .digit(let call, let key):
            try name("digit", call: call)
            try members.encode(key, forKey: .key)
        case .speech(let call, let state, let at):
            try name("speech", call: call)
            try members.encode(state, forKey: .state)
            try members.encode(at, forKey: .position)
        case .interrupted(let call, let played):
            try name("interrupted", call: call)
            try members.encode(played, forKey: .played)
        case .response(let call, let time):
            try name("response", call: call)
            try members.encode(time, forKey: .after)
        case .playbackEnded(let call): try name("playback_ended", call: call)
        case .play(let call, let file):
            try name("play", call: call)
            try file.encode(to: encoder)
        case .recording(let call, let file):
            try name("recording", call: call)
            try file.encode(to: encoder)
        case .voicemail(let call, let message):
            try name("voicemail", call: call)
            try message.encode(to: encoder)
        case .attached(let call): try name("attached", call: call)
        case .detached(let call): try name("detached", call: call)
        case .transfer(let call, let state, let target):
            try name("transfer", call: call)
            try members.encode(state, forKey: .state)
            try members.encode(target, forKey: .to)
        case .handover(let call, let step):
            try name("handover", call: call)
            try step.encode(to: encoder)
        case .park(let call, let state, let slot):
            try name("park", call: call)
            try members.encode(state, forKey: .state)
            try members.encode(slot, forKey: .slot)
        case .queued(let call, let queue, let position):
            try name("queued", call: call)
            try members.encode(queue, forKey: .queue)
            try members.encode(position, forKey: .place)
        case .leftQueue(let call, let queue, let result, let time):
            try name("left_queue", call: call)
            try members.encode(queue, forKey: .queue)
            try members.encode(result, forKey: .result)
            try members.encode(time, forKey: .waited)
        case .sending(let call, let reason):
            try name("sending", call: call)
            try members.encodeIfPresent(reason, forKey: .stopped)
        case .sound(let sound):
            try name("sound")
            try sound.encode(to: encoder)
        case .card(let state):
            try name("card")
            try members.encode(state, forKey: .state)
        case .load(let load):
            try name("load")
            try load.encode(to: encoder)
        case .levels(let levels):
            try name("levels")
            try levels?.encode(to: encoder)
        case .unknown(let event): try name(event)
        }
    }
}

/// Lines that wait to be sent to a client with `watch`; bounded.
///
/// Newer levels replace levels that wait, so a slow client gets only the latest. No other line is dropped: a client
/// with ``capacity`` waiting lines is too slow, and is disconnected.
public struct ControlEventBuffer: Sendable {
    /// Lines that may wait, besides levels.
    public static let capacity = 256

    private var lines: [[UInt8]] = []
    private var first = 0
    private var levels: [UInt8]?

    /// An empty buffer.
    public init() {}

    /// Adds a line.
    ///
    /// - Returns: False if there is no room for it: the client is too slow.
    public mutating func add(_ line: [UInt8]) -> Bool {
        guard lines.count - first < Self.capacity else { return false }
        lines.append(line)
        return true
    }

    /// Replaces the levels that wait.
    public mutating func setLevels(_ line: [UInt8]) { levels = line }

    /// The next line to send; nil if none waits. Levels, which report the present state, come after all other lines.
    public mutating func next() -> [UInt8]? {
        guard first < lines.count else {
            defer { levels = nil }
            return levels
        }
        let line = lines[first]
        first += 1
        if first == lines.count { (lines, first) = ([], 0) }
        // Lines that have been taken make room at the latest when they are as many as may wait.
        if first >= Self.capacity { (lines, first) = (Array(lines[first...]), 0) }
        return line
    }
}
