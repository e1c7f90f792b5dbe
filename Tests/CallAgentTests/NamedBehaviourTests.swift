import CallControl
import CallDiagnosis
import CallMedia
import CallPrograms
import Foundation
import Logging
import MediaEngine
import TestSupport
import Testing

@testable import CallAgent

@Suite(
    "Calls with behaviours that rules name, on real sockets", .witnessed(slack: .seconds(1)), .timeLimit(.minutes(3)))
struct NamedBehaviourTests {
    private let folder = FileManager.default.temporaryDirectory.appending(path: "handset-named-\(UUID())").path()
    private let tone = AudioBehaviour(source: .tone(frequencyHz: 440, levelDBFS: -12))
    private let lines = KeptLines.Lines()

    init() throws { try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true) }

    private func remove() { try? FileManager.default.removeItem(atPath: folder) }

    /// Two behaviours, each with a folder of recordings: `own` of the section `behaviour`, which is silent, and `night`, which says a tone;
    /// and a rule by which calls get the latter.
    private func configure(
        _ configuration: inout DeviceConfiguration, _ outcome: AnswerRule.Outcome = .init(behaviour: "night"),
        longest: Duration? = nil
    ) {
        var night = BehaviourConfiguration()
        night.source = .tone(frequencyHz: 600, levelDBFS: -12)
        night.recordingFolder = "\(folder)/night"
        night.maximumDuration = longest
        configuration.behaviour.source = .silence
        configuration.behaviour.recordingFolder = "\(folder)/own"
        configuration.behaviours = ["night": night]
        configuration.answer = AnswerPolicy(manner: .reject, callLimit: .calls(4))
        configuration.answer.table = AnswerTable([AnswerRule(number: 1, line: 7, name: "late", outcome: outcome)])
        configuration.device.callRecords = "\(folder)/calls.jsonl"
    }

    private var logger: Logger { Logger(label: "test") { [lines] _ in KeptLines(lines: lines) } }

    private func device(
        _ site: Site, _ user: String = "echo", _ outcome: AnswerRule.Outcome = .init(behaviour: "night"),
        longest: Duration? = nil, _ change: (inout DeviceConfiguration) -> Void = { _ in }
    ) async throws -> Handheld {
        try await site.device(user, named: user, logger: logger) {
            configure(&$0, outcome, longest: longest)
            change(&$0)
        }
    }

    private func records() throws -> [KeptCall] { try CallJournal.records(in: "\(folder)/calls.jsonl") }

    /// The next file that a call is recorded to.
    private func recording(_ handheld: Handheld) async throws -> (call: CallID, path: String) {
        while let event = await handheld.next() {
            if case .recording(let call, let path) = event { return (call, path) }
        }
        throw StreamEnded()
    }

    private static let rule = #"answer.rules[1] "late" (line 7)"#

    @Test("A rule decides what a call says and how long it lasts, and record and log name the rule")
    func decided() async throws {
        defer { remove() }
        let site = try await Site()
        let device = try await device(site, "echo", .init(behaviour: "night", maximumDuration: .seconds(1)))
        let caller = try await site.device("caller", named: "mobile")
        _ = await caller.device.call("echo", audio: tone)
        #expect(try await recording(device).path.hasPrefix("\(folder)/night/"))
        #expect(try await device.ended().record.hangUpCause == .maximumDuration)
        try await site.close(caller, device)
        let record = try #require(try records().first)
        #expect(record.decidedBy == Self.rule && record.media?.sent.source == "tone")
        let logged = try #require(lines.metadata(of: "A rule has decided about a call").first)
        #expect(logged["rule"] == Self.rule && logged["behaviour"] == "night" && logged["from"] == "caller")
    }

    @Test("A rule that rejects is named in record and log, with its reason")
    func rejected() async throws {
        defer { remove() }
        let site = try await Site()
        let device = try await device(site, "echo", .init(.reject(.doNotDisturb), reason: "no advertising"))
        let caller = try await site.device("caller", named: "mobile")
        _ = await caller.device.call("echo", audio: tone)
        #expect(try await caller.ended().record.reason == .declined)
        _ = try await device.ended()
        try await site.close(caller, device)
        #expect(try records().first?.decidedBy == Self.rule + ": no advertising")
        #expect(lines.metadata(of: "A call is refused").first?["rule"] == Self.rule + ": no advertising")
    }

    @Test("CALL-8: The successor of a transferred call keeps its behaviour: sound, recordings and longest duration")
    func successor() async throws {
        defer { remove() }
        let site = try await Site(users: ["echo", "caller", "third"])
        let device = try await device(site, longest: .seconds(6))
        let caller = try await site.device("caller", named: "a")
        let third = try await site.device(
            "third", named: "b", answer: AnswerPolicy(manner: .answer(after: .zero), callLimit: .calls(1)))
        let call = await caller.device.call("echo", audio: tone)
        _ = try await caller.flowing()
        let first = try await recording(device)
        try await caller.device.transfer(call, to: "third")
        let second = try await recording(device)
        #expect(first.call != second.call && second.path.hasPrefix("\(folder)/night/") && first.path != second.path)
        while try await device.ended().record.hangUpCause != .maximumDuration {}
        try await site.close(caller, device, third)
        let all = try records()
        #expect(all.count == 2 && all.allSatisfy { $0.media?.sent.source == "tone" }, "\(all)")
        #expect(all.last?.transferredBy == "caller" && all.last?.hangUpCause == "max_call_seconds")
        #expect(FileManager.default.fileExists(atPath: second.path))
    }

    @Test("CALL-8: A call that replaces another one keeps that one's behaviour, and its record names the same rule")
    func replacement() async throws {
        defer { remove() }
        let site = try await Site(users: ["echo", "caller", "third"])
        let device = try await device(site)
        let caller = try await site.device("caller", named: "a")
        let third = try await site.device(
            "third", named: "b", answer: AnswerPolicy(manner: .answer(after: .zero), callLimit: .calls(2)))
        let first = await caller.device.call("third", audio: tone)
        _ = try await caller.flowing()
        let second = await caller.device.call("echo", audio: tone)
        _ = try await caller.flowing()
        let replaced = try await recording(device)
        try await caller.device.transfer(first, to: "echo", replacing: second)
        let new = try await recording(device)
        #expect(new.call != replaced.call && new.path.hasPrefix("\(folder)/night/"))
        _ = try await device.ended()
        await device.device.hangUp(new.call)
        _ = try await device.ended()
        try await site.close(caller, device, third)
        #expect(try records().map(\.decidedBy) == [Self.rule, Self.rule])
        #expect(try records().allSatisfy { $0.media?.sent.source == "tone" })
    }

    @Test("A call that the device places has the section `behaviour`")
    func placed() async throws {
        defer { remove() }
        let site = try await Site()
        let device = try await device(site)
        let other = try await site.device(
            "caller", named: "a", answer: AnswerPolicy(manner: .answer(after: .zero), callLimit: .calls(1)))
        let call = await device.device.call("caller")
        #expect(try await recording(device).path.hasPrefix("\(folder)/own/"))
        await device.device.hangUp(call)
        _ = try await device.ended()
        try await site.close(device, other)
        let record = try #require(try records().first)
        #expect(record.media?.sent.source == "silence" && record.decidedBy == nil)
    }

    @Test(
        "A recording that begins in mid-call goes to the folder of the call's behaviour, which is made again if it is gone"
    )
    func recordedLater() async throws {
        defer { remove() }
        let site = try await Site()
        let device = try await device(site)
        let caller = try await site.device("caller", named: "a")
        _ = await caller.device.call("echo", audio: tone)
        let first = try await recording(device)
        _ = try await device.flowing()
        try await device.device.stopRecording(first.call)
        var isStored = false
        while !isStored, let event = await device.next() {
            if case .recordingEnded = event { isStored = true }
        }
        for name in ["own", "night"] { try FileManager.default.removeItem(atPath: "\(folder)/\(name)") }
        let second = try await device.device.record(first.call)
        #expect(second.hasPrefix("\(folder)/night/") && second != first.path)
        await device.device.hangUp(first.call)
        _ = try await device.ended()
        try await site.close(caller, device)
        #expect(!FileManager.default.fileExists(atPath: "\(folder)/own"))
    }

    private static func passing(after time: Duration) -> AnswerRule.Outcome {
        AnswerRule.Outcome(.ring(then: .init(after: time, behaviour: "night")))
    }

    @Test(
        "A call that rings and that no user takes in the time of its rule goes to the other behaviour, and record and log say so"
    )
    func passedOn() async throws {
        defer { remove() }
        let site = try await Site()
        let device = try await device(site, "echo", Self.passing(after: .seconds(1)))
        let caller = try await site.device("caller", named: "a")
        _ = await caller.device.call("echo", audio: tone)
        let call = try await device.incoming()
        #expect(await device.device.isRinging(call))
        #expect(try await recording(device).path.hasPrefix("\(folder)/night/"))
        _ = try await caller.flowing()
        await device.device.hangUp(call)
        _ = try await device.ended()
        try await site.close(caller, device)
        let record = try #require(try records().first)
        #expect(record.decidedBy == Self.rule + ", then after 1 s the behaviour night")
        #expect(record.media?.sent.source == "tone" && record.answeredAfter ?? 0 >= 1_000)
        let logged = try #require(lines.metadata(of: "A call that rang goes to another behaviour").first)
        #expect(logged["behaviour"] == "night" && logged["rang_s"] == "1.0" && logged["rule"] == Self.rule)
    }

    @Test("A call that a user takes in time keeps the behaviour in which it rings")
    func takenInTime() async throws {
        defer { remove() }
        let site = try await Site()
        let device = try await device(site, "echo", Self.passing(after: .seconds(90)))
        let caller = try await site.device("caller", named: "a")
        _ = await caller.device.call("echo", audio: tone)
        let call = try await device.incoming()
        await device.device.answer(call)
        #expect(try await recording(device).path.hasPrefix("\(folder)/own/"))
        await device.device.hangUp(call)
        _ = try await device.ended()
        try await site.close(caller, device)
        let record = try #require(try records().first)
        #expect(record.decidedBy == Self.rule && record.media?.sent.source == "silence")
    }

    @Test("A call that rang on the sound card leaves it to the next call when another behaviour answers it")
    func leavesCard() async throws {
        defer { remove() }
        let site = try await Site(users: ["echo", "caller", "third"])
        let device = try await device(site, "echo", Self.passing(after: .seconds(4))) {
            $0.behaviour.source = .card
            ($0.audio.playback, $0.audio.capture) = ("null", "null")
            $0.audio.severalCalls = .refuse
        }
        let (caller, third) = (
            try await site.device("caller", named: "a"), try await site.device("third", named: "b")
        )
        _ = await caller.device.call("echo", audio: tone)
        let first = try await device.incoming()
        _ = await third.device.call("echo", audio: tone)
        #expect(try await third.ended().record.reason == .busy, "the card rings")
        _ = try await caller.flowing()
        #expect(await device.device.status.calls.first { $0.id == first }?.usesCard == false)
        _ = await third.device.call("echo", audio: tone)
        while try await device.incoming() == first {}
        _ = try await third.flowing()
        try await site.close(caller, device, third)
    }

    @Test("A call that would ring on a card that is missing goes to the other behaviour, and fails at once without one")
    func missingCard() async throws {
        defer { remove() }
        let site = try await Site()
        func outcome(_ outcome: AnswerRule.Outcome) async throws -> CallEndReason {
            let device = try await device(site, "echo", outcome) {
                $0.behaviour.source = .card
                ($0.audio.playback, $0.audio.capture) = ("handset-no-such-card", "handset-no-such-card")
            }
            try await until { await device.device.lacksCard }
            let caller = try await site.device("caller", named: "a")
            let call = await caller.device.call("echo", audio: tone)
            if outcome.sequel != nil {
                _ = try await caller.flowing()
                await caller.device.hangUp(call)
            }
            let reason = try await caller.ended().record.reason
            await device.device.shutDown()
            await caller.device.shutDown()
            return reason
        }
        #expect(try await outcome(Self.passing(after: .seconds(1))) == .completed)
        #expect(try await outcome(AnswerRule.Outcome(.ring())) != .completed)
        try await site.close()
    }

    @Test("Calls go by the newest rules that were taken, while those before them continue as they began")
    func reloads() async throws {
        defer { remove() }
        let site = try await Site()
        let device = try await device(site)
        let caller = try await site.device("caller", named: "a")
        func said(by configuration: DeviceConfiguration, isTaken: Bool) async throws -> String {
            #expect(await device.device.adopt(configuration) == isTaken)
            let call = await caller.device.call("echo", audio: tone)
            let path = try await recording(device).path
            _ = try await caller.flowing()
            await caller.device.hangUp(call)
            _ = try await caller.ended()
            return path
        }
        var other = DeviceConfiguration(account: AccountConfiguration(server: "http://127.0.0.1:1"))
        configure(&other, .init(behaviour: ""))
        let long = await caller.device.call("echo", audio: tone)
        #expect(try await recording(device).path.hasPrefix("\(folder)/night/"))
        _ = try await caller.flowing()
        #expect(try await said(by: other, isTaken: true).hasPrefix("\(folder)/own/"))
        // A program is set up at the start, so that the rules of the second reload wait with it.
        var waiting = other
        configure(&waiting, .init(behaviour: "program"))
        waiting.behaviours["program"] = BehaviourConfiguration()
        waiting.behaviours["program"]?.source = .exec(.init(command: ["cat"]))
        for _ in 1...2 { #expect(try await said(by: waiting, isTaken: false).hasPrefix("\(folder)/own/")) }
        configure(&other)
        #expect(try await said(by: other, isTaken: true).hasPrefix("\(folder)/night/"))
        #expect(await caller.device.goesOn(long))
        try await site.close(caller, device)
    }
}

extension Device {
    /// Whether its calls cannot have the sound card that is configured.
    fileprivate var lacksCard: Bool { card.absence != nil }
}
