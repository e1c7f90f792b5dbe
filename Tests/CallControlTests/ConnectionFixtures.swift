import CallControl
import Core

let someResources = ConnectionResources(
    webSocketURL: "wss://exchange.example/v1/rtc", keepalive: .seconds(25), resumeWindow: .seconds(60))
let someGrant = SessionGrant(session: "s1", connection: "c1", user: "alice", sequence: 7, keepalive: .seconds(25))
let passingFailure = ServiceFailure(
    SignalingError(.serverUnreachable, activity: "connect", cause: "connection refused"), remedy: .retry(after: nil))
let fatalFailure = ServiceFailure(
    SignalingError(.tokenRejected, activity: "connect", cause: "the token is unknown"), remedy: .none)

extension ConnectionMachine {
    /// A connection that stands since the time's origin, by its first attempt.
    static func standing(timings: ConnectionTimings = ConnectionTimings(), seed: UInt64 = 1) -> ConnectionMachine {
        ConnectionMachine(timings: timings, seed: seed).after(
            .connect, .link(.resourcesFetched(someResources), attempt: 1), .link(.socketOpened, attempt: 1),
            .link(.sessionStarted(someGrant), attempt: 1))
    }
}
