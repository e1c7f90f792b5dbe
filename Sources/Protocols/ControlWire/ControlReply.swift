public import JSON

/// The answer to one request. Each request gets one, in the order of the requests.
public struct ControlReply: Codable, Hashable, Sendable {
    /// The request's.
    public var id: JSONValue?
    /// Whether it was carried out.
    public var ok: Bool
    /// Why not.
    public var error: ControlFault?
    /// The call that it was about.
    public var call: UInt64?
    /// The account of that call, if it has a name.
    public var account: String?
    /// The file that is recorded to.
    public var file: String?
    /// The other call: that of the person after `handover`, the parked one after `pickup`, the caller after `queue_take`.
    public var toCall: UInt64?
    /// The slot of a call that is parked.
    public var slot: Int?
    /// Mute and volume, after a request that changes them.
    public var sound: ControlSound?
    /// The answer to `status` and `watch`.
    public var status: ControlStatus?
    /// The answer to `conferences`.
    public var conferences: [ControlConference]?
    /// The answer to `queues`.
    public var queues: [ControlQueue]?
    /// The answer to `calls`.
    public var calls: [ControlCall]?
    /// Whether there are further calls after these.
    public var more: Bool?
    /// The answer to `history`.
    public var history: [ControlRecord]?
    /// The `before` of the next page of the history; nil if there is none.
    public var next: String?

    enum CodingKeys: String, CodingKey {
        case id, ok, error, call, account, file, slot, sound, status, conferences, queues, calls, more, history, next
        case toCall = "to_call"
    }

    /// Says that a request was carried out.
    public init(
        id: JSONValue? = nil, call: UInt64? = nil, account: String? = nil, file: String? = nil,
        sound: ControlSound? = nil, status: ControlStatus? = nil
    ) {
        self.id = id
        self.call = call
        self.account = account
        self.file = file
        self.sound = sound
        self.status = status
        ok = true
    }

    /// Says why a request was not carried out.
    public init(id: JSONValue?, _ fault: ControlFault) {
        self.id = id
        error = fault
        ok = false
    }
}

/// A room in which calls meet.
public struct ControlConference: Codable, Hashable, Sendable {
    /// A call in it.
    public struct Member: Codable, Hashable, Sendable {
        /// The call's number.
        public var call: UInt64
        /// The other side; nil if the call has just ended.
        public var peer: String?
        /// Whether the others hear it.
        public var speaks: Bool
        /// Whether it is muted.
        public var muted: Bool

        /// Describes a member.
        public init(call: UInt64, peer: String?, speaks: Bool, muted: Bool) {
            self.call = call
            self.peer = peer
            self.speaks = speaks
            self.muted = muted
        }
    }

    /// The room's name.
    public var room: String
    /// The file that it is recorded to; nil if it is not.
    public var file: String?
    /// Its members.
    public var members: [Member]

    /// Describes a room.
    public init(room: String, members: [Member]) {
        self.room = room
        self.members = members
    }
}

/// A queue in which callers of flows wait.
public struct ControlQueue: Codable, Hashable, Sendable {
    /// A caller in it.
    public struct Caller: Codable, Hashable, Sendable {
        /// The call's number.
        public var call: UInt64
        /// The other side; nil if the call has just ended.
        public var peer: String?
        /// For how many seconds it waits.
        public var waitedSeconds: Double

        enum CodingKeys: String, CodingKey {
            case call, peer
            case waitedSeconds = "waited_s"
        }

        /// Describes a caller.
        public init(call: UInt64, peer: String?, waitedSeconds: Double) {
            self.call = call
            self.peer = peer
            self.waitedSeconds = waitedSeconds
        }
    }

    /// The queue's name.
    public var queue: String
    /// The account of its callers, if that has a name.
    public var account: String?
    /// Its callers, the next one first.
    public var callers: [Caller]

    /// Describes a queue.
    public init(queue: String, account: String?, callers: [Caller]) {
        self.queue = queue
        self.account = account
        self.callers = callers
    }
}
