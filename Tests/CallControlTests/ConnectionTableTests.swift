@testable import CallControl
import Testing
import Core

@Suite("ConnectionMachine, every state and input")
struct ConnectionTableTests {
    private static let fetching = ConnectionMachine(seed: 1).after(.connect)
    private static let opening = fetching.after(.link(.resourcesFetched(someResources), attempt: 1))
    private static let starting = opening.after(.link(.socketOpened, attempt: 1))
    private static let waiting = fetching.after(.link(.resourcesFailed(passingFailure), attempt: 1))
    private static let connected = ConnectionMachine.standing()
    private static let pinged = connected.after(.timerFired, at: Instant.zero.advanced(by: .seconds(25)))
    private static let dropped = connected.after(.link(.socketClosed(code: nil), attempt: 1))

    private static let leaving = connected.after(.move(to: nil))
    private static let leavingOpen = leaving.after(.link(.resourcesFetched(someResources), attempt: 2))
    private static let arriving = leavingOpen.after(.link(.socketOpened, attempt: 2))
    private static var resumedGrant: SessionGrant {
        var grant = someGrant
        grant.isResumed = true
        return grant
    }

    private static let states: [NamedState<ConnectionMachine>] = [
        NamedState("notConnected", ConnectionMachine(seed: 1)),
        NamedState("connecting.fetching", fetching),
        NamedState("connecting.opening", opening),
        NamedState("connecting.starting", starting),
        NamedState("connecting.waiting", waiting),
        NamedState("connected", connected),
        NamedState("connected.pinged", pinged),
        NamedState("reconnecting.waiting", dropped),
        NamedState("moving.fetching", leaving),
        NamedState("moving.opening", leavingOpen),
        NamedState("moving.starting", arriving),
        NamedState("moving.starting.replaced", arriving.after(.link(.socketClosed(code: 1008), attempt: 1))),
        NamedState("disconnecting", connected.after(.disconnect)),
        NamedState("disconnecting.thenConnects", connected.after(.disconnect, .connect)),
        NamedState("failed", fetching.after(.link(.resourcesFailed(fatalFailure), attempt: 1))),
    ]

    /// Everything that can be said about attempt 1, about the next one, about one given up, and by the application.
    private static let inputs: [(name: String, input: ConnectionMachine.Input)] = [
        ("connect", .connect),
        ("disconnect", .disconnect),
        ("giveUp", .giveUp(fatalFailure.error)),
        ("network", .networkChanged),
        ("move", .move(to: nil)),
        ("move there", .move(to: "wss://other.example/v1/rtc")),
        ("resourcesFetched", .link(.resourcesFetched(someResources), attempt: 1)),
        ("resourcesFailed", .link(.resourcesFailed(passingFailure), attempt: 1)),
        ("resourcesFailed for good", .link(.resourcesFailed(fatalFailure), attempt: 1)),
        ("socketOpened", .link(.socketOpened, attempt: 1)),
        ("socketFailed", .link(.socketFailed(passingFailure), attempt: 1)),
        ("socketFailed for good", .link(.socketFailed(fatalFailure), attempt: 1)),
        ("socketClosed", .link(.socketClosed(code: 1001), attempt: 1)),
        ("socketClosed 4001", .link(.socketClosed(code: 4001), attempt: 1)),
        ("sessionStarted", .link(.sessionStarted(someGrant), attempt: 1)),
        ("sessionRefused", .link(.sessionRefused(passingFailure), attempt: 1)),
        ("sessionRefused for good", .link(.sessionRefused(fatalFailure), attempt: 1)),
        ("received", .link(.received(sequence: 8), attempt: 1)),
        ("pong", .link(.pong, attempt: 1)),
        ("timer", .timerFired),
        ("next resourcesFetched", .link(.resourcesFetched(someResources), attempt: 2)),
        ("next resourcesFailed", .link(.resourcesFailed(fatalFailure), attempt: 2)),
        ("next socketOpened", .link(.socketOpened, attempt: 2)),
        ("next socketFailed", .link(.socketFailed(passingFailure), attempt: 2)),
        ("next socketClosed", .link(.socketClosed(code: 1001), attempt: 2)),
        ("next sessionStarted", .link(.sessionStarted(someGrant), attempt: 2)),
        ("next sessionResumed", .link(.sessionStarted(resumedGrant), attempt: 2)),
        ("next sessionRefused", .link(.sessionRefused(passingFailure), attempt: 2)),
        ("next received", .link(.received(sequence: 9), attempt: 2)),
        ("stale socketClosed", .link(.socketClosed(code: nil), attempt: 0)),
        ("stale sessionStarted", .link(.sessionStarted(someGrant), attempt: 0)),
    ]

    private static func name(_ machine: ConnectionMachine) -> String {
        switch machine.current {
        case .notConnected, .failed: machine.state.rawValue
        case .attempting(let attempt): "\(machine.state.rawValue).\(caseName(attempt.step))"
        case .connected(let link): link.pingSentAt == nil ? "connected" : "connected.pinged"
        case .moving(let move): "moving.\(caseName(move.to.step))\(move.isReplaced ? ".replaced" : "")"
        case .disconnecting(_, _, let thenConnects): thenConnects ? "disconnecting.thenConnects" : "disconnecting"
        }
    }

    private static func name(_ output: ConnectionMachine.Output) -> String {
        switch output {
        case .stateChanged(let state): "→\(state.rawValue)"
        case .event(let event): "!\(caseName(event))"
        case .fetchResources, .openSocket, .startSession, .sendPing, .endSession, .closeSocket, .abandon, .moved,
            .stayed, .retrying:
            caseName(output)
        }
    }

    private static let connectedRow = [
        "disconnect": "disconnecting: endSession closeSocket →disconnecting",
        "giveUp": "failed: !error →failed !disconnected",
        "network": "connected.pinged: sendPing",
        "move": "moving.fetching: fetchResources",
        "move there": "moving.opening: openSocket",
        "socketFailed": "reconnecting.waiting: →reconnecting !reconnecting retrying",
        "socketFailed for good": "failed: !error →failed !disconnected",
        "socketClosed": "reconnecting.waiting: →reconnecting !reconnecting retrying",
        "socketClosed 4001": "failed: !error →failed !disconnected",
    ]

    /// A link that is on the move before its session is.
    private static func leavingRow(_ step: String) -> [String: String] {
        [
            "disconnect": "disconnecting: abandon endSession closeSocket →disconnecting",
            "giveUp": "failed: abandon !error →failed !disconnected",
            "socketFailed": "reconnecting.\(step): →reconnecting !reconnecting",
            "socketFailed for good": "failed: abandon !error →failed !disconnected",
            "socketClosed": "reconnecting.\(step): →reconnecting !reconnecting",
            "socketClosed 4001": "failed: abandon !error →failed !disconnected",
            "timer": "connected: abandon stayed",
        ]
    }

    private static func arrivingRow(_ failure: String) -> [String: String] {
        [
            "giveUp": "failed: abandon !error →failed !disconnected",
            "timer": failure, "next socketFailed": failure, "next socketClosed": failure,
            "next sessionRefused": failure, "next sessionResumed": "connected: moved →connected",
            "next sessionStarted": "connected: !reconnecting moved →connected !reconnected",
        ]
    }

    private static let expected: [String: [String: String]] = [
        "notConnected": ["connect": "connecting.fetching: fetchResources →connecting"],
        "connecting.fetching": [
            "giveUp": "failed: !error →failed !disconnected",
            "disconnect": "notConnected: abandon →notConnected",
            "network": "connecting.fetching: abandon fetchResources",
            "resourcesFetched": "connecting.opening: openSocket",
            "resourcesFailed": "connecting.waiting: retrying",
            "resourcesFailed for good": "failed: !error →failed !disconnected",
            "timer": "connecting.waiting: abandon retrying",
        ],
        "connecting.opening": [
            "giveUp": "failed: !error →failed !disconnected",
            "disconnect": "notConnected: abandon →notConnected",
            "network": "connecting.fetching: abandon fetchResources",
            "socketOpened": "connecting.starting: startSession",
            "socketFailed": "connecting.waiting: retrying",
            "socketFailed for good": "failed: !error →failed !disconnected",
            "socketClosed": "connecting.waiting: retrying",
            "socketClosed 4001": "failed: !error →failed !disconnected",
            "timer": "connecting.waiting: abandon retrying",
        ],
        "connecting.starting": [
            "giveUp": "failed: !error →failed !disconnected",
            "disconnect": "disconnecting: closeSocket →disconnecting",
            "network": "connecting.fetching: abandon fetchResources",
            "socketFailed": "connecting.waiting: retrying",
            "socketFailed for good": "failed: !error →failed !disconnected",
            "socketClosed": "connecting.waiting: retrying",
            "socketClosed 4001": "failed: !error →failed !disconnected",
            "sessionStarted": "connected: →connected !connected",
            "sessionRefused": "connecting.waiting: abandon retrying",
            "sessionRefused for good": "failed: abandon !error →failed !disconnected",
            "timer": "connecting.waiting: abandon retrying",
        ],
        "connecting.waiting": [
            "giveUp": "failed: !error →failed !disconnected",
            "disconnect": "notConnected: →notConnected",
            "network": "connecting.fetching: fetchResources", "timer": "connecting.fetching: fetchResources",
        ],
        "connected": connectedRow.merging(["timer": "connected.pinged: sendPing"]) { $1 },
        "connected.pinged": connectedRow.merging([
            "received": "connected", "pong": "connected",
            "timer": "reconnecting.waiting: abandon →reconnecting !reconnecting retrying",
        ]) { $1 },
        "moving.fetching": leavingRow("fetching").merging([
            "next resourcesFetched": "moving.opening: openSocket", "next resourcesFailed": "connected: abandon stayed",
        ]) { $1 },
        "moving.opening": leavingRow("opening").merging([
            "next socketOpened": "moving.starting: startSession", "next socketFailed": "connected: abandon stayed",
            "next socketClosed": "connected: abandon stayed",
        ]) { $1 },
        "moving.starting": arrivingRow(
            "reconnecting.waiting: abandon abandon →reconnecting !reconnecting retrying"
        ).merging([
            "disconnect": "disconnecting: abandon endSession closeSocket →disconnecting",
            "socketFailed": "moving.starting.replaced", "socketFailed for good": "moving.starting.replaced",
            "socketClosed": "moving.starting.replaced", "socketClosed 4001": "moving.starting.replaced",
        ]) { $1 },
        "moving.starting.replaced": arrivingRow("reconnecting.waiting: abandon →reconnecting !reconnecting retrying")
            .merging(["disconnect": "disconnecting: closeSocket →disconnecting"]) { $1 },
        "reconnecting.waiting": [
            "giveUp": "failed: !error →failed !disconnected",
            "disconnect": "notConnected: →notConnected !disconnected",
            "network": "reconnecting.fetching: fetchResources", "timer": "reconnecting.fetching: fetchResources",
        ],
        "disconnecting": [
            "connect": "disconnecting.thenConnects",
            "socketFailed": "notConnected: →notConnected !disconnected",
            "socketFailed for good": "notConnected: →notConnected !disconnected",
            "socketClosed": "notConnected: →notConnected !disconnected",
            "socketClosed 4001": "notConnected: →notConnected !disconnected",
            "timer": "notConnected: abandon →notConnected !disconnected",
        ],
        "disconnecting.thenConnects": [
            "disconnect": "disconnecting",
            "socketFailed": "connecting.fetching: →notConnected !disconnected fetchResources →connecting",
            "socketFailed for good": "connecting.fetching: →notConnected !disconnected fetchResources →connecting",
            "socketClosed": "connecting.fetching: →notConnected !disconnected fetchResources →connecting",
            "socketClosed 4001": "connecting.fetching: →notConnected !disconnected fetchResources →connecting",
            "timer": "connecting.fetching: abandon →notConnected !disconnected fetchResources →connecting",
        ],
        "failed": ["connect": "connecting.fetching: fetchResources →connecting"],
    ]

    @Test("CONN-2: Every input in every state of the connection has exactly the outcome of the table")
    func everyPair() {
        let table = TransitionTable(
            states: Self.states, inputs: Self.inputs, stateName: Self.name, outputName: Self.name,
            expected: Self.expected)
        table.check(at: Instant.zero.advanced(by: .seconds(60)))
    }

    @Test("CONN-4: A timer that fires before its deadline changes nothing, regardless of the state")
    func earlyTimer() {
        for state in Self.states {
            var core = state.core
            var outbox: [ConnectionMachine.Output] = []
            guard core.nextDeadline != .zero else { continue }
            core.handle(.timerFired, at: .zero, into: &outbox)
            #expect(outbox.isEmpty && core.current == state.core.current, "\(state.name)")
        }
    }
}
