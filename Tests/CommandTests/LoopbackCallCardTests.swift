import CScriptedCard
import CardSupport
import Foundation
import TestSupport
import Testing

/// `handset loopback call` as a technician runs it at a rack: measured from outside by cards, on scripted cards with cables
/// between them, in real time.
@Suite("handset loopback call through sound cards", .witnessed, .serialized, .timeLimit(.minutes(5)))
struct LoopbackCallCardTests {
    /// What is not tested here, because it depends on the machine's other work.
    private static let anyQuality = [
        "--max-disturbed", "off", "--max-delay-range", "off", "--max-delay", "1000ms", "--min-likeness", "off",
        "--min-signal-to-noise", "off", "--min-quality", "off", "--max-clipped", "off",
    ]
    private static let mouthAndEar = ["--mouth", "mouth", "--ear", "ear"]
    private static let callCard = ["--playback", "loudspeaker", "--capture", "microphone"]
    /// A card whose sound goes through as it is.
    private static let plain = ["echo_cancellation: false", "noise_suppression: false", "gain_control: false"]

    /// Cables between cards whose position is known at all times, as the parts of the delay ask for.
    private static func wired(_ ends: [(into: String, outOf: String)]) throws -> Cables {
        let cables = try Cables(ends)
        for cable in cables.cables { cable.control.tells_position = 1 }
        return cables
    }

    private static func loopback(_ arguments: [String], _ cables: Cables, seconds: Int = 4) throws -> HandsetProcess {
        try HandsetProcess(
            ["loopback", "call"] + arguments + [
                "--seconds", "\(seconds)", "--rounds", "1", "--tones", "997", "--play", Site.speech, "--json", "-",
            ] + anyQuality, environment: cables.environment)
    }

    private static func to(_ running: RunningSite) -> [String] {
        ["echo@localhost", "--config", running.site.callerConfiguration, "--server", running.server]
    }

    /// The delay from one cable to another, as the cables themselves have it.
    private struct Lag {
        /// When it was heard at the other, in seconds since the carrier began on the first.
        let at: Double
        let milliseconds: Double
    }

    /// Such delays while a carrier is on the cables, a fifth of a second apart or more.
    private static func lags(
        _ command: HandsetProcess, from there: ScriptedCard, to back: ScriptedCard, count: Int = 5
    ) async throws -> [Lag] {
        try await command.line(containing: "The mouth speaks")
        var found: [Lag] = []
        var began: Int?
        try await eventually("the carrier is on both cables") {
            guard let lag = there.lag(to: back) else { return false }
            began = began ?? there.firstSound
            let at = Double(lag.tick + lag.ticks - (began ?? 0)) / 48_000
            if found.last.map({ at - $0.at >= 0.2 }) ?? true {
                found.append(Lag(at: at, milliseconds: Double(lag.ticks) / 48))
            }
            return found.count >= count
        }
        try #require(began != nil, "this machine stood still when the carrier began")
        return found
    }

    /// Holds a report to what was on the cables at the same time.
    ///
    /// - Parameter buffer: How far the mouth was kept ahead, in milliseconds.
    private static func compare(
        _ report: LoopbackReportObject, _ lags: [Lag], _ ear: ScriptedCard, buffer: Double = 50
    ) throws {
        let cable = Double(ear.control.cable_delay) / 48
        // The signal begins with silence; the report counts from its hand-over to the mouth.
        let began = 0.6 + (buffer + cable) / 1_000
        var errors: [Double] = []
        for lag in lags {
            // A call's delay may be on its way to another. Nothing is known of it but between readings of the carrier.
            let at = began + lag.at
            let near = report.delayTrack.filter { abs($0.at - at) < 0.1 }
            guard let before = near.last(where: { $0.at <= at }), near.last.map({ $0.at > at }) == true,
                let least = near.map(\.least).min(), let greatest = near.map(\.greatest).max()
            else { continue }
            let delay = lag.milliseconds + cable
            #expect((least - 0.5...greatest + 0.5).contains(delay), "\(delay) at \(at) s, \(least) … \(greatest)")
            errors.append(abs(before.mean - delay))
        }
        try #require(errors.count * 2 >= lags.count, "\(lags)")
        #expect(errors.sorted()[errors.count / 2] < 0.1, "\(errors)")
    }

    @Test(
        "The round trip is as long as on the cables, regardless of the measuring cards' delay; its parts include the call's card",
        .enabled(if: NightlyTests.areWanted))
    func roundTrip() async throws {
        let running = try await RunningSite(Site())
        defer { running.site.remove() }
        let cables = try Self.wired([("mouth", "microphone"), ("loudspeaker", "ear")])
        cables.cables[0].control.cable_delay = 2_400
        cables.cables[1].control.cable_delay = 1_200
        let recording = cables.path("back.wav")
        let command = try Self.loopback(
            Self.to(running) + Self.mouthAndEar + Self.callCard + ["--buffer-ms", "70", "--record", recording], cables)
        let lags = try await Self.lags(command, from: cables.cables[0], to: cables.cables[1])
        #expect(await command.ending() == 0, "\(command.errorText)")
        let report = try LoopbackReportObject(command.outputText)
        try Self.compare(report, lags, cables.cables[1], buffer: 70)
        for part in [
            "Microphone's card: buffer", "Frame of a packet", "Look-ahead", "Jitter buffer", "Loudspeaker's card",
        ] {
            #expect(report.stages.contains { $0.name.hasPrefix(part) && $0.milliseconds > 0 }, "\(report.stages)")
        }
        let together = report.stages.reduce(0) { $0 + $1.milliseconds }
        #expect(abs(together - report.delay) < 0.1, "\(together) \(report.delay)")
        // Both cables, of 75 ms, are in what the statistics do not know. Those are means of the whole call, and may be a few
        // milliseconds more than what was so while it was measured.
        #expect(report.stages.last.map { $0.milliseconds > 70 } == true, "\(report.stages)")
        #expect(report.facts["Measuring cards' own delay"]?.contains("as libasound reports") == true)
        #expect(report.facts["Mouth to ear, as reported"] != nil && report.facts["Call's card"] != nil)
        let size = try FileManager.default.attributesOfItem(atPath: recording)[.size] as? Int ?? 0
        #expect(size > 15 * 96_000)
    }

    @Test(
        "With the ear at the other side's loudspeaker, what is measured is from mouth to ear",
        .enabled(if: NightlyTests.areWanted))
    func oneWay() async throws {
        let cables = try Self.wired([
            ("mouth", "microphone"), ("far_loudspeaker", "ear"), ("loudspeaker", "far_microphone"),
        ])
        let audio = ["playback: far_loudspeaker", "capture: far_microphone"] + Self.plain
        let running = try await RunningSite(
            Site(behaviour: "card", audio: audio), environment: cables.environment)
        defer { running.site.remove() }
        let command = try Self.loopback(
            Self.to(running) + Self.mouthAndEar + Self.callCard + ["--one-way"], cables)
        let lags = try await Self.lags(command, from: cables.cables[0], to: cables.cables[1])
        #expect(await command.ending() == 0, "\(command.errorText)")
        let report = try LoopbackReportObject(command.outputText)
        try Self.compare(report, lags, cables.cables[1])
        #expect(report.facts["Mouth to ear"]?.hasSuffix("ms, measured") == true, "\(report.facts)")
        #expect(!report.stages.contains { $0.name.hasPrefix("Jitter buffer here") }, "\(report.stages)")
    }

    @Test(
        "The call of another phone is measured without placing a call",
        .enabled(if: NightlyTests.areWanted))
    func anotherPhone() async throws {
        let running = try await RunningSite(Site(callerAudio: Self.plain))
        defer { running.site.remove() }
        let cables = try Self.wired([("mouth", "microphone"), ("loudspeaker", "ear")])
        let phone = try HandsetProcess(
            ["call"] + Self.to(running) + Self.callCard + ["--duration", "60"], environment: cables.environment)
        try await phone.line(containing: "Media flows both ways")
        let command = try Self.loopback(Self.mouthAndEar, cables)
        let lags = try await Self.lags(command, from: cables.cables[0], to: cables.cables[1])
        #expect(await command.ending() == 0, "\(command.errorText)")
        let report = try LoopbackReportObject(command.outputText)
        try Self.compare(report, lags, cables.cables[1])
        #expect(report.stages.isEmpty && report.facts["Half of the round trip"] != nil, "\(report.facts)")
        phone.send(SIGINT)
        _ = await phone.ending()
    }

    @Test(
        "A call that plays a file is measured through the card of the other side, with a cable in its sockets",
        .enabled(if: NightlyTests.areWanted))
    func cardOnTheOtherSide() async throws {
        let cables = try Self.wired([("far_loudspeaker", "far_microphone")])
        cables.cables[0].control.cable_delay = 9_600
        let audio = ["playback: far_loudspeaker", "capture: far_microphone"] + Self.plain
        let running = try await RunningSite(
            Site(behaviour: "card", audio: audio), environment: cables.environment)
        defer { running.site.remove() }
        let command = try Self.loopback(Self.to(running), cables, seconds: 2)
        #expect(await command.ending() == 0, "\(command.errorText)")
        let report = try LoopbackReportObject(command.outputText)
        // The cable, both of the card's directions, frames and buffers.
        #expect((220...500).contains(report.delay), "\(report.delay)")
        #expect(report.stages.last.map { $0.name.hasPrefix("The other side") && $0.milliseconds > 200 } == true)
        let speech = report.object["speech"] as? [String: Any]
        #expect((speech?["likeness"] as? Double ?? 0) > 0.7, "\(speech ?? [:])")
    }

    @Test("Unsuitable cards are reported before the callee rings, with what to try")
    func badCards() async throws {
        let cables = try Cables(
            [("mouth", "microphone"), ("loudspeaker", "ear")],
            more: "pcm.deaf { type asym playback.pcm \"mouth\" }")
        let nobody = ["echo@localhost", "--server", "http://localhost:9"]
        for (arguments, code, words) in [
            (["--mouth", "mouth", "--device", "mouth"], 2, ["\"mouth\"", "hear itself", "handset devices"]),
            (
                ["--mouth", "mouth", "--ear", "microphone"] + Self.callCard, 2,
                ["--ear", "\"microphone\"", "both capture"]
            ),
            (["--mouth", "deaf"] + Self.callCard, 14, ["\"deaf\"", "capture", "--ear"]),
            (
                ["--mouth", "nonesuch", "--ear", "ear"] + Self.callCard, 14,
                ["\"nonesuch\"", "--mouth", "handset devices"]
            ),
            (Self.mouthAndEar + ["--device", "nonesuch"], 14, ["\"nonesuch\"", "--device"]),
            (Self.callCard, 2, ["--playback needs --mouth"]),
            (["--ear", "ear"], 2, ["--ear needs --mouth"]),
            (["--mouth", "mouth", "--ear", "none"], 2, ["--ear must name a card"]),
            (["--mouth", "mouth", "--own-delay", "long"], 2, ["--own-delay must be 0…2000 ms"]),
        ] as [([String], Int32, [String])] {
            let command = try Self.loopback(nobody + arguments, cables)
            #expect(await command.ending() == code, "\(arguments): \(command.errorText)")
            for word in words { #expect(command.errorText.contains(word), "\(arguments): \(command.errorText)") }
        }
        for arguments in [[], Self.mouthAndEar + ["--device", "default"]] {
            let command = try Self.loopback(arguments, cables)
            #expect(await command.ending() == 2, "\(arguments): \(command.errorText)")
            #expect(command.errorText.contains("give the callee") || command.errorText.contains("no callee"))
        }
    }
}
