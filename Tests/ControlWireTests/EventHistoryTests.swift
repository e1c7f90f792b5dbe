import Core
import Testing

@testable import ControlWire

@Suite("The history of events and its cursors")
struct EventHistoryTests {
    private func at(_ seconds: Int64) -> Instant { Instant(nanoseconds: seconds * 1_000_000_000) }

    private func line(_ call: UInt64, of account: String? = nil) -> [UInt8] {
        ControlCoding.line(.answered(call: call), of: account, atMilliseconds: 1)
    }

    /// What a client receives, in short: numbers of calls, and reasons of gaps.
    private func read(_ history: EventHistory, _ start: EventSubscription.Start, account: String? = nil) -> [String] {
        var reader = EventReader(EventSubscription(start: start, account: account), of: history)
        return read(history, &reader)
    }

    private func read(_ history: EventHistory, _ reader: inout EventReader) -> [String] {
        var all: [String] = []
        while true {
            let text = String(decoding: reader.next(of: history, at: .zero), as: UTF8.self)
            guard !text.isEmpty else { return all }
            reader.finished()
            for data in text.split(separator: "\n") where data.hasPrefix("data: ") {
                if let reason = data.firstRange(of: "\"reason\":\"") {
                    all.append(String(data[reason.upperBound...].prefix { $0 != "\"" }))
                } else if let call = data.firstRange(of: "\"call\":") {
                    all.append(String(data[call.upperBound...].prefix { $0.isNumber }))
                }
            }
        }
    }

    @Test("A client receives what comes after its cursor, each event with the cursor after it")
    func after() throws {
        var history = EventHistory(id: 7)
        for call in 1...3 { history.add(line(UInt64(call))) }
        let cursor = try #require(EventCursor("0000000000000007-1"))
        #expect(read(history, .after(cursor)) == ["2", "3"])
        #expect(read(history, .now) == [] && read(history, .oldest) == ["1", "2", "3"])
        #expect("\(history.cursor)" == "0000000000000007-3")
        var reader = EventReader(EventSubscription(start: .after(cursor)), of: history)
        let text = String(decoding: reader.next(of: history, at: .zero), as: UTF8.self)
        #expect(text.hasPrefix("id: 0000000000000007-2\nevent: answered\ndata: {"), "\(text)")
        #expect(text.hasSuffix("}\n\n"))
    }

    @Test("A cursor of another device, or from the future, gets a gap and then all that is kept")
    func foreign() throws {
        var history = EventHistory(id: 7)
        history.add(line(1))
        for text in ["0000000000000008-1", "0000000000000007-2"] {
            #expect(read(history, .after(try #require(EventCursor(text)))) == ["unknown_cursor", "1"], "\(text)")
        }
    }

    @Test("At 10,000 events the oldest is dropped, and a client that missed it gets a gap")
    func expired() {
        var history = EventHistory(id: 7)
        for call in 1...10_000 { history.add(line(UInt64(call))) }
        let start = EventSubscription.Start.after(EventCursor(history: 7, position: 0))
        #expect(read(history, start).prefix(2) == ["1", "2"])
        history.add(line(10_001))
        #expect(history.count == 10_000)
        #expect(read(history, start).prefix(2) == ["expired", "2"])
        #expect(read(history, .after(EventCursor(history: 7, position: 1))).first == "2")
        #expect(read(history, .oldest).first == "2")
    }

    @Test("Past 8 MiB the oldest events are dropped")
    func bytes() {
        var history = EventHistory(id: 7)
        let path = String(repeating: "p", count: 4_000)
        let line = ControlCoding.line(.play(call: 1, .init(state: "started", path: path)), atMilliseconds: 1)
        for _ in 0..<3_000 { history.add(line) }
        #expect(history.count * line.count <= EventHistory.mostBytes + 4_096 && history.count > 2_000)
    }

    @Test("A client that wants one account receives its events and those of the process, without a gap for others")
    func accounts() {
        var history = EventHistory(id: 7)
        for (call, account) in [(1, "a"), (2, "b"), (3, "a"), (4, nil)] as [(UInt64, String?)] {
            history.add(line(call, of: account))
        }
        #expect(read(history, .oldest, account: "a") == ["1", "3", "4"])
    }

    @Test("After a restart in order a client continues without a gap, also over a run without events")
    func restart() {
        var first = EventHistory(id: 7, run: 1)
        first.add(line(1))
        first.add(line(2))
        var lines = [EventArchive.run(1)] + first.events(after: 0, atMost: 9).map(EventArchive.line)
        lines += [EventArchive.end(first.newest), EventArchive.run(2)]
        let idle = EventHistory(id: 7, run: 2, after: EventArchive(Array(lines.dropLast())))
        lines += [EventArchive.end(idle.newest)]
        var third = EventHistory(id: 7, run: 3, after: EventArchive(lines))
        #expect(read(third, .oldest) == ["1", "2"])
        #expect(read(third, .after(first.cursor)) == [] && read(third, .after(idle.cursor)) == [])
        third.add(line(3))
        #expect(read(third, .after(first.cursor)) == ["3"] && read(third, .after(idle.cursor)) == ["3"])
        #expect(read(third, .after(EventCursor(history: 7, position: first.newest - 1))) == ["2", "3"])
    }

    @Test("After a crash a client receives what is on disk, and a gap for what may be lost")
    func crash() {
        var first = EventHistory(id: 7, run: 1)
        for call in 1...3 { first.add(line(UInt64(call))) }
        // The last event was received by a client, and is not on disk.
        let lines = [EventArchive.run(1)] + first.events(after: 0, atMost: 2).map(EventArchive.line)
        var second = EventHistory(id: 7, run: 2, after: EventArchive(lines))
        #expect(read(second, .after(first.cursor)) == ["interrupted"])
        second.add(line(4))
        #expect(read(second, .after(first.cursor)) == ["interrupted", "4"])
        #expect(read(second, .after(EventCursor(history: 7, position: first.newest - 2))) == ["2", "interrupted", "4"])
        // A third run without an event of the second one: its end is missing, too.
        var lost = [EventArchive.run(1)] + first.events(after: 0, atMost: 3).map(EventArchive.line)
        lost += [EventArchive.end(first.newest), EventArchive.run(2)]
        let third = EventHistory(id: 7, run: 3, after: EventArchive(lost))
        #expect(read(third, .after(first.cursor)) == ["interrupted"])
    }

    @Test("What the disk did not take is a gap, and damaged lines are skipped")
    func damage() {
        var first = EventHistory(id: 7, run: 1)
        for call in 1...4 { first.add(line(UInt64(call))) }
        var lines = first.events(after: 0, atMost: 9).map(EventArchive.line)
        lines[1] = "event x"
        lines.insert(contentsOf: ["", "event", "end", "run", "event 99999999999999999999999 {}", "event 5 {"], at: 1)
        let second = EventHistory(id: 7, run: 2, after: EventArchive([EventArchive.run(1)] + lines))
        #expect(read(second, .oldest).prefix(4) == ["1", "interrupted", "3", "4"])
    }

    @Test("A history in memory continues as one on disk: cursors of before remain valid, and earlier runs are there")
    func resume() {
        var first = EventHistory(id: 7, run: 1)
        first.add(line(1))
        let lines = [EventArchive.run(1)] + first.events(after: 0, atMost: 9).map(EventArchive.line)
        var history = EventHistory(id: 8)
        let start = history.cursor
        history.add(line(2))
        history.add(line(3))
        let (old, newest) = (EventCursor(history: 8, position: 1), history.cursor)
        var reader = EventReader(EventSubscription(start: .after(old)), of: history)
        history.resume(7, run: 2, after: EventArchive(lines + [EventArchive.end(first.newest)]))
        history.add(line(4))
        #expect(history.id == 7 && history.newest == history.origin + 3 && history.origin == 2 << 40)
        #expect(read(history, &reader) == ["3", "4"])
        #expect(read(history, .after(start)) == ["2", "3", "4"] && read(history, .after(newest)) == ["4"])
        #expect(read(history, .oldest) == ["1", "2", "3", "4"])
        #expect(read(history, .after(first.cursor)) == ["2", "3", "4"])
        for position in [4, UInt64.max] {
            let foreign = EventSubscription.Start.after(EventCursor(history: 8, position: position))
            #expect(read(history, foreign) == ["unknown_cursor", "1", "2", "3", "4"])
        }
    }

    @Test("A run whose first events are missing is no continuation of the one before it")
    func missingBeginning() {
        var first = EventHistory(id: 7, run: 1)
        first.add(line(1))
        var second = EventHistory(id: 7, run: 2)
        for call in 2...4 { second.add(line(UInt64(call))) }
        var lines = [EventArchive.run(1)] + first.events(after: 0, atMost: 9).map(EventArchive.line)
        lines += [EventArchive.end(first.newest), EventArchive.run(2)]
        lines += second.events(after: second.origin + 1, atMost: 9).map(EventArchive.line)
        lines.append(EventArchive.end(second.newest))
        let third = EventHistory(id: 7, run: 3, after: EventArchive(lines))
        #expect(read(third, .after(first.cursor)) == ["interrupted", "3", "4"])
    }

    @Test(
        "A stream that begins now begins at the cursor in its greeting, also if there is a newer event before its first batch"
    )
    func greeting() throws {
        var history = EventHistory(id: 7)
        history.add(line(1))
        var reader = EventReader(EventSubscription(start: .now), of: history)
        #expect(String(decoding: reader.greeting, as: UTF8.self) == "retry: 2000\n\nid: 0000000000000007-1\n\n")
        history.add(line(2))
        #expect(read(history, &reader) == ["2"])
        let known = EventReader(EventSubscription(start: .oldest), of: history)
        #expect(known.greeting == EventText.retry)
    }

    @Test("Of a long archive the newest 10,000 events are read")
    func long() {
        var first = EventHistory(id: 7, run: 1)
        var lines = [EventArchive.run(1)]
        for call in 1...10_100 {
            first.add(line(UInt64(call)))
            lines += first.events(after: first.newest - 1, atMost: 1).map(EventArchive.line)
        }
        lines.append(EventArchive.end(first.newest))
        let second = EventHistory(id: 7, run: 2, after: EventArchive(lines))
        #expect(second.count == 10_000)
        #expect(read(second, .after(EventCursor(history: 7, position: first.origin))).prefix(2) == ["expired", "101"])
        #expect(read(second, .after(first.cursor)) == [])
    }

    @Test("A client that does not take a batch gets no further one, and is stuck after 30 s")
    func stuck() {
        var history = EventHistory(id: 7)
        for call in 1...5_000 { history.add(line(UInt64(call))) }
        var reader = EventReader(EventSubscription(start: .oldest), of: history)
        let batch = reader.next(of: history, at: at(10))
        #expect((EventReader.batchBytes...EventReader.batchBytes + 1_024).contains(batch.count))
        #expect(reader.next(of: history, at: at(11)).isEmpty && reader.isWriting)
        #expect(!reader.isStuck(at: at(39)) && reader.isStuck(at: at(40)))
        reader.finished()
        #expect(!reader.isStuck(at: at(100)) && !reader.next(of: history, at: at(100)).isEmpty)
    }

    @Test("Text that is no cursor is refused")
    func texts() throws {
        for text in ["", "7-1", "0000000000000007", "0000000000000007-", "000000000000000g-1", "0000000000000007-1-1"] {
            #expect(EventCursor(text) == nil, "\(text)")
            guard !text.isEmpty else { continue }
            #expect(throws: ControlProblem.self) {
                try ControlOperation(ControlHTTPRequest("GET", "/v1/events", lastEventID: text))
            }
        }
        let operation = try ControlOperation(
            ControlHTTPRequest("GET", "/v1/events?after=oldest&levels=true", lastEventID: "0000000000000007-5"))
        guard case .events(let subscription) = operation.work else {
            Issue.record("it is not about events")
            return
        }
        #expect(subscription.start == .after(EventCursor(history: 7, position: 5)) && subscription.wantsLevels)
    }
}
