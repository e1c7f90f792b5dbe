import AudioKit
import CallAgent
import CallControl
import Foundation
import CallMedia
import MediaEngine
import Playout
import TestSupport
import Testing

/// Calls of a caller to a device, one after the other, in which both say something, and both record what they hear.
struct CallSeries {
    /// What the device does in a call.
    enum Behaviour: String, CaseIterable {
        case echo, play, tone, silence
    }

    let behaviour: Behaviour
    private let number: Int
    private let caller: Handheld
    private let device: Handheld
    private let folder: String
    private let said: [Int16]
    private let answer: [Int16]

    /// A file of the caller is longer than what a recording's ring holds: 1.4 s.
    static let seconds = 2.0

    /// Connects both.
    ///
    /// - Parameter number: Unlike that of any other series of the site.
    init(_ behaviour: Behaviour, number: Int, at site: Site, in folder: String) async throws {
        (self.behaviour, self.number) = (behaviour, number)
        let folder = "\(folder)/\(number)"
        self.folder = folder
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        said = Self.voice(pitchHz: 130)
        answer = Self.voice(pitchHz: 170)
        try Self.write(said, to: "\(folder)/said.wav")
        try Self.write(answer, to: "\(folder)/answer.wav")
        device = try await site.device(
            "device\(number)", named: "device\(number)", answer: AnswerPolicy(manner: .answer(after: .zero))
        ) { configuration in
            configuration.behaviour.recordingFolder = "\(folder)/kept"
            configuration.behaviour.source =
                switch behaviour {
                case .echo: .echo
                case .play: .file(path: "\(folder)/answer.wav", loops: false)
                case .tone: .tone(frequencyHz: 440, levelDBFS: -12)
                case .silence: .silence
                }
        }
        try FileManager.default.createDirectory(atPath: "\(folder)/kept", withIntermediateDirectories: true)
        caller = try await site.device("caller", named: "caller\(number)")
    }

    /// Users that a site needs for so many series.
    static func users(_ count: Int) -> [String] { ["caller"] + (0..<count).map { "device\($0)" } }

    /// Makes a call and compares both recordings with what was said, from beginning to end. On a machine that is too busy
    /// for the call's sound to be whole, the call is made again: a fault of the files is there in each try.
    func call(_ round: Int) async throws {
        var complaints: [String] = []
        for _ in 1...10 {
            guard let found = try await tryCall(round) else { return }
            complaints = found
        }
        let last = complaints.joined(separator: "; ")
        Issue.record("ten calls in a row were not whole: their files, or a machine that is too busy; \(last)")
    }

    /// - Returns: Nothing if both recordings have what was said; else what they lack, if a busy machine can be the cause.
    private func tryCall(_ round: Int) async throws -> [String]? {
        let kept = "\(folder)/caller-\(round).wav"
        let call = await caller.device.call(
            UserID(ours: "device\(number)"),
            audio: AudioBehaviour(source: .file(path: "\(folder)/said.wav", loops: false), recording: kept))
        _ = try await caller.flowing()
        let incoming = try await device.incoming()
        try await hear { if case .playbackEnded = $0 { true } else { false } }
        // What is on its way, there and back, is to be heard: 600 ms of packets.
        let before = try #require(await caller.device.mediaReport(on: call)).peer.packetsReceived
        try await until {
            guard let report = await caller.device.mediaReport(on: call) else { return true }
            return report.peer.packetsReceived >= before + 30
        }
        // A key takes the place of sound, so that keys come last.
        try await device.device.press("12#", on: incoming)
        for key in "12#" {
            try await hear { if case .digit(_, key, _) = $0 { true } else { false } }
        }
        await caller.device.hangUp(call)
        let reports = [try await caller.ended().report, try await device.ended().report].compactMap(\.self)
        #expect(reports.count == 2)
        let isWhole = reports.allSatisfy {
            $0.call.framesSkipped == 0 && $0.playout.packetsLost == 0 && $0.playout.packetsLate == 0
        }
        // A call's end waits 2 s for its files, and a busy disk may take longer.
        try await until {
            try ([kept] + recordings).allSatisfy {
                FileManager.default.fileExists(atPath: $0) && !$0.contains(".part.")
            }
        }
        let complaints = isWhole ? try check(round, kept) : []
        for file in try [kept] + recordings { try FileManager.default.removeItem(atPath: file) }
        guard isWhole else { return ["frames were skipped, or packets late"] }
        guard reports.allSatisfy({ $0.playUnderrunSamples == 0 && $0.recordOverrunSamples == 0 }) else {
            return ["the thread of files was late"] + complaints
        }
        // The jitter buffer changes the sound where packets come later than expected, though none too late.
        let isChanged = reports.contains { $0.playout.samplesConcealed > 0 || $0.playout.samplesDecelerated > 0 }
        if !isChanged { for complaint in complaints { Issue.record("\(complaint)") } }
        return complaints.isEmpty || !isChanged ? nil : complaints
    }

    /// What the device has recorded.
    private var recordings: [String] {
        get throws {
            let folder = "\(folder)/kept"
            return try FileManager.default.contentsOfDirectory(atPath: folder).map { "\(folder)/\($0)" }
        }
    }

    /// Waits until the caller's device tells of something.
    private func hear(_ isIt: (DeviceEvent) -> Bool) async throws {
        while let event = await caller.next() {
            if case .fileFailed(_, let error) = event { Issue.record("\(error)") }
            if case .ended(_, let record, _) = event { throw EndedEarly(record: record) }
            if isIt(event) { return }
        }
        throw StreamEnded()
    }

    /// What both recordings lack.
    private func check(_ round: Int, _ kept: String) throws -> [String] {
        let recordings = try recordings
        #expect(recordings.count == 1, "call \(round) of \(behaviour): \(recordings)")
        var complaints = try recordings.compactMap { try check(said, $0, "what the device heard in call \(round)") }
        switch behaviour {
        case .echo: complaints += try [check(said, kept, "what came back in call \(round)")].compactMap(\.self)
        case .play: complaints += try [check(answer, kept, "what the device said in call \(round)")].compactMap(\.self)
        case .tone, .silence: #expect(try AudioFileReader.samples(ofFile: kept).count >= Int(Self.seconds * 48_000))
        }
        return complaints
    }

    private func check(_ said: [Int16], _ path: String, _ what: String) throws -> String? {
        let heard = try AudioFileReader.samples(ofFile: path)
        // The paths of this machine are short, and a narrow search takes a third of the time.
        var analysis = LikenessAnalysis()
        (analysis.maximumDelayMilliseconds, analysis.searchMilliseconds) = (1_000, 40)
        let report = try #require(analysis.compare(sent: said, received: heard), "\(what): nothing")
        let hasAll = report.unheardWindows == 0 && report.foundWindows == report.speechWindows && report.likeness > 0.8
        return hasAll ? nil : "\(what): \(report)"
    }

    func close() async {
        await caller.device.shutDown()
        await device.device.shutDown()
    }

    private static func voice(pitchHz: Double) -> [Int16] {
        SyntheticVoice.samples(Int(seconds * 48_000), pitchHz: pitchHz)
    }

    private static func write(_ samples: [Int16], to path: String) throws {
        var writer = try WAVWriter(path: path)
        try writer.append(samples.span)
        try writer.finish()
    }
}
