import CallAgent
import ConfigReader
import ControlWire
@testable import DeviceControl
import Foundation
import JSON
import Logging
import Testing

@Suite("The records of calls that clients ask for", .timeLimit(.minutes(1)))
struct CallHistoryTests {
    private struct Absent: Error {}

    /// A record's two lines.
    private static func lines(_ name: String, peer: String, ended: Int, reason: String = "completed", lost: Int = 0)
        -> String
    {
        let begin =
            #"{"call":"\#(name)","application":"a","over":false,"began":\#(ended - 10_000),"direction":"incoming","peer":"\#(peer)"}"#
        let end =
            #"{"call":"\#(name)","application":"a","over":true,"ended":\#(ended),"direction":"incoming","peer":"\#(peer)","#
            + #""invite":"invite-\#(name)","reason":"\#(reason)","ended_by":"remote","established_ms":50,"duration_ms":9000,"#
            + #""media":{"sent":450,"received":\#(450 - lost),"lost":\#(lost),"frames":450,"played_ms":9000}}"#
        return begin + "\n" + end + "\n"
    }

    private func ask(_ files: [(name: String, text: String)], _ change: (inout ControlHistoryQuery) -> Void)
        async throws(ControlFault) -> ControlReply
    {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("history-\(UUID())")
        defer { try? FileManager.default.removeItem(at: folder) }
        let accounts: AccountSet
        do {
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            var text = "accounts:\n"
            for (name, lines) in files {
                let path = folder.appendingPathComponent("\(name).jsonl").path
                try lines.write(toFile: path, atomically: true, encoding: .utf8)
                text += """
                      - name: \(name)
                        account:
                          anonymous: \(name)
                          server: http://127.0.0.1:1
                        behaviour:
                          source: silence
                        device:
                          call_records: \(path)

                    """
            }
            let configuration = try AccountsConfiguration.read(
                ConfigDocument.read(text: text, environment: { _ in nil }))
            let logger = Logger(label: "history") { _ in SwiftLogNoOpLogHandler() }
            let media = try SharedMedia(for: configuration.accounts.map(\.configuration), logger: logger)
            accounts = AccountSet(configuration, media: media, logger: logger) { _ in throw Absent() }
        } catch {
            throw ControlFault(.failed, "\(error)")
        }
        var query = ControlHistoryQuery()
        change(&query)
        let handler = ControlRequestHandler(accounts, version: "1")
        let result: Result<ControlReply, ControlFault>
        do throws(ControlFault) {
            result = .success(try await handler.carryOut(ControlRequest(.history(query))).reply)
        } catch {
            result = .failure(error)
        }
        await accounts.shutDown()
        return try result.get()
    }

    private static let two = [
        ("a", lines("r1", peer: "bob", ended: 100_000) + lines("r3", peer: "Carol", ended: 300_000, lost: 90)),
        ("b", lines("r2", peer: "bob", ended: 200_000, reason: "busy")),
    ]

    @Test("Records of all accounts are in one list, the newest first, with what went wrong in each")
    func list() async throws {
        let reply = try await ask(Self.two) { _ in }
        let records = try #require(reply.history)
        #expect(records.map(\.record) == ["r3", "r2", "r1"] && records.map(\.account) == ["a", "b", "a"])
        #expect(reply.next == nil && records.allSatisfy { $0.media == nil })
        #expect(records[0].findings.map(\.code) == ["loss_here"] && records[0].remark == nil)
        #expect(records[0].findings[0].whose == "the network to this device")
        #expect(records[2].findings.isEmpty && records[2].remark == "Nothing went wrong that this side can see.")
        #expect(
            records[2].began == 90_000
                && records[2].outcome == "The call from bob lasted 9.0 s; the other side hung up.")
    }

    @Test("Pages of one record are the whole list, each record once, also when ends are of the same moment")
    func pages() async throws {
        let lines = (0..<7).map { Self.lines("r\($0)", peer: "bob", ended: 100_000 + $0 / 3) }.joined()
        var names: [String] = []
        var before: String?
        repeat {
            let cursor = before
            let reply = try await ask([("a", lines)]) { query in
                query.limit = 2
                if let cursor {
                    let parts = cursor.split(separator: ".")
                    query.before = .init(time: Int64(parts[0]) ?? 0, record: String(parts[1]))
                }
            }
            names += reply.history?.map(\.record) ?? []
            before = reply.next
        } while before != nil
        #expect(names == ["r6", "r5", "r4", "r3", "r2", "r1", "r0"])
    }

    @Test("They are searched by name without regard to case, by outcome, by findings and by time")
    func search() async throws {
        func names(_ change: (inout ControlHistoryQuery) -> Void) async throws -> [String]? {
            try await ask(Self.two, change).history?.map(\.record)
        }
        #expect(try await names { $0.search = "CAROL" } == ["r3"])
        #expect(try await names { $0.search = "invite-r1" } == ["r1"])
        #expect(try await names { $0.outcome = "busy" } == ["r2"])
        #expect(try await names { $0.hasFindings = true } == ["r3"])
        #expect(try await names { ($0.from, $0.to) = (100_000, 200_000) } == ["r1"])
        #expect(try await names { $0.search = "nobody" } == [])
    }

    @Test("One record has the figures of its media; one that is not there, and a call that runs, are none")
    func one() async throws {
        let record = try await ask(Self.two) { $0.record = "r3" }.history?.first
        #expect(record?.media?["lost"] == 90)
        let running =
            #"{"call":"r9","application":"a","over":false,"began":1,"direction":"incoming","peer":"bob"}"# + "\n"
        for name in ["r8", "r9"] {
            let fault = await #expect(throws: ControlFault.self) {
                try await ask([("a", running)]) { $0.record = name }
            }
            #expect(fault?.code == .noSuchCall)
        }
    }
}

@Suite("An index of records")
struct CallRecordIndexTests {
    @Test("A search finds texts that JSON escapes or writes in other cases, and passes over those that cannot fit")
    func search() throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("index-\(UUID()).jsonl")
        defer { try? FileManager.default.removeItem(at: file) }
        let text = ["BOB", #"a\"b"#, "Zoë"].enumerated().map { number, peer in
            #"{"application":"a","call":"r\#(number)","direction":"incoming","ended":\#(number + 1),"over":true,"peer":"\#(peer)","reason":"busy"}"#
        }
        try (text.joined(separator: "\n") + "\n").write(to: file, atomically: true, encoding: .utf8)
        let index = try CallRecordIndex(path: file.path)
        #expect(index.entries.map(\.call) == ["r0", "r1", "r2"] && index.entries.map(\.ended) == [1, 2, 3])
        func found(_ text: String) -> [String] {
            index.entries.filter { index.mayContain(text, $0) }.compactMap(index.record).filter { $0.matches(text) }
                .map(\.peer)
        }
        #expect(
            found("bob") == ["BOB"] && found("A\"B") == ["a\"b"] && found("ZOË") == ["Zoë"] && found("zo") == ["Zoë"])
        #expect(!index.mayContain("carol", index.entries[0]))
    }

    @Test("Of a call with two ends the last one counts, and lines that are no records are passed over")
    func ends() throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("index-\(UUID()).jsonl")
        defer { try? FileManager.default.removeItem(at: file) }
        let lines = [
            #"{"application":"a","began":5,"call":"r","direction":"incoming","over":false,"peer":"bob"}"#, "nonsense",
            "",
            #"{"application":"a","call":"r","direction":"incoming","ended":7,"over":true,"peer":"bob","reason":"busy"}"#,
            #"{"application":"a","call":"r","direction":"incoming","ended":9,"over":true,"peer":"bob","reason":"completed"}"#,
            #"{"call":"s","ended":99999999999999999999}"#,
        ]
        try (lines.joined(separator: "\n") + "\n").write(to: file, atomically: true, encoding: .utf8)
        let index = try CallRecordIndex(path: file.path)
        #expect(index.entries.map(\.ended) == [9])
        let record = try #require(index.record(of: index.entries[0]))
        #expect(record.reason == "completed" && record.began == 5)
    }

    @Test("Eight requests wait at a time, a ninth is one too many, and one that ends makes room")
    func bound() throws {
        let bound = RequestBound(most: CallHistory.mostWaiting)
        for _ in 0..<8 { try bound.enter() }
        let fault = #expect(throws: ControlFault.self) { try bound.enter() }
        #expect(fault?.code == .tooMany)
        bound.leave()
        try bound.enter()
        #expect(throws: ControlFault.self) { try bound.enter() }
    }
}
