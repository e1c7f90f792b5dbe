import AudioKit
import Foundation
@testable import CallMedia
@testable import MediaEngine
import Realtime
import Synchronization
import Testing

extension AudioFileThreads.Limits {
    /// For tests in which no disk hangs, however slow the machine is.
    static var patient: Self {
        Self(opening: .seconds(60), ending: .seconds(60), stall: .seconds(3_600), finish: .seconds(60))
    }
}

@Suite("The threads that move audio between files and rings", .timeLimit(.minutes(1)))
struct AudioFileThreadsTests {
    private let folder = FileManager.default.temporaryDirectory.appending(path: "handset-files-\(UUID().uuidString)")

    init() throws { try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true) }

    private func path(_ name: String) -> String { folder.appending(path: name).path() }

    /// Samples of which none is like its neighbours, so that a gap or a repeated block shows.
    private func count(to end: Int) -> [Int16] { (0..<end).map { Int16(truncatingIfNeeded: $0 &* 7 &+ 1) } }

    private func write(_ samples: [Int16], _ path: String) throws {
        var writer = try WAVWriter(path: path)
        try writer.append(samples.span)
        try writer.finish()
    }

    /// Reads the player to its end and gives all of it to the recorder.
    private func copy(_ files: inout CallFiles) async throws -> [Int16] {
        var heard: [Int16] = []
        var frame = [Int16](repeating: 0, count: 960)
        while files.rings.player?.hasEnded() == false {
            // Where the thread sleeps, the time limit ends this.
            var room = frame.mutableSpan
            let count = files.rings.player?.read(into: &room) ?? 0
            heard += frame[..<count]
            var rest = frame[..<count]
            while !rest.isEmpty {
                rest = rest.dropFirst(files.rings.recorder?.write(rest.span) ?? rest.count)
                if !rest.isEmpty { try await Task.sleep(for: .milliseconds(1)) }
            }
            if count == 0 { try await Task.sleep(for: .milliseconds(1)) }
        }
        return heard
    }

    @Test("A file is played and recorded whole after the thread has had no files for a while, time and again")
    func afterPause() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        // Five times what a player keeps ahead, and more than a recording may wait with.
        let samples = count(to: 80_000)
        try write(samples, path("in.wav"))
        let thread = try AudioFileThreads(.patient)
        for round in 1...3 {
            let behaviour = AudioBehaviour(
                source: .file(path: path("in.wav"), loops: false), recording: path("out-\(round).wav"))
            var files = try thread.open(behaviour) { Issue.record("\($0)") }
            #expect(try await copy(&files) == samples, "call \(round)")
            files.rings.recorder?.close()
            // What follows comes when the thread has no streams left and is on its way to wait.
            await withCheckedContinuation { done in thread.stop(files.ids) { done.resume() } }
            #expect(try AudioFileReader.samples(ofFile: path("out-\(round).wav")) == samples, "call \(round)")
        }
        thread.finish()
    }

    @Test("Files are finished when the thread ends, whether it was waiting or at work")
    func finish() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let thread = try AudioFileThreads(.patient)
        let samples = count(to: 5_000)
        for round in 1...2 {
            var files = try thread.open(AudioBehaviour(source: .echo, recording: path("\(round).wav"))) {
                Issue.record("\($0)")
            }
            #expect(files.rings.recorder?.write(samples.span) == samples.count)
            if round == 1 {
                await withCheckedContinuation { done in thread.stop(files.ids) { done.resume() } }
            } else {
                thread.finish()
            }
            #expect(try AudioFileReader.samples(ofFile: path("\(round).wav")) == samples)
        }
    }

    @Test("A recording that cannot be written is reported and left out; the file that is played is not touched")
    func withoutRecording() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let samples = count(to: 5_000)
        try write(samples, path("in.wav"))
        #expect(link(path("in.wav"), path("same.wav")) == 0)
        let thread = try AudioFileThreads(.patient)
        for (recording, code) in [
            ("nowhere/out.wav", AudioFileError.Code.notFound), ("in.wav", .inUse), ("same.wav", .inUse),
        ] {
            let failures = Mutex<[AudioFileError.Code]>([])
            var files = try thread.open(
                AudioBehaviour(source: .file(path: path("in.wav"), loops: false), recording: path(recording))
            ) { failure in failures.withLock { $0.append(failure.code) } }
            #expect(failures.withLock { $0 } == [code])
            let isRecorded = files.rings.recorder != nil
            #expect(!isRecorded)
            #expect(try await copy(&files) == samples)
            await withCheckedContinuation { done in thread.stop(files.ids) { done.resume() } }
        }
        // Two calls that record to one file: the first keeps it.
        var first = try thread.open(AudioBehaviour(source: .echo, recording: path("out.wav"))) { Issue.record("\($0)") }
        let second = Mutex<[AudioFileError.Code]>([])
        _ = try thread.open(AudioBehaviour(source: .echo, recording: path("out.wav"))) { failure in
            second.withLock { $0.append(failure.code) }
        }
        #expect(second.withLock { $0 } == [.inUse])
        #expect(first.rings.recorder?.write(samples.span) == samples.count)
        thread.finish()
        #expect(try AudioFileReader.samples(ofFile: path("out.wav")) == samples)
        #expect(try AudioFileReader.samples(ofFile: path("in.wav")) == samples)
    }
}
