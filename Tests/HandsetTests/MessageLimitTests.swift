import Logging
import Synchronization
import Testing
import TestSupport
import Core

@testable import handset

@Suite("How many lines with one message are written")
struct MessageLimitTests {
    private func input(_ message: String, _ level: Logger.Level = .warning) -> MessageLimit.Input {
        .message(message, level, label: "handset")
    }

    private func withheld(_ message: String, _ count: Int, _ level: Logger.Level = .warning) -> MessageLimit.Output {
        .tell(MessageLimit.Withheld(message: message, level: level, label: "handset", count: count))
    }

    @Test(
        "Messages up to the limit are written, not one more, and the rest is reported once when the minute has ended",
        arguments: [
            (Logger.Level.warning, 60), (.error, 60), (.info, 600), (.notice, 600), (.debug, 6_000), (.trace, 6_000),
        ])
    func edge(level: Logger.Level, limit: Int) {
        #expect(MessageLimit.lines(at: level) == limit)
        for more in [-1, 0, 1, 1_234] {
            var timeline = Timeline(MessageLimit())
            for _ in 0..<limit + more { timeline.feed(input("storm", level)) }
            #expect(timeline.outputs == Array(repeating: .write, count: min(limit, limit + more)))
            timeline.advance(by: .seconds(59.999), firing: .timerFired)
            #expect(!timeline.outputs.contains { $0 != .write })
            timeline.advance(by: .seconds(0.001), firing: .timerFired)
            #expect(timeline.outputs.filter { $0 != .write } == (more > 0 ? [withheld("storm", more, level)] : []))
            // Another minute begins with the next one.
            #expect(timeline.feed(input("storm", level)) == [.write])
        }
    }

    @Test("What is critical is always written")
    func critical() {
        var timeline = Timeline(MessageLimit())
        for _ in 0..<10_000 { #expect(timeline.feed(input("the end", .critical)) == [.write]) }
        #expect(timeline.core.nextDeadline == nil)
    }

    @Test("A storm of one message leaves others alone, also the same text at another level or from another logger")
    func others() {
        var timeline = Timeline(MessageLimit())
        for _ in 0..<1_000 { timeline.feed(input("storm")) }
        #expect(timeline.feed(input("another")) == [.write])
        #expect(timeline.feed(input("storm", .error)) == [.write])
        #expect(timeline.feed(.message("storm", .warning, label: "exchange")) == [.write])
    }

    @Test("The end of the process reports what was withheld until then")
    func finish() {
        var timeline = Timeline(MessageLimit())
        for _ in 0..<65 { timeline.feed(input("storm")) }
        #expect(timeline.feed(.finish) == [withheld("storm", 5)])
        #expect(timeline.core.nextDeadline == nil && timeline.feed(.finish).isEmpty)
    }

    @Test("Messages without end, each another one, are bounded together in lines and memory")
    func kinds() {
        var timeline = Timeline(MessageLimit())
        let kinds = 20_000
        for number in 0..<kinds { timeline.feed(input("message \(number)")) }
        let written = timeline.outputs.count
        #expect(written == MessageLimit.capacity + 60)
        timeline.runToQuiescence(firing: .timerFired)
        #expect(
            timeline.outputs.last
                == .tell(
                    MessageLimit.Withheld(
                        message: MessageLimit.others, level: .warning, label: "", count: kinds - written)))
    }

    @Test(
        "However messages come, each is written or counted, and no minute of one has more lines than it may",
        arguments: 1...40 as ClosedRange<UInt64>)
    func property(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var timeline = Timeline(MessageLimit())
        var fed: [String: Int] = [:]
        var written: [String: [Instant]] = [:]
        var told: [String: Int] = [:]
        var seen = 0
        func note(_ log: some Collection<(at: Duration, output: MessageLimit.Output)>) {
            for case .tell(let withheld) in log.map(\.output) { told[withheld.message, default: 0] += withheld.count }
        }
        for _ in 0..<6_000 {
            let message = ["a", "b", "c"][Int.random(in: 0..<3, using: &generator)]
            // Bursts and lulls around the rate that is just allowed.
            let pause = [0, 10, 330, 700][Int.random(in: 0..<4, using: &generator)]
            timeline.advance(by: .milliseconds(pause), firing: .timerFired)
            if timeline.feed(input(message)).contains(.write) { written[message, default: []].append(timeline.now) }
            note(timeline.log[seen...])
            seen = timeline.log.count
            fed[message, default: 0] += 1
        }
        timeline.feed(.finish)
        note(timeline.log[seen...])
        for (message, count) in fed {
            let lines = written[message] ?? []
            #expect(lines.count + (told[message] ?? 0) == count)
            // Minutes follow each other, so a minute at any place touches two of them.
            for (first, last) in zip(lines, lines.dropFirst(120)) {
                #expect(first.duration(to: last) >= MessageLimit.minute)
            }
        }
        #expect(told.values.reduce(0, +) > 0, "nothing was withheld: the test is too gentle")
    }

    @Test("The line that reports it has the message, the number, and the number for programs")
    func line() {
        let withheld = MessageLimit.Withheld(message: "login failed", level: .warning, label: "agent", count: 1_234_567)
        let text = LogFormat.json.render(
            LogLine(withheld, at: WallClock(unixMilliseconds: 0)), style: TerminalStyle(isEnabled: false))
        #expect(
            text == #"{"time":"1970-01-01T00:00:00.000Z","level":"warning","logger":"agent","#
                + #""message":"login failed … and 1,234,567 more of these in the last minute","#
                + #""metadata":{"withheld":1234567}}"#)
    }

    @Test("A logger writes up to its limit, and reports the rest at its end")
    func handler() {
        let lines = Mutex<[String]>([])
        let limiter = LogLimiter(now: { .zero }) { withheld in
            lines.withLock { $0.append("\(withheld.message): \(withheld.count)") }
        }
        let logger = Logger(label: "agent") { label in
            LineLogHandler(
                label: label, level: .info, format: .human, style: TerminalStyle(isEnabled: false), limiter: limiter
            ) { line in lines.withLock { $0.append(line) } }
        }
        for number in 0..<100 { logger.warning("bad packet", metadata: ["number": "\(number)"]) }
        for _ in 0..<100 { logger.critical("the end") }
        limiter.finish()
        let all = lines.withLock { $0 }
        #expect(all.count { $0.contains("bad packet number=") } == 60)
        #expect(all.count { $0.contains("the end") } == 100)
        #expect(all.last == "bad packet: 40")
    }
}
