@testable import CallControl
import Testing
import TestSupport
import Core

@Suite("LoginMachine and AuthenticationGate")
struct LoginTests {
    private static let refused = ServiceFailure(
        SignalingError(.loginRefused, activity: "log in", cause: "wrong password", traceID: "t-1"), remedy: .none)

    @Test("AUTH-11: Every input in every state of the login has exactly the outcome of the table")
    func loginTable() {
        let asking = LoginMachine(seed: 1).after(.login)
        let table = TransitionTable(
            states: [
                NamedState("loggedOut", LoginMachine(seed: 1)),
                NamedState("asking", asking),
                NamedState("waiting", asking.after(.failed(passingFailure))),
                NamedState("loggedIn", asking.after(.succeeded)),
                NamedState("refused", asking.after(.failed(Self.refused))),
            ],
            inputs: [
                ("login", .login), ("logout", .logout), ("succeeded", .succeeded),
                ("failed", .failed(passingFailure)), ("failed for good", .failed(Self.refused)),
                ("network", .networkChanged), ("timer", .timerFired),
            ],
            stateName: { caseName($0.current) }, outputName: caseName,
            expected: [
                "loggedOut": ["login": "asking: sendLogin"],
                "asking": [
                    "network": "asking: sendLogin",
                    "logout": "loggedOut: loggedOut", "succeeded": "loggedIn: loggedIn", "failed": "waiting: retrying",
                    "failed for good": "refused: loginFailed",
                ],
                "waiting": [
                    "logout": "loggedOut: loggedOut", "network": "asking: sendLogin", "timer": "asking: sendLogin",
                ],
                "loggedIn": ["logout": "loggedOut: loggedOut"],
                "refused": ["login": "asking: sendLogin", "logout": "loggedOut"],
            ])
        table.check(at: Instant.zero.advanced(by: .seconds(60)))
    }

    @Test("AUTH-11: A refusal is reported once, with its Trace-Id, and nothing more is tried")
    func refusal() {
        var timeline = Timeline(LoginMachine(seed: 1))
        timeline.feed(.login)
        timeline.feed(.failed(Self.refused))
        timeline.runToQuiescence(firing: .timerFired)
        #expect(timeline.outputs == [.sendLogin(attempt: 1), .loginFailed(Self.refused.error)])
        #expect("\(Self.refused.error)" == "cannot log in: wrong password (Trace-Id t-1).")
    }

    @Test("AUTH-11: An unwell service is asked again, no sooner than it said")
    func unwellService() {
        var timeline = Timeline(LoginMachine(seed: 1))
        timeline.feed(.login)
        timeline.feed(.failed(ServiceFailure(passingFailure.error, remedy: .retry(after: .seconds(7)))))
        timeline.advance(by: .milliseconds(6_999), firing: .timerFired)
        #expect(!timeline.outputs.contains(.sendLogin(attempt: 2)))
        timeline.advance(by: .milliseconds(1), firing: .timerFired)
        #expect(timeline.outputs.last == .sendLogin(attempt: 2))
        timeline.feed(.succeeded)
        #expect(timeline.core.isLoggedIn)
    }

    @Test("AUTH-11: When the network changes, an unwell service is asked again at once, but no sooner than it said")
    func networkChange() {
        var timeline = Timeline(LoginMachine(seed: 1))
        timeline.feed(.login)
        timeline.feed(.failed(passingFailure))
        timeline.feed(.networkChanged)
        #expect(timeline.outputs.last == .sendLogin(attempt: 2))
        timeline.feed(.failed(ServiceFailure(passingFailure.error, remedy: .retry(after: .seconds(7)))))
        timeline.feed(.networkChanged)
        timeline.advance(by: .milliseconds(6_999), firing: .timerFired)
        #expect(!timeline.outputs.contains(.sendLogin(attempt: 3)))
        timeline.advance(by: .milliseconds(1), firing: .timerFired)
        #expect(timeline.outputs.last == .sendLogin(attempt: 3))
    }

    @Test("AUTH-11: With bounded patience a service that stays unwell is reported as a failure")
    func patience() {
        var timeline = Timeline(LoginMachine(patience: .seconds(20), seed: 1))
        timeline.feed(.login)
        for _ in 0..<100 where timeline.core.current != .refused {
            timeline.feed(.failed(passingFailure))
            timeline.runToQuiescence(firing: .timerFired, limit: 1)
        }
        #expect(timeline.outputs.last == .loginFailed(passingFailure.error))
        #expect(timeline.now <= Instant.zero.advanced(by: .seconds(20)))
    }

    private typealias Gate = AuthenticationGate<Int>

    @Test("AUTH-6: Every input in every state of the gate has exactly the outcome of the table")
    func gateTable() {
        let opening = Gate().after(.loginStarted)
        let table = TransitionTable<Gate>(
            states: [
                NamedState("closed", Gate()),
                NamedState("opening 0", opening),
                NamedState("opening 1", opening.after(.request(1, waits: true))),
                NamedState("open", opening.after(.loginSucceeded)),
            ],
            inputs: [
                ("answer", .request(2, waits: true)), ("request", .request(3, waits: false)),
                ("loginStarted", .loginStarted), ("loginSucceeded", .loginSucceeded),
                ("loginFailed", .loginFailed(Self.refused.error)), ("loggedOut", .loggedOut), ("timer", .timerFired),
            ],
            stateName: {
                switch $0.current {
                case .closed: "closed"
                case .opening(let held): "opening \(held.count)"
                case .open: "open"
                }
            },
            outputName: {
                switch $0 {
                case .proceed(let ticket): "proceed \(ticket)"
                case .fail(let ticket, let error): "fail \(ticket) \(error.code)"
                }
            },
            expected: [
                "closed": [
                    "answer": "closed: fail 2 notAuthenticated", "request": "closed: fail 3 notAuthenticated",
                    "loginStarted": "opening 0", "loginSucceeded": "open",
                ],
                "opening 0": [
                    "answer": "opening 1", "request": "opening 0: fail 3 notAuthenticated", "loginSucceeded": "open",
                    "loginFailed": "closed", "loggedOut": "closed",
                ],
                "opening 1": [
                    "answer": "opening 2", "request": "opening 1: fail 3 notAuthenticated",
                    "loginSucceeded": "open: proceed 1", "loginFailed": "closed: fail 1 loginRefused",
                    "loggedOut": "closed: fail 1 notAuthenticated", "timer": "opening 0: fail 1 timedOut",
                ],
                "open": [
                    "answer": "open: proceed 2", "request": "open: proceed 3", "loginStarted": "opening 0",
                    "loginFailed": "closed", "loggedOut": "closed",
                ],
            ])
        table.check(at: Instant.zero.advanced(by: .seconds(60)))
    }

    @Test("AUTH-7: An answer asked for during login waits, is sent once after it, and never waits for ever")
    func waitingAnswers() {
        var timeline = Timeline(Gate(capacity: 2, patience: .seconds(15)))
        timeline.feed(.loginStarted)
        timeline.feed(.request(1, waits: true))
        timeline.advance(by: .seconds(10), firing: .timerFired)
        timeline.feed(.request(2, waits: true))
        timeline.feed(.request(3, waits: true))
        timeline.advance(by: .seconds(6), firing: .timerFired)
        timeline.feed(.loginSucceeded)
        timeline.feed(.loginSucceeded)
        timeline.runToQuiescence(firing: .timerFired)
        let summary = timeline.outputs.map {
            switch $0 {
            case .proceed(let ticket): "proceed \(ticket)"
            case .fail(let ticket, let error): "fail \(ticket) \(error.code)"
            }
        }
        #expect(summary == ["fail 3 tooManyRequests", "fail 1 timedOut", "proceed 2"])
    }
}
