/// What a trunk answers its operator: JSON objects whose members have the names of docs/trunk-control.md.
public enum TrunkWire {
    /// The state of a trunk.
    public struct Status: Codable, Hashable, Sendable {
        /// The program's.
        public var version: String
        /// Of the process.
        public var pid: Int
        /// Since the trunk listens, in seconds.
        public var uptime: Double
        /// Whether it refuses new calls, on request or because it is about to end.
        public var draining: Bool
        /// Calls that it carries.
        public var callCount: Int
        /// Calls that it carries at most.
        public var mostCalls: Int
        /// What keeps it from carrying calls, as sentences; empty if it does.
        public var obstacles: [String]
        /// Its accounts: at the exchange, and in the network.
        public var accounts: [Account]
        /// What it has counted since it began, by name.
        public var counters: [String: Int]
        /// The history of events.
        public var events: ControlEventsState

        /// Makes a state.
        public init(
            version: String, pid: Int, uptime: Double, draining: Bool, callCount: Int, mostCalls: Int,
            obstacles: [String], accounts: [Account], counters: [String: Int], events: ControlEventsState
        ) {
            (self.version, self.pid, self.uptime, self.draining) = (version, pid, uptime, draining)
            (self.callCount, self.mostCalls, self.obstacles) = (callCount, mostCalls, obstacles)
            (self.accounts, self.counters, self.events) = (accounts, counters, events)
        }

        private enum CodingKeys: String, CodingKey {
            case version, pid, draining, obstacles, accounts, counters, events
            case uptime = "uptime_s"
            case callCount = "call_count"
            case mostCalls = "max_calls"
        }
    }

    /// One of a trunk's two accounts.
    public struct Account: Codable, Hashable, Sendable {
        /// `exchange` or `network`.
        public var side: String
        /// `connecting`, `connected`, `reconnecting` or `disconnected`. In the network an account that is connected is registered.
        public var connection: String
        /// Its user there; nil before it has connected.
        public var user: String?
        /// The host of the exchange or SIP server, and its port if that is not the default.
        public var server: String
        /// Its calls; a call that the trunk carries is one of each account.
        public var callCount: Int

        /// Makes an account.
        public init(side: String, connection: String, user: String?, server: String, callCount: Int) {
            (self.side, self.connection, self.user) = (side, connection, user)
            (self.server, self.callCount) = (server, callCount)
        }

        private enum CodingKeys: String, CodingKey {
            case side, connection, user, server
            case callCount = "call_count"
        }
    }

    /// A call that a trunk carries, both halves together.
    public struct Call: Codable, Hashable, Sendable {
        /// How far it is.
        public enum State: String, Codable, CaseIterable, Sendable {
            /// The other half is being placed, or rings.
            case calling
            /// The callee has answered.
            case answered
            /// Both hear each other.
            case talking
            /// It is being ended.
            case ending
        }

        /// Its number, which no other call of this process has.
        public var call: UInt64
        /// The side that it came from: `exchange` or `network`.
        public var side: String
        /// Who calls: a user of the exchange, or what the network says.
        public var from: String
        /// What the caller calls itself.
        public var name: String?
        /// What was dialled.
        public var dialled: String
        /// The callee on the other side.
        public var to: String
        /// How far it is.
        public var state: State
        /// Since it came in, in milliseconds.
        public var age: Int
        /// Since both hear each other, in milliseconds.
        public var talk: Int?
        /// The number of the half at the exchange, as in the log.
        public var exchangeCall: UInt64?
        /// The number of the half in the network, as in the log.
        public var networkCall: UInt64?

        /// Makes a call that has just come in.
        public init(call: UInt64, side: String, from: String, dialled: String, to: String) {
            (self.call, self.side, self.from, self.dialled, self.to) = (call, side, from, dialled, to)
            (state, age) = (.calling, 0)
        }

        private enum CodingKeys: String, CodingKey {
            case call, side, from, name, dialled, to, state
            case age = "age_ms"
            case talk = "talk_ms"
            case exchangeCall = "exchange_call"
            case networkCall = "network_call"
        }
    }

    /// A page of the calls.
    public struct Calls: Codable, Hashable, Sendable {
        /// The calls.
        public var calls: [Call]
        /// The `after` of the next page; nil at the end.
        public var next: UInt64?

        /// Makes a page.
        public init(_ calls: [Call], next: UInt64?) { (self.calls, self.next) = (calls, next) }
    }

    /// The accounts.
    public struct Accounts: Codable, Hashable, Sendable {
        /// The accounts.
        public var accounts: [Account]

        /// Makes an answer.
        public init(_ accounts: [Account]) { self.accounts = accounts }
    }

    /// What a request was about.
    public struct Done: Codable, Hashable, Sendable {
        /// The call.
        public var call: UInt64

        /// Makes an answer.
        public init(call: UInt64) { self.call = call }
    }
}

/// What happened at a trunk.
public struct TrunkHappening: Codable, Hashable, Sendable {
    /// What kind of event it is.
    public enum Kind: String, Codable, CaseIterable, Sendable {
        /// An account's connection changed.
        case connection
        /// A call came in, and its other half is placed.
        case call
        /// A call came in, and was refused.
        case callRefused = "call_refused"
        /// The callee has answered.
        case callAnswered = "call_answered"
        /// Both hear each other.
        case callStarted = "call_started"
        /// The call ended.
        case callEnded = "call_ended"
        /// The trunk refuses new calls, or takes them again.
        case draining
    }

    /// What kind of event it is.
    public var kind: Kind
    /// The account's side, or that from which the call came.
    public var side: String?
    /// The connection's state.
    public var state: String?
    /// The call's number; a call that was refused has none.
    public var call: UInt64?
    /// Who calls.
    public var from: String?
    /// What was dialled.
    public var dialled: String?
    /// The callee on the other side.
    public var to: String?
    /// Why it ended, or was refused.
    public var reason: String?
    /// Who ended it: `exchange`, `network` or `operator`.
    public var endedBy: String?
    /// How long both heard each other, in milliseconds; nil if they did not.
    public var talk: Int?
    /// Whether new calls are refused.
    public var draining: Bool?

    /// Makes an event.
    public init(_ kind: Kind) { self.kind = kind }

    /// Writes it as one line of JSON.
    ///
    /// - Parameter milliseconds: When it happened, since 1970.
    public func line(atMilliseconds milliseconds: Int64) -> [UInt8] {
        ControlCoding.line(Timed(event: self, milliseconds: milliseconds))
    }

    private enum CodingKeys: String, CodingKey {
        case side, state, call, from, dialled, to, reason, draining
        case kind = "event"
        case endedBy = "ended_by"
        case talk = "talk_ms"
    }

    private struct Timed: Encodable {
        let event: TrunkHappening
        let milliseconds: Int64

        private enum Key: String, CodingKey { case milliseconds = "at_ms" }

        func encode(to encoder: any Encoder) throws {
            try event.encode(to: encoder)
            var members = encoder.container(keyedBy: Key.self)
            try members.encode(milliseconds, forKey: .milliseconds)
        }
    }
}
