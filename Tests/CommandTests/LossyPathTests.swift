import AudioKit
import Foundation
import RelaySupport
import TestSupport
import Testing

/// The real command and a device, each a process of its own, with a TURN server between them whose path loses packets.
@Suite(
    "Calls of the command on a path that loses packets", .enabled(if: RelayServer.isInstalled), .timeLimit(.minutes(3)))
struct LossyPathTests {
    /// Has the site's caller be reached through this TURN server alone.
    private static func relay(_ site: Site, through port: UInt16) throws {
        let caller = try String(contentsOfFile: site.callerConfiguration, encoding: .utf8)
        let relayed = """

              relay_only: true
              ice_servers:
                - urls: ["turn:127.0.0.1:\(port)"]
                  username: \(RelayServer.username)
                  credential_file: turn.secret
            """
        try Data(RelayServer.password.utf8).write(to: URL(fileURLWithPath: site.path("turn.secret")))
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: site.path("turn.secret"))
        try (caller + relayed).write(toFile: site.callerConfiguration, atomically: true, encoding: .utf8)
    }

    @Test("`handset call` where 10 % are lost in bursts, each way, hears nearly all of its words come back")
    func bursts() async throws {
        let server = try RelayServer()
        let relay = LossyRelay(.bursts(share: 0.1, meanLength: 3), seed: 11)
        relay.stand(before: server.port)
        Thread { relay.run() }.start()
        defer { relay.stop() }
        let site = try Site()
        defer { site.remove() }
        try Self.relay(site, through: relay.ports[0])
        let said = site.path("said.wav")
        var writer = try WAVWriter(path: said)
        try writer.append(SyntheticVoice.samples(15 * 48_000).span)
        try writer.finish()

        let running = try await RunningSite(site)
        let call = try running.call(["--play", said, "--json"])
        #expect(await call.ending() == 0, "\(call.errorText)")
        let report = try JSONSerialization.jsonObject(with: Data(call.outputText.utf8)) as? [String: Any]
        func figure(_ name: String) throws -> Double { try #require(report?[name] as? Double, "\(name)") }
        let counts = relay.counts
        #expect(counts.lost > 80 && counts.passed > 1_200, "each way 10 % of some 750 packets: \(counts)")
        let made = try figure("concealed_ms") / figure("duration_ms")
        #expect(made < 0.06, "\(made) of all sound is made up")
        #expect(try figure("likeness") > 0.7, "\(call.outputText)")
    }
}
