import Foundation
import Logging
import Synchronization
import Testing
import Core

@testable import handset

/// Collects what a logger writes.
private final class Lines: Sendable {
    private let lines = Mutex<[String]>([])

    var all: [String] { lines.withLock { $0 } }

    func logger(_ format: LogFormat, level: Logger.Level = .trace, coloured: Bool = false) -> Logger {
        var logger = Logger(label: "agent") { label in
            LineLogHandler(
                label: label, level: level, format: format, style: TerminalStyle(isEnabled: coloured),
                now: { WallClock(unixMilliseconds: 1_772_323_199_123) },
                write: { line in self.lines.withLock { $0.append(line) } })
        }
        logger.logLevel = level
        return logger
    }
}

@Suite struct LogTests {
    @Test("A line for people has time, level, logger, message and the metadata in the order of its keys")
    func human() {
        let lines = Lines()
        var logger = lines.logger(.human)
        logger[metadataKey: "call"] = "c1"
        logger.info("call established", metadata: ["setup_ms": "6", "by": "alice smith"])
        #expect(
            lines.all == [
                "2026-02-28T23:59:59.123Z info     [agent] call established by=\"alice smith\" call=c1 setup_ms=6"
            ])
    }

    @Test("A line for programs is one JSON object, its numbers and flags as such")
    func json() throws {
        let lines = Lines()
        let logger = lines.logger(.json)
        logger.warning(
            "odd \"thing\"",
            metadata: [
                "count": .stringConvertible(3), "ok": .stringConvertible(true), "list": ["a", "b"],
                "nested": ["x": "y\n"], "ratio": .stringConvertible(0.5),
            ])
        logger.debug("plain")
        #expect(
            lines.all == [
                #"{"time":"2026-02-28T23:59:59.123Z","level":"warning","logger":"agent","message":"odd \"thing\"","#
                    + #""metadata":{"count":3,"list":["a","b"],"nested":{"x":"y\n"},"ok":true,"ratio":0.5}}"#,
                #"{"time":"2026-02-28T23:59:59.123Z","level":"debug","logger":"agent","message":"plain"}"#,
            ])
        for line in lines.all { _ = try JSONSerialization.jsonObject(with: Data(line.utf8)) }
    }

    @Test("A log that cannot be written delays no caller, and the lines that are lost are counted in their place")
    func stalled() throws {
        let (taken, gate, reported) = (
            DispatchSemaphore(value: 0), DispatchSemaphore(value: 0), DispatchSemaphore(value: 0)
        )
        let written = Mutex<[String]>([])
        let lossLine: @Sendable (Int) -> String = { count in
            reported.signal()
            return "lost \(count)"
        }
        let writer = try LogWriter(capacity: 100, lossLine: lossLine) { line in
            taken.signal()
            gate.wait()
            gate.signal()
            written.withLock { $0.append(line) }
        }
        writer.write("first")
        taken.wait()
        for number in 0..<1_000 { writer.write("line \(number)") }
        gate.signal()
        reported.wait()
        writer.write("after")
        writer.finish(saying: "last", withinMilliseconds: 60_000)
        // 15 lines have 95 bytes.
        let lines = written.withLock { $0 }
        #expect(lines == ["first"] + (0..<15).map { "line \($0)" } + ["lost 985", "after", "last"])
    }

    @Test("A process ends although its log cannot be written")
    func stalledEnd() throws {
        let (taken, gate) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let writer = try LogWriter(lossLine: { "lost \($0)" }) { _ in
            taken.signal()
            gate.wait()
        }
        writer.write("first")
        taken.wait()
        writer.finish(withinMilliseconds: 0)
        gate.signal()
        writer.finish(withinMilliseconds: 60_000)
    }

    @Test("What a peer sent can neither begin a line of its own nor steer the terminal", arguments: LogFormat.allCases)
    func injection(format: LogFormat) {
        let lines = Lines()
        let evil = "x\n2026 error\r\u{1B}[2J\u{9B}A\u{2028}end"
        lines.logger(format).info("\(evil)", metadata: ["key\n": "\(evil)"])
        #expect(lines.all.count == 1)
        #expect(!lines.all[0].unicodeScalars.contains(where: JSONText.isControl))
    }

    @Test("Below its level nothing is written, and colours come only where they are wanted")
    func levels() {
        let lines = Lines()
        let logger = lines.logger(.human, level: .warning, coloured: true)
        logger.info("not this")
        logger.error("this")
        #expect(lines.all.count == 1)
        #expect(lines.all[0].contains("\u{1B}[31merror"))
    }

    @Test(
        "Times are written in UTC as RFC 3339 has it",
        arguments: [
            (0, "1970-01-01T00:00:00.000Z"), (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (4_107_542_399_999, "2100-02-28T23:59:59.999Z"), (-1, "1969-12-31T23:59:59.999Z"),
            (1_709_251_199_000, "2024-02-29T23:59:59.000Z"),
        ] as [(Int64, String)])
    func times(milliseconds: Int64, text: String) {
        #expect(WallClock(unixMilliseconds: milliseconds).rfc3339 == text)
    }
}
