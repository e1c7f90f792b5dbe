import Foundation
import Testing

/// One word finds a call everywhere: in the logs of the exchange and of both devices, in events, in status and in call records.
@Suite("The id of a call", .timeLimit(.minutes(5)))
struct CallIdentityTests {
    private struct Line: Decodable {
        let message: String
        let metadata: [String: Member]?

        /// Whatever it is; only texts matter here.
        struct Member: Decodable {
            let text: String?

            init(from decoder: any Decoder) throws { text = try? decoder.singleValueContainer().decode(String.self) }
        }

        func member(_ key: String) -> String? { metadata?[key]?.text }
    }

    private func lines(_ process: HandsetProcess) throws -> [Line] {
        try process.errorText.split(separator: "\n").map { try JSONDecoder().decode(Line.self, from: Data($0.utf8)) }
    }

    @Test("The logs of the exchange and of both devices, events, status and records have it as `invite`")
    func everywhere() async throws {
        let running = try await RunningSite(Site(isControlled: true))
        let site = running.site
        defer { site.remove() }
        let (socket, records) = (site.path("caller.sock"), site.path("calls.jsonl"))
        let more = "\ncontrol:\n  socket: caller.sock\ndevice:\n  call_records: calls.jsonl\n"
        let text = try String(contentsOfFile: site.callerConfiguration, encoding: .utf8)
        try (text + more).write(toFile: site.callerConfiguration, atomically: true, encoding: .utf8)
        let caller = try HandsetProcess(
            ["run", "--config", site.callerConfiguration, "--server", running.server, "--log-format", "json"])
        try await caller.line(containing: #""Ready""#)
        func control(_ words: String...) async throws -> String {
            let command = try HandsetProcess(["control", "--socket", socket] + words)
            #expect(await command.ending() == 0, "\(command.errorText)")
            return command.outputText
        }
        let watch = try HandsetProcess(["control", "--socket", site.controlSocket, "watch", "--json"])
        try await eventually { watch.outputText.contains(#""status""#) }
        _ = try await control("call", "echo")
        try await caller.line(containing: #""Media flows both ways""#)
        try await running.device.line(containing: #""Media flows both ways""#)
        let status = try await control("status", "--json")
        _ = try await control("hangup")
        try await caller.line(containing: #""A call has ended""#)
        try await running.device.line(containing: #""A call has ended""#)
        try await running.exchange.line(containing: #""Call ended""#)

        let ended = try #require(try lines(running.exchange).last { $0.message == "Call ended" })
        let id = try #require(ended.member("invite"))
        for process in [caller, running.device] {
            let about = try lines(process).filter { $0.member("call") != nil }
            #expect(about.count >= 2)
            for line in about { #expect(line.member("invite") == id, "\(line)") }
        }
        #expect(status.contains(#""invite":"\#(id)""#), "\(status)")
        try await eventually { watch.outputText.contains(#""event":"ended""#) }
        let events = watch.outputText.split(separator: "\n").filter { $0.contains(#""invite":"\#(id)""#) }
        #expect(events.contains { $0.contains(#""event":"identified""#) }, "\(watch.outputText)")
        #expect(events.contains { $0.contains(#""event":"ended""#) }, "\(watch.outputText)")
        #expect(try String(contentsOfFile: records, encoding: .utf8).contains(#""invite":"\#(id)""#))
    }
}
