import Foundation
import Testing

/// `handset support-bundle`, from the real command.
@Suite("handset support-bundle", .timeLimit(.minutes(3)))
struct SupportBundleTests {
    @Test("The archive has what a report needs, is its owner's alone, and has no secret, no hash and no caller's name")
    func bundle() async throws {
        let running = try await RunningSite(Site(isControlled: true))
        let site = running.site
        defer { site.remove() }
        let call = try running.call(["--play", Site.speech, "--duration", "60"])
        try await call.line(containing: "Media flows both ways")
        let command = try HandsetProcess([
            "support-bundle", "--config", site.deviceConfiguration, "--config", site.exchangeConfiguration,
            "--config", site.path("nothing.yaml"), "--output", site.path("support.tar"),
        ])
        #expect(await command.ending() == 0, "\(command.errorText)")
        #expect(command.outputText == site.path("support.tar"))
        let attributes = try FileManager.default.attributesOfItem(atPath: site.path("support.tar"))
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        let archive = String(
            decoding: try Data(contentsOf: URL(fileURLWithPath: site.path("support.tar"))), as: UTF8.self)
        for text in [
            "handset-support/about.txt", "handset 0.", "sound.txt", "network.txt", "lo 127.0.0.1",
            "device.yaml.configuration.txt", "media_token_file: echo.secret", "good for `handset run`",
            "device.yaml.status.txt", "from (left out): talking", "exchange.yaml.configuration.txt",
            "users: (left out)", "nothing.yaml.configuration.txt", "cannot be read",
        ] {
            #expect(archive.contains(text), "no \(text)")
        }
        let configuration = try String(contentsOfFile: site.exchangeConfiguration, encoding: .utf8)
        let hash = try #require(configuration.firstMatch(of: /media_token_hashes: \[([0-9a-f]+)\]/)).1
        for text in ["app-secret", "echo-token", "caller-token", String(hash), "caller@localhost"] {
            #expect(!archive.contains(text), "it has \(text)")
        }
    }
}
