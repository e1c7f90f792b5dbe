import AudioKit
import CallMedia
import Core
import Dispatch
import Foundation
import Realtime
import Synchronization
import Testing

@testable import MediaEngine

@Suite("A disk that hangs", .timeLimit(.minutes(1)))
struct HangingDiskTests {
    /// A folder whose disk hangs, from the first use or a later moment until it is released.
    private final class Disk: Sendable {
        let folder: String
        private let isHanging: Mutex<Bool>
        private let gate = DispatchSemaphore(value: 0)
        private let (uses, firstUse) = AsyncStream.makeStream(of: Void.self)

        init(_ folder: String, hangs: Bool = true) {
            self.folder = folder
            isHanging = Mutex(hangs)
        }

        func hang() { isHanging.withLock { $0 = true } }

        func use(_ used: String) {
            guard used == folder, isHanging.withLock({ $0 }) else { return }
            firstUse.finish()
            gate.wait()
        }

        /// Returns when a thread waits for it.
        func isWaitedFor() async { for await _ in uses {} }

        func answer() {
            isHanging.withLock { $0 = false }
            gate.signal()
        }
    }

    /// What is reported of a call's files.
    private final class Log: Sendable {
        private let errors = Mutex<[AudioFileError]>([])
        private let (ends, end) = AsyncStream.makeStream(of: RecordingEnd.self)

        var failures: [AudioFileError.Code] { errors.withLock { $0.map(\.code) } }
        var text: String { errors.withLock { $0.map(\.description).joined() } }

        var reports: FileReports {
            FileReports(
                onFailure: { error in self.errors.withLock { $0.append(error) } },
                onRecordingEnd: { self.end.yield($0) })
        }

        /// The next recording that ends.
        func nextEnd() async -> RecordingEnd? { await ends.first { _ in true } }
    }

    private let root = FileManager.default.temporaryDirectory.appending(path: "handset-hang-\(UUID().uuidString)")
    private let disk: Disk
    private var slow: String { disk.folder }
    private let fast: String

    init() throws {
        disk = Disk(root.appending(path: "slow").path())
        fast = root.appending(path: "fast").path()
        for folder in [disk.folder, fast] {
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        }
    }

    /// Files that wait for nothing, and whose disks are looked at by the test alone.
    private func makeThreads(finish: Duration = .seconds(60)) throws -> AudioFileThreads {
        var limits = AudioFileThreads.Limits()
        limits.opening = .zero
        limits.stall = .seconds(3_600)
        limits.ending = .seconds(3_600)
        limits.finish = finish
        return try AudioFileThreads(limits) { [disk] in disk.use($0) }
    }

    private static var muchLater: Instant { MonotonicClock.now.advanced(by: .seconds(7_200)) }

    @Test(
        "A call begins and ends without its files, which are named, and are whole when the disk answers, except what it missed"
    )
    func call() async throws {
        defer { try? FileManager.default.removeItem(at: root) }
        let threads = try makeThreads()
        let log = Log()
        var files = try threads.open(AudioBehaviour(source: .echo, recording: slow + "/kept.wav"), log.reports)
        let isRecorded = files.recording != nil
        #expect(isRecorded && log.failures.isEmpty)
        // The call runs: some of its sound finds no space.
        let sound = [Int16](repeating: 7, count: 960)
        #expect(files.rings.recorder?.write(sound.span) == 960)
        files.rings.recorder?.noteRefused(480)
        await disk.isWaitedFor()
        let isOver = Mutex(false)
        threads.stop(files.ids) { isOver.withLock { $0 = true } }
        #expect(isOver.withLock { $0 } == false)
        threads.check(at: Self.muchLater)
        #expect(isOver.withLock { $0 } == true, "the call has ended")
        threads.check(at: Self.muchLater)
        #expect(log.failures == [.stalled], "said once")
        #expect(log.text.contains(slow + "/kept.wav") && log.text.contains("has not answered for"))

        disk.answer()
        let end = try #require(await log.nextEnd())
        #expect(end.path == slow + "/kept.wav" && end.duration == .milliseconds(20) && end.missed == .milliseconds(10))
        #expect(end.failure?.code == .stalled)
        threads.finish()
        #expect(try AudioFileReader.samples(ofFile: slow + "/kept.wav") == sound)
    }

    @Test("A recording that is being closed while its disk is slow has lost nothing, and does not fail")
    func slowEnd() async throws {
        defer { try? FileManager.default.removeItem(at: root) }
        let late = Disk(slow, hangs: false)
        var limits = AudioFileThreads.Limits()
        (limits.opening, limits.stall, limits.finish) = (.seconds(60), .seconds(3_600), .seconds(36_000))
        let threads = try AudioFileThreads(limits) { late.use($0) }
        let log = Log()
        var files = try threads.open(AudioBehaviour(source: .echo, recording: slow + "/kept.wav"), log.reports)
        let sound = [Int16](repeating: 7, count: 960)
        #expect(files.rings.recorder?.write(sound.span) == 960)
        late.hang()
        threads.stop(files.ids) {}
        await late.isWaitedFor()
        threads.check(at: Self.muchLater)
        #expect(log.failures.isEmpty)
        late.answer()
        let end = try #require(await log.nextEnd())
        #expect(end.failure == nil && end.missed == .zero && end.path == slow + "/kept.wav")
        threads.finish()
        #expect(try AudioFileReader.samples(ofFile: slow + "/kept.wav") == sound)
    }

    @Test("A recording that is still being closed when it should long be is reported, once")
    func hangingEnd() async throws {
        defer { try? FileManager.default.removeItem(at: root) }
        let threads = try makeThreads()
        let log = Log()
        let files = try threads.open(AudioBehaviour(source: .echo, recording: slow + "/kept.wav"), log.reports)
        await disk.isWaitedFor()
        threads.stop(files.ids) {}
        for _ in 1...2 { threads.check(at: Self.muchLater) }
        #expect(log.failures == [.stalled])
        disk.answer()
        threads.finish()
    }

    @Test("A disk that hangs takes no further files until it answers")
    func refuses() async throws {
        defer { try? FileManager.default.removeItem(at: root) }
        let threads = try makeThreads()
        let (first, second, third) = (Log(), Log(), Log())
        _ = try threads.open(AudioBehaviour(source: .echo, recording: slow + "/1.wav"), first.reports)
        await disk.isWaitedFor()
        threads.check(at: Self.muchLater)
        let refused = try threads.open(AudioBehaviour(source: .echo, recording: slow + "/2.wav"), second.reports)
        let isRefused = refused.ids.isEmpty
        #expect(isRefused && second.failures == [.stalled])
        #expect(throws: MediaStartError.self) {
            _ = try threads.open(AudioBehaviour(source: .file(path: slow + "/in.wav", loops: false)), third.reports)
        }
        disk.answer()
        threads.finish()
        #expect(await first.nextEnd()?.path == slow + "/1.wav")
        #expect(try FileManager.default.contentsOfDirectory(atPath: slow) == ["1.wav"])
    }

    @Test("Files on another disk are recorded meanwhile")
    func otherDisk() async throws {
        defer { try? FileManager.default.removeItem(at: root) }
        let threads = try makeThreads()
        _ = try threads.open(AudioBehaviour(source: .echo, recording: slow + "/kept.wav"), Log().reports)
        let log = Log()
        var files = try threads.open(AudioBehaviour(source: .echo, recording: fast + "/kept.wav"), log.reports)
        let sound = [Int16](repeating: 7, count: 960)
        #expect(files.rings.recorder?.write(sound.span) == 960)
        await withCheckedContinuation { done in threads.stop(files.ids) { done.resume() } }
        #expect(try AudioFileReader.samples(ofFile: fast + "/kept.wav") == sound)
        #expect(log.failures.isEmpty)
        disk.answer()
        threads.finish()
    }

    @Test("A recording that is begun by command fails when its disk hangs, and leaves nothing when that answers")
    func command() async throws {
        defer { try? FileManager.default.removeItem(at: root) }
        let threads = try makeThreads()
        let log = Log()
        let path = slow + "/kept.wav"
        let recording = Task { () -> AudioFileError.Code? in
            do throws(MediaStartError) {
                _ = try await threads.record(RecordingOrder(path: path, RecordingFormat()), log.reports)
                return nil
            } catch {
                return error.file?.code
            }
        }
        await disk.isWaitedFor()
        threads.check(at: Self.muchLater)
        #expect(await recording.value == .stalled)
        disk.answer()
        threads.finish()
        #expect(try FileManager.default.contentsOfDirectory(atPath: slow).isEmpty)
    }

    @Test("The process ends although a disk hangs, and the recording is reported as failed, once")
    func processEnd() async throws {
        defer { try? FileManager.default.removeItem(at: root) }
        let threads = try makeThreads(finish: .zero)
        let log = Log()
        _ = try threads.open(AudioBehaviour(source: .echo, recording: slow + "/kept.wav"), log.reports)
        threads.finish()
        let end = try #require(await log.nextEnd())
        #expect(end.path == slow + "/kept.part.wav" && end.failure?.code == .stalled && log.failures == [.stalled])
        disk.answer()
    }

    @Test("An engine starts a call, and reports its end, while the disk of its recording hangs")
    func engine() async throws {
        defer { try? FileManager.default.removeItem(at: root) }
        var limits = AudioFileThreads.Limits()
        (limits.opening, limits.ending, limits.finish) = (.zero, .zero, .zero)
        let threads = try AudioFileThreads(limits) { [disk] in disk.use($0) }
        let (events, sink) = AsyncStream.makeStream(of: MediaEvent.self)
        let address = try #require(SocketAddress(host: "127.0.0.1", port: 0))
        let engine = try MediaEngine(
            MediaEngineConfiguration(bindAddress: address, realtimePriority: nil), files: threads
        ) {
            sink.yield($0)
        }
        var plan = try VirtualCall.anyPlan()
        plan.audio = AudioBehaviour(source: .echo, recording: slow + "/kept.wav")
        let call = try engine.start(plan, at: engine.place())
        #expect(engine.isRecording(call))
        engine.stop(call)
        let ended = await events.first { if case .ended(call, _) = $0 { true } else { false } }
        #expect(ended != nil)
        engine.shutdown()
        disk.answer()
    }
}
