import Foundation
import TestSupport
import Testing

/// The real command in processes of its own, with faults thrown in.
@Suite("handset, when things go wrong", .witnessed, .serialized)
struct FaultTests {
    @Test("A recording whose process is killed with SIGKILL has a header that fits what was saved")
    func recordingSurvivesSIGKILL() async throws {
        let running = try await RunningSite(Site())
        defer { running.site.remove() }
        let recording = running.site.path("back.wav")
        let call = try running.call(["--record", recording, "--duration", "60"])
        try await call.line(containing: "Media flows both ways")
        // 0.4 s of 48 kHz mono.
        // It gets its name when it is whole.
        let part = running.site.path("back.part.wav")
        try await eventually { fileSize(part) > 40_000 }
        #expect(!FileManager.default.fileExists(atPath: recording))
        call.send(SIGKILL)
        #expect(await call.ending() == -SIGKILL)

        let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: part)))
        #expect(Array(bytes[0..<4]) == Array("RIFF".utf8) && Array(bytes[8..<12]) == Array("WAVE".utf8))
        let dataStart = try #require(find(Array("data".utf8), in: bytes)) + 8
        let dataBytes = littleEndian(bytes, at: dataStart - 4)
        // Samples that were written after the header was last brought up to date may follow it.
        #expect(dataBytes > 20_000 && dataBytes <= bytes.count - dataStart)
        #expect(bytes.count - dataStart - dataBytes <= 48_000, "half a second at the most is not in the header")
        #expect(littleEndian(bytes, at: 4) == dataStart - 8 + dataBytes)
    }

    @Test("CONN-4: An exchange killed with SIGKILL is found again by its device, which answers the next call")
    func exchangeSurvivesSIGKILL() async throws {
        let port = try freePort()
        let running = try await RunningSite(Site(port: port))
        defer { running.site.remove() }
        running.exchange.send(SIGKILL)
        #expect(await running.exchange.ending() == -SIGKILL)
        try await running.device.line(containing: "The connection is lost")

        let exchange = try HandsetProcess([
            "serve", "--config", running.site.exchangeConfiguration, "--log-format", "json",
        ])
        try await exchange.line(containing: #""Listening""#)
        try await running.device.line(containing: "Connected")
        let call = try running.call(["--play", Site.speech, "--minimum-likeness", "0.8"])
        #expect(await call.ending() == 0, "\(call.errorText)")
    }

    @Test("A bot that cannot be reached is logged once for each call, with the reason")
    func botFailsOnce() async throws {
        let site = try Site(behaviour: "bot\n  bot:\n    url: ws://127.0.0.1:9/nobody")
        let running = try await RunningSite(site)
        defer { running.site.remove() }
        let call = try running.call(["--duration", "5"])
        #expect(await call.ending() != 0)
        try await running.device.line(containing: "A call has ended")
        let lines = running.device.errorText.split(separator: "\n").filter { $0.contains("bot") }
        #expect(lines.count == 1 && lines.first?.contains("A call has failed") == true, "\(lines)")
        running.device.send(SIGTERM)
        _ = await running.device.ending()
    }

    @Test("A call for a sound card that was never there is declined with the reason, and not answered in silence")
    func cardNeverThere() async throws {
        let running = try await RunningSite(Site(behaviour: "card", audio: ["device: by-id/usb-Nobody"]))
        defer { running.site.remove() }
        try await eventually { running.device.errorText.contains("No sound for now; calls on the card fail") }
        let start = running.device.errorText
        #expect(start.contains("by-id/usb-Nobody"))
        #expect(start.contains("Cards of this machine: ") || start.contains("has no sound card."))
        let call = try running.call(["--duration", "5", "--json"])
        #expect(await call.ending() != 0)
        #expect(!call.errorText.contains("Media flows both ways"))
        let failed = try await running.device.line(containing: "A call has failed")
        #expect(failed.contains("by-id/usb-Nobody") && failed.contains("the call would be silent"))
        running.device.send(SIGTERM)
        _ = await running.device.ending()
    }

    @Test("CONN-12: SIGUSR1 has the exchange ask devices to move, and ends neither it nor a call")
    func move() async throws {
        let running = try await RunningSite(Site())
        defer { running.site.remove() }
        let call = try running.call(["--duration", "2", "--json"])
        try await call.line(containing: "Media flows both ways")
        running.exchange.send(SIGUSR1)
        try await running.exchange.line(containing: "Asking devices to reconnect")
        #expect(await call.ending() == 0, "\(call.errorText)")
        #expect(call.outputText.contains(#""outcome": "completed""#))
        running.exchange.send(SIGTERM)
        #expect(await running.exchange.ending() == 0, "\(running.exchange.errorText)")
    }

    @Test("CALL-3: A device that is asked to end hangs up its call first, and the caller's call is completed")
    func endedDeviceHangsUp() async throws {
        let running = try await RunningSite(Site())
        defer { running.site.remove() }
        let call = try running.call(["--duration", "60", "--json"])
        try await call.line(containing: "Media flows both ways")
        try await running.device.line(containing: "Media flows both ways")
        running.device.send(SIGTERM)
        #expect(await running.device.ending() == 0, "\(running.device.errorText)")
        #expect(await call.ending() == 0, "\(call.errorText)")
        #expect(call.outputText.contains(#""outcome": "completed""#))
    }

    @Test("CALL-4: A peer that falls silent is waited for, and the call continues when it is back")
    func silenceIsSurvived() async throws {
        let running = try await RunningSite(Site())
        defer { running.site.remove() }
        let call = try running.call(["--duration", "60", "--json"])
        try await call.line(containing: "Media flows both ways")
        try await running.device.line(containing: "Media flows both ways")
        call.send(SIGSTOP)
        try await running.device.line(containing: "fallen silent")
        call.send(SIGCONT)
        try await running.device.line(containing: "is back")
        call.send(SIGINT)
        #expect(await call.ending() == 130)
        try await running.device.line(containing: "completed")
    }

    @Test("CALL-4: A peer that is gone for good gets one ICE restart, and then the call ends as connectionLost")
    func silenceEndsTheCall() async throws {
        let running = try await RunningSite(Site())
        defer { running.site.remove() }
        let call = try running.call(["--duration", "60"])
        try await call.line(containing: "Media flows both ways")
        try await running.device.line(containing: "Media flows both ways")
        call.send(SIGSTOP)
        try await running.device.line(containing: "fallen silent")
        try await running.device.line(containing: "Restarting ICE")
        let end = try await running.device.line(containing: "A call has ended")
        #expect(end.contains("connectionLost"))
        #expect(running.device.errorText.matches(of: #/Restarting ICE/#).count == 1)
        call.send(SIGKILL)
        #expect(await call.ending() == -SIGKILL)
    }

    @Test("A call that is interrupted is hung up, and ends with 130")
    func interruptedCallHangsUp() async throws {
        let running = try await RunningSite(Site())
        defer { running.site.remove() }
        let call = try running.call(["--duration", "60"])
        try await call.line(containing: "Media flows both ways")
        call.send(SIGINT)
        #expect(await call.ending() == 130)
        try await running.device.line(containing: "completed")
    }

    @Test("A second signal ends a command whose orderly end hangs")
    func secondSignalEndsAtOnce() async throws {
        let running = try await RunningSite(Site())
        defer { running.site.remove() }
        // The goodbye finds nobody who answers.
        running.exchange.send(SIGSTOP)
        running.device.send(SIGTERM)
        running.device.send(SIGINT)
        #expect(await running.device.ending() == 130)
        running.exchange.send(SIGCONT)
    }

    @Test("A server that does not answer the goodbye keeps a command no longer than its grace")
    func graceIsBounded() async throws {
        let running = try await RunningSite(Site())
        defer { running.site.remove() }
        running.exchange.send(SIGSTOP)
        running.device.send(SIGTERM)
        let code = await running.device.ending()
        #expect(code == 130 || code == 0)
        running.exchange.send(SIGCONT)
    }
}

/// Waits until `condition` holds, looking every 10 ms for at most 20 s: for what nobody tells of, such as a file's size.
func eventually(_ condition: () -> Bool, sourceLocation: SourceLocation = #_sourceLocation) async throws {
    for _ in 0..<2_000 {
        if condition() { return }
        try await Task.sleep(for: .milliseconds(10))
    }
    try #require(condition(), sourceLocation: sourceLocation)
}

/// A port that was free a moment ago.
func freePort() throws -> Int {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let status = withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            bind(descriptor, $0, length) == 0 ? getsockname(descriptor, $0, &length) : -1
        }
    }
    try #require(status == 0)
    return Int(UInt16(bigEndian: address.sin_port))
}

private func fileSize(_ path: String) -> Int {
    (try? FileManager.default.attributesOfItem(atPath: path)[.size] as? Int) ?? 0
}

private func find(_ pattern: [UInt8], in bytes: [UInt8]) -> Int? {
    (0...(bytes.count - pattern.count)).first { Array(bytes[$0..<($0 + pattern.count)]) == pattern }
}

private func littleEndian(_ bytes: [UInt8], at offset: Int) -> Int {
    (0..<4).reduce(0) { $0 | Int(bytes[offset + $1]) << (8 * $1) }
}
