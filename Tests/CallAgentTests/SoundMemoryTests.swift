@testable import CallAgent
import CallControl
import Foundation
import Testing
import TestSupport
import Core

@Suite("Mute and volume for the next start")
struct SoundMemoryTests {
    private let configured = SoundSettings(isMuted: false, volumeDB: -3, microphoneDB: 0)

    private func changed(_ change: (inout SoundSettings) -> Void) -> SoundSettings {
        var settings = configured
        change(&settings)
        return settings
    }

    private func bytes(_ outputs: [SoundMemory.Output]) -> [[UInt8]] {
        outputs.map { if case .write(let bytes) = $0 { bytes } else { [] } }
    }

    @Test("A hundred changes in a second are one writing, two seconds after the first")
    func seldom() {
        var timeline = Timeline(SoundMemory(configured: configured))
        for step in 0..<100 {
            timeline.feed(.changed(changed { $0.volumeDB = -Double(step) / 2 }))
            timeline.advance(by: .milliseconds(10), firing: .timerFired)
        }
        #expect(timeline.log.isEmpty)
        timeline.runToQuiescence(firing: .timerFired)
        #expect(timeline.log.map(\.at) == [.seconds(2)])
        timeline.feed(.finish)
        #expect(timeline.log.count == 1)
    }

    @Test("What was set is there again at the next start; what is set back leaves nothing to write")
    func comesBack() throws {
        var timeline = Timeline(SoundMemory(configured: configured))
        let settings = changed { ($0.isMuted, $0.volumeDB, $0.microphoneDB) = (true, -12.5, 20) }
        timeline.feed(.changed(settings))
        let file = try #require(bytes(timeline.feed(.finish)).first)
        #expect(file.count <= SoundMemory.maximumBytes)
        var next = Timeline(try SoundMemory(configured: configured, kept: file))
        #expect(next.core.current == settings)
        next.feed(.changed(configured))
        next.feed(.changed(settings))
        #expect(next.feed(.finish).isEmpty)
    }

    @Test("A value whose configuration has changed since is as configured; the others are as they were")
    func configurationWins() throws {
        var timeline = Timeline(SoundMemory(configured: configured))
        timeline.feed(.changed(changed { ($0.isMuted, $0.volumeDB) = (true, -12) }))
        let file = try #require(bytes(timeline.feed(.finish)).first)
        var other = configured
        other.volumeDB = 6
        #expect(
            try SoundMemory(configured: other, kept: file).current
                == SoundSettings(isMuted: true, volumeDB: 6, microphoneDB: 0))
    }

    @Test(
        "A file that is something else is refused, by name of what is wrong",
        arguments: [
            ("{", "no volume"), ("[]", "no volume"), ("{\"version\":1}", "no volume"),
            (
                """
                {"version":2,"muted":{"value":true,"configured":false},"volume_db":{"value":0,"configured":0},\
                "microphone_db":{"value":0,"configured":0}}
                """, "version 2"
            ),
            (
                """
                {"version":1,"muted":{"value":true,"configured":false},"volume_db":{"value":20.5,"configured":0},\
                "microphone_db":{"value":0,"configured":0}}
                """, "20.5 dB"
            ),
        ])
    func broken(text: String, says: String) {
        let fault = #expect(throws: SoundMemory.Fault.self) {
            try SoundMemory(configured: configured, kept: Array(text.utf8))
        }
        #expect(fault?.description.contains(says) == true, "\(fault?.description ?? "")")
    }

    @Test("After a writing that failed the end tries again")
    func again() {
        var timeline = Timeline(SoundMemory(configured: configured))
        timeline.feed(.changed(changed { $0.isMuted = true }))
        timeline.runToQuiescence(firing: .timerFired)
        timeline.core.writingFailed()
        #expect(timeline.feed(.finish).count == 1)
    }

    @Test("A device that starts again is as loud as it was, and broken or locked files only cost that")
    func restarts() async throws {
        let folder = FileManager.default.temporaryDirectory.path + "/handset-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let path = folder + "/session.json.sound"
        let site = try await Site()
        func device(volume: Double = 0) async throws -> Handheld {
            try await site.device("echo", named: "desk") {
                $0.behaviour.source = .card
                $0.audio.playback = "null"
                $0.audio.capture = "null"
                $0.audio.volumeDB = volume
                $0.account.sessionFile = folder + "/session.json"
            }
        }
        let first = try await device()
        first.device.sharedMedia.setVolume(decibels: -20)
        first.device.sharedMedia.setMuted(true)
        await first.device.shutDown()
        #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o600)
        let second = try await device()
        let kept = try #require(await second.device.status.sound)
        #expect(kept.volumeDB == -20 && kept.isMuted && kept.microphoneDB == 0)
        await second.device.shutDown()
        // Whoever configures another volume hears it; the microphone stays muted.
        let third = try await device(volume: 3)
        let new = try #require(await third.device.status.sound)
        #expect(new.volumeDB == 3 && new.isMuted)
        await third.device.shutDown()
        try "nonsense".write(toFile: path, atomically: true, encoding: .utf8)
        let fourth = try await device()
        #expect(await fourth.device.status.sound == SoundSettings(isMuted: false, volumeDB: 0, microphoneDB: 0))
        fourth.device.sharedMedia.setMicrophoneVolume(decibels: -60)
        try await site.close(fourth)
        #expect(try String(contentsOfFile: path, encoding: .utf8).contains("-60"))
        try FileManager.default.removeItem(atPath: folder)
    }
}
