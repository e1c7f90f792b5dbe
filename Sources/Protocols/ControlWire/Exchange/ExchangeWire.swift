/// What an exchange answers its operator: JSON objects whose members have the names of docs/exchange-control.md.
public enum ExchangeWire {
    /// The state of an exchange.
    public struct Status: Codable, Hashable, Sendable {
        /// The program's.
        public var version: String
        /// Of the process.
        public var pid: Int
        /// Since the exchange began to serve, in seconds.
        public var uptime: Double
        /// Where clients find it.
        public var url: String
        /// What keeps it from serving its clients, as sentences; empty if it serves them.
        public var obstacles: [String]
        /// Users with an account.
        public var users: Int
        /// Sessions with a connection.
        public var sessions: Int
        /// Open invites.
        public var invites: Int
        /// Running calls.
        public var calls: Int
        /// Streams over WHIP and WHEP.
        public var streams: Int
        /// What it has counted since it began, by name.
        public var counters: [String: Int]
        /// The history of events.
        public var events: ControlEventsState

        /// Makes a state.
        public init(
            version: String, pid: Int, uptime: Double, url: String, obstacles: [String], users: Int, sessions: Int,
            invites: Int, calls: Int, streams: Int, counters: [String: Int], events: ControlEventsState
        ) {
            (self.version, self.pid, self.uptime, self.url) = (version, pid, uptime, url)
            (self.obstacles, self.users, self.sessions, self.invites) = (obstacles, users, sessions, invites)
            (self.calls, self.streams, self.counters, self.events) = (calls, streams, counters, events)
        }

        private enum CodingKeys: String, CodingKey {
            case version, pid, url, obstacles, users, sessions, invites, calls, streams, counters, events
            case uptime = "uptime_s"
        }
    }

    /// A user with an account.
    public struct User: Codable, Hashable, Sendable {
        /// Its id.
        public var user: String
        /// Ids by which it can be called, besides its own.
        public var publicIDs: [String]
        /// Its devices that have a session.
        public var devices: [Device]

        /// Makes a user.
        public init(user: String, publicIDs: [String], devices: [Device]) {
            (self.user, self.publicIDs, self.devices) = (user, publicIDs, devices)
        }

        private enum CodingKeys: String, CodingKey {
            case user, devices
            case publicIDs = "public_ids"
        }
    }

    /// A device with a session.
    public struct Device: Codable, Hashable, Sendable {
        /// Its id.
        public var device: String
        /// What it calls itself.
        public var name: String
        /// Whether it has a connection; else it may resume its session.
        public var connected: Bool
        /// Whether it receives invites.
        public var registered: Bool
        /// Whether it is a stream over WHIP or WHEP.
        public var stream: Bool

        /// Makes a device.
        public init(device: String, name: String, connected: Bool, registered: Bool, stream: Bool) {
            (self.device, self.name, self.connected) = (device, name, connected)
            (self.registered, self.stream) = (registered, stream)
        }
    }

    /// An open invite.
    public struct Invite: Codable, Hashable, Sendable {
        /// Its id.
        public var invite: String
        /// Who sent it.
        public var from: String
        /// With which device.
        public var device: String
        /// Those who were invited.
        public var to: [String]
        /// Those of them who have not answered.
        public var pending: [String]
        /// The group that was invited, if it was one.
        public var group: String?
        /// Since it was sent, in milliseconds.
        public var age: Int
        /// Until it times out, in milliseconds; nil if it does not.
        public var remaining: Int?

        /// Makes an invite.
        public init(
            invite: String, from: String, device: String, to: [String], pending: [String], group: String?, age: Int,
            remaining: Int?
        ) {
            (self.invite, self.from, self.device, self.to) = (invite, from, device, to)
            (self.pending, self.group, self.age, self.remaining) = (pending, group, age, remaining)
        }

        private enum CodingKeys: String, CodingKey {
            case invite, from, device, to, pending, group
            case age = "age_ms"
            case remaining = "remaining_ms"
        }
    }

    /// A running call.
    public struct Call: Codable, Hashable, Sendable {
        /// The id of its invite.
        public var invite: String
        /// Who called.
        public var from: String
        /// With which device.
        public var fromDevice: String
        /// Who accepted.
        public var with: String
        /// With which device.
        public var withDevice: String
        /// Since it was accepted, in milliseconds.
        public var duration: Int

        /// Makes a call.
        public init(
            invite: String, from: String, fromDevice: String, with: String, withDevice: String, duration: Int
        ) {
            (self.invite, self.from, self.fromDevice) = (invite, from, fromDevice)
            (self.with, self.withDevice, self.duration) = (with, withDevice, duration)
        }

        private enum CodingKeys: String, CodingKey {
            case invite, from, with
            case fromDevice = "from_device"
            case withDevice = "with_device"
            case duration = "duration_ms"
        }
    }

    /// A room with members.
    public struct Room: Codable, Hashable, Sendable {
        /// Its name.
        public var room: String
        /// Those in it, in the order of joining.
        public var members: [Member]

        /// Makes a room.
        public init(room: String, members: [Member]) { (self.room, self.members) = (room, members) }
    }

    /// A member of a room.
    public struct Member: Codable, Hashable, Sendable {
        /// The user, guest or visitor.
        public var user: String
        /// With which device.
        public var device: String
        /// The name of its connection, as the others in the room know it.
        public var connection: String
        /// What its token says that it may do.
        public var role: String?

        /// Makes a member.
        public init(user: String, device: String, connection: String, role: String?) {
            (self.user, self.device, self.connection, self.role) = (user, device, connection, role)
        }
    }

    /// A group.
    public struct Group: Codable, Hashable, Sendable {
        /// Its id.
        public var group: String
        /// For people.
        public var name: String?
        /// Its owner.
        public var owner: String
        /// Its members, the owner first.
        public var members: [String]

        /// Makes a group.
        public init(group: String, name: String?, owner: String, members: [String]) {
            (self.group, self.name, self.owner, self.members) = (group, name, owner, members)
        }
    }

    /// A page of a list.
    public struct Page<Entry: Codable & Hashable & Sendable>: Hashable, Sendable {
        /// The entries.
        public var entries: [Entry]
        /// The `after` of the next page; nil at the end. A page may have a next one and no entry.
        public var next: String?

        /// Makes a page.
        public init(_ entries: [Entry], next: String?) { (self.entries, self.next) = (entries, next) }
    }

    /// What a request has done.
    public struct Done: Codable, Hashable, Sendable {
        /// How many sessions, invitees, calls or memberships it has ended.
        public var ended: Int

        /// Makes an answer.
        public init(ended: Int) { self.ended = ended }
    }

    /// What a request to move has done.
    public struct Asked: Codable, Hashable, Sendable {
        /// How many devices were asked.
        public var asked: Int

        /// Makes an answer.
        public init(asked: Int) { self.asked = asked }
    }
}

/// An entry of a list; the page has its entries under ``listName``.
public protocol ExchangeListEntry {
    /// The member of a page.
    static var listName: String { get }
}

extension ExchangeWire.User: ExchangeListEntry {
    /// `users`
    public static var listName: String { "users" }
}
extension ExchangeWire.Invite: ExchangeListEntry {
    /// `invites`
    public static var listName: String { "invites" }
}
extension ExchangeWire.Call: ExchangeListEntry {
    /// `calls`
    public static var listName: String { "calls" }
}
extension ExchangeWire.Room: ExchangeListEntry {
    /// `rooms`
    public static var listName: String { "rooms" }
}
extension ExchangeWire.Group: ExchangeListEntry {
    /// `groups`
    public static var listName: String { "groups" }
}

extension ExchangeWire.Page: Codable where Entry: ExchangeListEntry {
    private struct Key: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }
        init(_ name: String) { stringValue = name }
        init?(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    /// Reads a page.
    public init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: Key.self)
        entries = try members.decode([Entry].self, forKey: Key(Entry.listName))
        next = try members.decodeIfPresent(String.self, forKey: Key("next"))
    }

    /// Writes a page.
    public func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: Key.self)
        try members.encode(entries, forKey: Key(Entry.listName))
        try members.encodeIfPresent(next, forKey: Key("next"))
    }
}

/// What happened at an exchange. It has ids and names, and nothing that users have sent each other.
public struct ExchangeHappening: Encodable, Hashable, Sendable {
    /// What kind of event it is.
    public enum Kind: String, CaseIterable, Sendable {
        /// A session began or was resumed.
        case login
        /// A session ended: its device, its user or the operator ended it.
        case logout
        /// A session lost its connection, and may be resumed.
        case connectionLost = "connection_lost"
        /// A login ended, with its sessions.
        case loginEnded = "login_ended"
        /// An invite was sent.
        case invite
        /// An invite ended without an answer, or a user rejected it.
        case inviteEnded = "invite_ended"
        /// A user accepted an invite.
        case callStarted = "call_started"
        /// A call ended.
        case callEnded = "call_ended"
        /// The operator took a user out of a room or a group.
        case removed
        /// The operator asked a device to connect again.
        case moveRequested = "move_requested"
        /// Events were lost, because the interface did not keep up.
        case eventsLost = "events_lost"
    }

    /// What kind of event it is.
    public var kind: Kind
    /// Whose session or answer it is.
    public var user: String?
    /// The device.
    public var device: String?
    /// Whether a session was resumed.
    public var resumed: Bool?
    /// The room from which a user was taken.
    public var room: String?
    /// The group from which a user was taken.
    public var group: String?
    /// The invite, or the call's.
    public var invite: String?
    /// Who sent the invite.
    public var from: String?
    /// Who was invited.
    public var to: [String]?
    /// The parties of a call, the caller first.
    public var users: [String]?
    /// Why it ended.
    public var reason: String?
    /// How long the call was, in milliseconds.
    public var duration: Int64?
    /// How many events were lost.
    public var count: Int?

    /// Makes an event.
    public init(_ kind: Kind) { self.kind = kind }

    /// Writes it as one line of JSON.
    ///
    /// - Parameter milliseconds: When it happened, since 1970.
    public func line(atMilliseconds milliseconds: Int64) -> [UInt8] {
        ControlCoding.line(Timed(event: self, milliseconds: milliseconds))
    }

    /// Writes its members.
    public func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: Key.self)
        try members.encode(kind.rawValue, forKey: .event)
        try members.encodeIfPresent(user, forKey: .user)
        try members.encodeIfPresent(device, forKey: .device)
        try members.encodeIfPresent(resumed, forKey: .resumed)
        try members.encodeIfPresent(room, forKey: .room)
        try members.encodeIfPresent(group, forKey: .group)
        try members.encodeIfPresent(invite, forKey: .invite)
        try members.encodeIfPresent(from, forKey: .from)
        try members.encodeIfPresent(to, forKey: .to)
        try members.encodeIfPresent(users, forKey: .users)
        try members.encodeIfPresent(reason, forKey: .reason)
        try members.encodeIfPresent(duration, forKey: .duration)
        try members.encodeIfPresent(count, forKey: .count)
    }

    private enum Key: String, CodingKey {
        case event, user, device, resumed, room, group, invite, from, to, users, reason, count
        case duration = "duration_ms"
        case milliseconds = "at_ms"
    }

    private struct Timed: Encodable {
        let event: ExchangeHappening
        let milliseconds: Int64

        func encode(to encoder: any Encoder) throws {
            try event.encode(to: encoder)
            var members = encoder.container(keyedBy: Key.self)
            try members.encode(milliseconds, forKey: .milliseconds)
        }
    }
}
