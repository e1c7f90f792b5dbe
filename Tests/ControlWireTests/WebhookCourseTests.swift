import Core
import Foundation
import JSON
import Testing

@testable import ControlWire

@Suite("The course of a webhook")
struct WebhookCourseTests {
    private func at(_ seconds: Int64) -> Instant { Instant(nanoseconds: seconds * 1_000_000_000) }
    private func clock(_ seconds: Int64) -> WallClock { WallClock(unixMilliseconds: seconds * 1_000) }

    private func history(_ events: ControlEvent...) -> EventHistory {
        var history = EventHistory(id: 7, run: 1)
        for event in events { history.add(ControlCoding.line(event, atMilliseconds: 1_000)) }
        return history
    }

    private let start = EventCursor(history: 7, position: 1 << 40)
    private let taken = WebhookCourse.Outcome.answered(204, retryAfter: nil)

    @Test("It is sent what it wants, in order, each with an id of its own, its type, its time, the run and the event")
    func order() throws {
        let end = ControlEvent.End(peer: "bob", reason: "completed", endedBy: "local", durationSeconds: 2)
        let message = ControlEvent.Voicemail(
            id: "m", caller: "bob", received: "1970-01-01T00:00:01Z", durationSeconds: 3, path: "/m.wav")
        let history = history(
            .connection("connected"), .incoming(call: 1, from: "bob"), .answered(call: 1),
            .recording(call: 1, .init(state: "started", path: "/a.wav")),
            .recording(call: 1, .init(state: "ended", path: "/a.wav")), .ended(call: 1, end),
            .voicemail(call: nil, message), .calling(call: 2, to: "c"))
        let course = Course(Set(WebhookEvent.allCases), after: start)
        var types: [String] = []
        var ids: Set<String> = []
        while let delivery = course.next(of: history, at: at(0)) {
            #expect(course.next(of: history, at: at(0)) == nil && course.waitingSince == clock(1))
            let body = try JSONDecoder().decode(JSONValue.self, from: Data(delivery.body))
            types.append(body["type"]?.string ?? "")
            #expect(delivery.kind.rawValue == types.last)
            ids.insert(delivery.id)
            #expect(body["timestamp"] == "1970-01-01T00:00:01.000Z" && body["run"] == "0000000000000007-1")
            #expect(body["data"]?["event"] != nil)
            #expect(course.finish(taken, at: at(0), clock(1), spread: 0) == .delivered)
            #expect("\(course.cursor)" == delivery.id)
        }
        #expect(
            types == [
                "call.started", "call.answered", "call.recorded", "call.ended", "message.left", "call.started",
            ])
        #expect(ids.count == 6 && course.takeGap() == nil && course.nextDeadline == nil && course.waitingSince == nil)
        let ends = Course([.ended], after: start)
        let only = try #require(ends.next(of: history, at: at(0)))
        #expect(String(decoding: only.body, as: UTF8.self).contains(#""event":"ended""#))
    }

    @Test("A failure is tried again after 5 s, 10 s and so on up to half an hour, with the same id, for a day")
    func retries() throws {
        let history = history(.answered(call: 1), .answered(call: 2))
        let course = Course([.answered], after: start)
        var (now, pauses): (Int64, [Int64]) = (1, [])
        let first = try #require(course.next(of: history, at: at(now)))
        while case .later(let pause, let why)? = course.finish(.failed("down"), at: at(now), clock(now), spread: 0) {
            #expect(why == "down" && course.next(of: history, at: at(now)) == nil)
            pauses.append(pause.components.seconds)
            now += pause.components.seconds
            #expect(course.nextDeadline == at(now))
            #expect(course.next(of: history, at: at(now)) == first)
        }
        #expect(pauses.prefix(11) == [5, 10, 20, 40, 80, 160, 320, 640, 1_280, 1_800, 1_800])
        #expect(pauses.count == 56 && (86_401..<86_401 + 1_800).contains(now))
        // The second is as old, and is tried once.
        let second = try #require(course.next(of: history, at: at(now)))
        #expect(second.id != first.id)
        #expect(course.finish(.failed("down"), at: at(now), clock(now), spread: 0) == .lost("down"))
        #expect(course.next(of: history, at: at(now)) == nil && course.cursor == history.cursor)
    }

    @Test("Devices that failed together come back apart: a wait is a quarter shorter or longer at most")
    func spread() {
        for (spread, seconds) in [(-1.0, 3.75), (0.5, 5.625), (1, 6.25), (7, 6.25)] {
            let course = Course([.answered], after: start)
            _ = course.next(of: history(.answered(call: 1)), at: at(0))
            let verdict = course.finish(.failed("down"), at: at(0), clock(1), spread: spread)
            #expect(verdict == .later(.seconds(seconds), "down"))
        }
    }

    @Test(
        "A server that is out of order is tried for a day, one that refuses the event for an hour, and one that is gone once",
        arguments: [
            (500, 86_400), (503, 86_400), (429, 86_400), (425, 86_400), (408, 86_400), (400, 3_600), (401, 3_600),
            (404, 3_600), (302, 3_600), (199, 3_600), (300, 3_600), (410, 0),
        ])
    func statuses(status: Int, patience: Int64) {
        let history = history(.answered(call: 1))
        let refusal = WebhookCourse.Outcome.answered(status, retryAfter: .seconds(60))
        for (age, isLost) in [(patience - 1, false), (patience, true)] where age >= 0 {
            let course = Course([.answered], after: start)
            _ = course.next(of: history, at: at(0))
            let verdict = course.finish(refusal, at: at(0), clock(1 + age), spread: 0)
            switch verdict {
            case .later(let pause, let why)?:
                #expect(!isLost && pause == .seconds(60) && why.hasPrefix("its answer has the status \(status)"))
            case .lost(let why)?: #expect(isLost && why.hasPrefix("its answer has the status \(status)"))
            case .delivered?, nil: Issue.record("\(status)")
            }
        }
    }

    @Test("A server cannot ask for a longer wait than half an hour")
    func retryAfter() {
        let course = Course([.answered], after: start)
        _ = course.next(of: history(.answered(call: 1)), at: at(0))
        let busy = WebhookCourse.Outcome.answered(503, retryAfter: .seconds(1_000_000))
        #expect(
            course.finish(busy, at: at(0), clock(1), spread: 0)
                == .later(.seconds(1_800), "its answer has the status 503"))
    }

    @Test("After a restart the event that the server may not have is sent again, with the same id and content")
    func restart() throws {
        let history = history(.answered(call: 1), .answered(call: 2))
        let course = Course([.answered], after: start)
        _ = course.next(of: history, at: at(0))
        _ = course.finish(taken, at: at(0), clock(1), spread: 0)
        let second = try #require(course.next(of: history, at: at(0)))
        let again = Course([.answered], after: course.cursor)
        #expect(again.next(of: history, at: at(0)) == second)
    }

    @Test("Events that the history no longer has are a gap, once, and the rest follows")
    func dropped() throws {
        var history = EventHistory(id: 7, run: 1)
        for call in 0..<EventHistory.capacity + 5 {
            history.add(ControlCoding.line(.answered(call: UInt64(call)), atMilliseconds: 1))
        }
        for cursor in [start, EventCursor(history: 8, position: 1)] {
            let course = Course([.answered], after: cursor)
            let first = try #require(course.next(of: history, at: at(0)))
            #expect(String(decoding: first.body, as: UTF8.self).contains(#""call":5,"#))
            #expect(course.takeGap() == .dropped && course.takeGap() == nil)
            _ = course.finish(taken, at: at(0), clock(1), spread: 0)
            _ = course.next(of: history, at: at(0))
            #expect(course.takeGap() == nil)
        }
    }

    @Test(
        "After a crash what was on disk is sent, and that events may be missing is known; after an end in order none are"
    )
    func crash() throws {
        for hasCrashed in [true, false] {
            let former = history(.answered(call: 1), .answered(call: 2))
            var lines = [EventArchive.run(1)] + former.events(after: 0, atMost: 9).map(EventArchive.line)
            if !hasCrashed { lines.append(EventArchive.end(former.newest)) }
            var history = EventHistory(id: 7, run: 2, after: EventArchive(lines))
            history.add(ControlCoding.line(.answered(call: 1), atMilliseconds: 2_000))
            let course = Course([.answered], after: start)
            var runs: [String] = []
            var gaps: [WebhookCourse.Gap?] = []
            while let delivery = course.next(of: history, at: at(0)) {
                let body = try JSONDecoder().decode(JSONValue.self, from: Data(delivery.body))
                runs.append(body["run"]?.string ?? "")
                gaps.append(course.takeGap())
                #expect(course.finish(taken, at: at(0), clock(1), spread: 0) == .delivered)
            }
            #expect(runs.map(\.last) == ["1", "1", "2"] && gaps == [nil, nil, hasCrashed ? .interrupted : nil])
        }
    }
}

/// A course by reference: `#expect` and `#require` take no calls that change a value.
private final class Course {
    private var course: WebhookCourse

    init(_ wanted: Set<WebhookEvent>, after cursor: EventCursor) { course = WebhookCourse(wanted, after: cursor) }

    var cursor: EventCursor { course.cursor }
    var nextDeadline: Instant? { course.nextDeadline }
    var waitingSince: WallClock? { course.waitingSince }

    func next(of history: EventHistory, at now: Instant) -> WebhookCourse.Delivery? {
        course.next(of: history, at: now)
    }

    func takeGap() -> WebhookCourse.Gap? { course.takeGap() }

    func finish(
        _ outcome: WebhookCourse.Outcome, at now: Instant, _ time: WallClock, spread: Double
    ) -> WebhookCourse.Verdict? { course.finish(outcome, at: now, time, spread: spread) }
}
