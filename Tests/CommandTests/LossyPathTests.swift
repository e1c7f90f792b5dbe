import AudioKit
import Foundation
import RelaySupport
import TestSupport
import Testing

/// The real command and a device, each a process of its own, with a TURN server between them whose path loses packets.
@Suite(
    "Calls of the command on a path that loses packets", .witnessed, .enabled(if: RelayServer.isInstalled),
    .timeLimit(.minutes(3)))
struct LossyPathTests {
    /// What one call measured.
    private struct Call {
        /// The share of all sound that is made up.
        let made: Double
        let likeness: Double
        let lost: Int
        let passed: Int
    }

    /// One call of the site's caller, which is reached through this server alone, over a path of its own.
    private static func call(_ running: RunningSite, playing file: String, by server: RelayServer, seed: UInt64)
        async throws -> Call
    {
        let relay = LossyRelay(.bursts(share: 0.1, meanLength: 3), seed: seed)
        relay.stand(before: server.port)
        Thread { relay.run() }.start()
        defer { relay.stop() }
        let site = running.site
        let direct = try String(contentsOfFile: site.callerConfiguration, encoding: .utf8)
        let relayed = """

              relay_only: true
              ice_servers:
                - urls: ["turn:127.0.0.1:\(relay.ports[0])"]
                  username: \(RelayServer.username)
                  credential_file: turn.secret
            """
        try (direct + relayed).write(toFile: site.callerConfiguration, atomically: true, encoding: .utf8)
        defer { try? direct.write(toFile: site.callerConfiguration, atomically: true, encoding: .utf8) }

        let call = try running.call(["--play", file, "--json"])
        #expect(await call.ending() == 0, "\(call.errorText)")
        let report = try JSONSerialization.jsonObject(with: Data(call.outputText.utf8)) as? [String: Any]
        func figure(_ name: String) throws -> Double { try #require(report?[name] as? Double, "\(name)") }
        let counts = relay.counts
        return Call(
            made: try figure("concealed_ms") / figure("duration_ms"), likeness: try figure("likeness"),
            lost: counts.lost, passed: counts.passed)
    }

    @Test("Calls where 10 % are lost in bursts, each way, hear nearly all of their words come back, one after another")
    func bursts() async throws {
        let server = try RelayServer()
        let site = try Site()
        defer { site.remove() }
        try Data(RelayServer.password.utf8).write(to: URL(fileURLWithPath: site.path("turn.secret")))
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: site.path("turn.secret"))
        let said = site.path("said.wav")
        var writer = try WAVWriter(path: said)
        // Were one part like another, what is heard late would be taken for something else.
        try writer.append(SyntheticVoice.syllables(seconds: 10, seed: 3).span)
        try writer.finish()

        let running = try await RunningSite(site)
        var calls: [Call] = []
        for seed: UInt64 in [11, 21, 31] {
            calls.append(try await Self.call(running, playing: said, by: server, seed: seed))
        }
        #expect(calls.allSatisfy { $0.lost > 50 && $0.passed > 800 }, "each way 10 % of some 500 packets: \(calls)")
        #expect(calls.map(\.made).sorted()[1] < 0.06, "\(calls)")
        #expect(calls.map(\.likeness).sorted()[1] > 0.7, "\(calls)")
    }
}
