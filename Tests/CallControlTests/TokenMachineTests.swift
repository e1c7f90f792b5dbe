@testable import CallControl
import Testing
import TestSupport
import Core

@Suite("TokenMachine")
struct TokenMachineTests {
    private static let refused = ServiceFailure(
        SignalingError(.loginRefused, activity: "renew the access token", cause: "it was revoked"), remedy: .none)

    private func names(_ timeline: Timeline<TokenMachine>) -> [String] { timeline.outputs.map(caseName) }

    @Test("AUTH-4: A token is renewed after four fifths of its life, and at most five minutes before its end")
    func ahead() {
        var timeline = Timeline(TokenMachine(seed: 1))
        timeline.feed(.granted(lifetime: .seconds(100)))
        timeline.advance(by: .milliseconds(79_999), firing: .timerFired)
        #expect(timeline.outputs.isEmpty)
        timeline.advance(by: .milliseconds(1), firing: .timerFired)
        #expect(timeline.outputs == [.renew])
        timeline.feed(.granted(lifetime: .seconds(36_000)))
        #expect(timeline.core.nextDeadline == timeline.now.advanced(by: .seconds(35_700)))
        timeline.feed(.granted(lifetime: nil))
        #expect(timeline.core.nextDeadline == nil)
    }

    @Test("AUTH-4: However many say that the token is refused, one renewal is made")
    func once() {
        var timeline = Timeline(TokenMachine(seed: 1))
        timeline.feed(.granted(lifetime: .seconds(100)))
        for _ in 0..<5 { timeline.feed(.refused) }
        timeline.advance(by: .seconds(200), firing: .timerFired)
        #expect(timeline.outputs == [.renew])
        timeline.feed(.granted(lifetime: .seconds(100)))
        timeline.feed(.refused)
        #expect(timeline.outputs == [.renew, .renew])
    }

    @Test("AUTH-4: A service that is unwell is asked again and again, also when the token has ended meanwhile")
    func unwell() {
        var timeline = Timeline(TokenMachine(seed: 1))
        timeline.feed(.granted(lifetime: .seconds(10)))
        for _ in 0..<20 {
            timeline.runToQuiescence(firing: .timerFired, limit: 1)
            timeline.feed(.renewalFailed(passingFailure))
        }
        #expect(timeline.now > Instant.zero.advanced(by: .seconds(10)))
        #expect(timeline.outputs.count { $0 == .renew } == 20)
        #expect(!names(timeline).contains("expired"))
    }

    @Test("AUTH-4: A token that cannot be renewed is used to its end, and its end is reported once")
    func toTheEnd() {
        var timeline = Timeline(TokenMachine(seed: 1))
        timeline.feed(.granted(lifetime: .seconds(100)))
        timeline.advance(by: .seconds(80), firing: .timerFired)
        timeline.feed(.renewalFailed(Self.refused))
        timeline.advance(by: .milliseconds(19_999), firing: .timerFired)
        #expect(names(timeline) == ["renew"])
        timeline.advance(by: .seconds(100), firing: .timerFired)
        #expect(names(timeline) == ["renew", "expired"])
        timeline.feed(.refused)
        timeline.feed(.renewalFailed(Self.refused))
        #expect(names(timeline) == ["renew", "expired"])
        guard case .expired(let error)? = timeline.outputs.last else { return }
        #expect(error.code == .tokenExpired)
        #expect("\(error)".contains("it was revoked"))
    }

    @Test("AUTH-4: A token that is refused and cannot be renewed has ended at once")
    func refusedForGood() {
        var timeline = Timeline(TokenMachine(seed: 1))
        timeline.feed(.granted(lifetime: .seconds(100)))
        timeline.feed(.refused)
        timeline.feed(.renewalFailed(Self.refused))
        #expect(names(timeline) == ["renew", "expired"])
        #expect(timeline.core.isExpired)
        timeline.feed(.granted(lifetime: .seconds(100)))
        #expect(!timeline.core.isExpired)
    }

    @Test("AUTH-9: After a logout nothing is renewed any more")
    func forgotten() {
        var timeline = Timeline(TokenMachine(seed: 1))
        timeline.feed(.granted(lifetime: .seconds(100)))
        timeline.feed(.forget)
        timeline.feed(.refused)
        timeline.advance(by: .seconds(200), firing: .timerFired)
        #expect(timeline.outputs.isEmpty)
    }
}
