import AudioKit
import Foundation
import Playout
import RTP
import Realtime
import Synchronization
import TestSupport
import Testing
import Core

@testable import CallMedia
@testable import MediaEngine

/// What a device writes of a call, and that the call can be replayed from it.
@Suite("Captured calls")
struct CaptureTests {
    private final class Folder {
        let path: String
        init() throws {
            path = NSTemporaryDirectory() + "capture-\(UUID())"
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        }
        var file: String { path + "/call.pcap" }
        deinit { try? FileManager.default.removeItem(atPath: path) }
    }

    /// What came of a call whose right side was captured.
    private struct Outcome {
        /// What the right side has heard once sound came.
        var heard: [Int16]
        var report: MediaReport
        var replay: StreamReplay.Result
        var bytes: [UInt8]
    }

    /// Three tones that come and go, and noise, so that no two frames are alike.
    private static let voice: [Int16] = {
        var seed: UInt32 = 1
        return (0..<(48_000 * 30)).map { index in
            seed = seed &* 1_664_525 &+ 1_013_904_223
            let time = Double(index) / 48_000
            let tones = sin(time * 2_000) + sin(time * 5_000 * (1 + time / 100)) + Double(seed >> 16) / 65_536
            return Int16(tones * 4_000 * (sin(time * 4) + 1))
        }
    }()

    private static func capture(
        _ change: (inout MediaCallPlan) -> Void = { _ in }, run: (inout VirtualCall) throws -> Void
    ) throws -> Outcome {
        let folder = try Folder()
        let thread = try AudioFileThreads(.patient)
        var plan = try VirtualCall.anyPlan()
        change(&plan)
        let order = CaptureOrder(
            path: folder.file, codec: plan.codec, playout: plan.playout, at: .zero, records: 1 << 15)
        var files = try thread.open(plan.audio, capture: order) { Issue.record("\($0)") }
        let ids = files.ids
        var rings = CallRings()
        swap(&rings, &files.rings)
        var call = try VirtualCall(voice: voice, rightRings: rings, change)
        try run(&call)
        let report = call.reports.right
        let heard = call.takeHeard()
        let done = DispatchSemaphore(value: 0)
        thread.stop(ids) { done.signal() }
        #expect(done.wait(timeout: .now() + 60) == .success)
        thread.finish()
        var status = stat()
        #expect(stat(folder.file, &status) == 0 && status.st_mode & 0o777 == 0o600, "for its owner alone")
        let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: folder.file)))
        let replay = try #require(try StreamReplay().run(try PacketRecording(parsing: bytes)))
        return Outcome(heard: heard, report: report, replay: replay, bytes: bytes)
    }

    private static func expectSame(_ outcome: Outcome) throws {
        let comparison = try #require(outcome.replay.comparison)
        #expect(comparison.recordsLost == 0 && outcome.report.call.captureRecordsLost == 0)
        #expect(comparison.isSame, "from \(comparison.firstDifferenceMilliseconds ?? -1) ms on")
        #expect(outcome.heard.count > 48_000 && outcome.heard.contains { $0 > 1_000 })
        // Told by the call's own recording, which knows nothing of the capture.
        #expect(outcome.replay.samples.suffix(outcome.heard.count) == outcome.heard[...])
        var checksum = SampleChecksum()
        checksum.add(outcome.replay.samples.span)
        #expect(outcome.replay.checksum == checksum)
        let (seen, replayed) = (outcome.report.playout, outcome.replay.statistics)
        #expect(seen.packetsReceived == replayed.packetsReceived && seen.packetsLost == replayed.packetsLost)
        #expect(seen.samplesConcealed == replayed.samplesConcealed && seen.packetsRepaired == replayed.packetsRepaired)
    }

    /// A path that loses, and holds back, what it likes.
    private static func damage(_ call: inout VirtualCall) {
        var seed: UInt32 = 7
        call.travel = .milliseconds(20)
        call.loss = 0.08
        call.jitter = {
            seed = seed &* 1_664_525 &+ 1_013_904_223
            return .milliseconds(Int64(seed >> 24) % 60)
        }
        call.turn = .milliseconds(5)
        call.readsLikeWorker = true
    }

    @Test("A captured call with jitter and loss is replayed to the very samples that the device heard")
    func lossy() throws {
        let outcome = try Self.capture { call in
            Self.damage(&call)
            try call.run(seconds: 20)
        }
        try Self.expectSame(outcome)
        #expect(outcome.report.playout.samplesConcealed > 4_800, "a replay that is to the point")
    }

    @Test("So is one whose lost packets are sent again, and one whose frames are sent twice", arguments: [false, true])
    func repaired(isRedundant: Bool) throws {
        let outcome = try Self.capture(
            { plan in
                if isRedundant {
                    plan.peer.redundancy = RedundancyFormat(sendPayloadType: 63, receivePayloadType: 63)
                    plan.encoder.fec = false
                } else {
                    plan.peer.repairsLoss = true
                }
            },
            run: { call in
                Self.damage(&call)
                try call.run(seconds: 25)
            })
        try Self.expectSame(outcome)
        #expect(!isRedundant || outcome.report.playout.packetsRepaired > 10)
    }

    @Test("So is one of G.711 that continues with Opus")
    func changed() throws {
        let outcome = try Self.capture(
            { plan in
                plan.codec = .pcmu
                plan.peer.clockRate = 8_000
                (plan.peer.sendPayloadType, plan.peer.receivePayloadType) = (0, 0)
            },
            run: { call in
                Self.damage(&call)
                try call.run(seconds: 5)
                for end in [call.left, call.right] {
                    try call.change(end) { plan in
                        plan.codec = .opus
                        plan.peer.clockRate = 48_000
                        (plan.peer.sendPayloadType, plan.peer.receivePayloadType) = (111, 111)
                    }
                }
                try call.run(seconds: 5)
            })
        try Self.expectSame(outcome)
    }

    @Test("A replay that does not make what the device heard says from where on")
    func different() throws {
        let outcome = try Self.capture { call in try call.run(seconds: 5) }
        var recording = try PacketRecording(parsing: outcome.bytes)
        let media = recording.packets.indices.filter { recording.packets[$0].destinationPort == CaptureNote.mediaPort }
        recording = try PacketRecording(
            parsing: Self.file(recording.packets.enumerated().filter { $0.offset != media[100] }))
        let replay = try #require(try StreamReplay().run(recording))
        let from = try #require(replay.comparison?.firstDifferenceMilliseconds)
        #expect(replay.comparison?.isSame == false && (1_900...2_200).contains(from), "packet 100 is 2 s into the call")
    }

    private static func file(_ packets: [(offset: Int, element: PacketRecording.Packet)]) -> [UInt8] {
        packets.reduce(into: PcapWriter.header) { bytes, packet in
            bytes +=
                PcapWriter.record(
                    packet.element.bytes, atNanoseconds: packet.element.offsetNanoseconds,
                    sourcePort: packet.element.sourcePort, destinationPort: packet.element.destinationPort) ?? []
        }
    }

    @Test("A capture holds no canonical name, no contributors and no header extensions")
    func noNames() throws {
        let outcome = try Self.capture(
            { plan in plan.peer.headerExtensions.audioLevelIdentifier = 1 },
            run: { call in
                try call.run(seconds: 10)
            })
        let text = String(decoding: outcome.bytes, as: UTF8.self)
        #expect(!text.contains("peer1") && !text.contains("peer2"), "RTCP has the names")
        let recording = try PacketRecording(parsing: outcome.bytes)
        let media = recording.packets.filter { $0.destinationPort == CaptureNote.mediaPort }
        #expect(media.count > 400 && media.allSatisfy { $0.bytes[0] == 0x80 })
        // Both addresses of every datagram are zeros: the IP header begins 16 bytes into its record.
        var offset = 24
        while offset < outcome.bytes.count {
            let length = outcome.bytes[(offset + 8)..<(offset + 12)].reduce(0) { $0 << 8 | Int($1) }
            #expect(outcome.bytes[(offset + 28)..<(offset + 36)].allSatisfy { $0 == 0 })
            offset += 16 + length
        }
    }

    @Test("What finds no room is left out and counted, in the file as in the report")
    func overrun() throws {
        var ring = SPSCRing<CaptureRecord>(capacity: 4)
        var end = CaptureWriter(ring.producer, at: .zero)
        for number in 0..<10 { end.note(.advance, Int64(number)) }
        #expect(end.countLost() == 6)
        for number in 0..<4 {
            let kept = ring.consumer.pop()?.value
            #expect(kept == Int64(number))
        }
        end.note(.advance, 10)
        let next = ring.consumer.pop()
        let record = try #require(next)
        #expect(record.lostBefore == 6 && record.value == 10)
        let notes = record.datagrams.map { CaptureNote(parsing: $0.bytes) }
        #expect(notes == [.lost(6), .advance(nanoseconds: 10)])
    }

    @Test("A capture is not written through a link, nor to what is no regular file; the call continues without")
    func refused() throws {
        let folder = try Folder()
        let target = folder.path + "/target"
        #expect(FileManager.default.createFile(atPath: target, contents: Data("kept".utf8)))
        try FileManager.default.createSymbolicLink(atPath: folder.path + "/link", withDestinationPath: target)
        #expect(mkfifo(folder.path + "/pipe", 0o600) == 0)
        for name in ["link", "pipe", "no/such/folder"] {
            let thread = try AudioFileThreads(.patient)
            let order = CaptureOrder(
                path: "\(folder.path)/\(name)", codec: .opus, playout: PlayoutConfiguration(), at: .zero)
            let errors = Mutex<[AudioFileError]>([])
            let files = try thread.open(AudioBehaviour(source: .silence), capture: order) { error in
                errors.withLock { $0.append(error) }
            }
            #expect(errors.withLock { $0.count } == 1 && files.ids.isEmpty, "\(name)")
            thread.finish()
        }
        #expect(try String(contentsOfFile: target, encoding: .utf8) == "kept")
    }

    @Test("A note may contain any bytes, and what is written is read again the same")
    func notes() {
        let notes: [CaptureNote] = [
            .start(codec: .pcma, PlayoutConfiguration(), baseNanoseconds: 17, decoder: "libopus 1.3.1"),
            .pull(count: 960, SampleChecksum()), .advance(nanoseconds: -5), .patience(nanoseconds: 3),
            .repair(nanoseconds: nil), .repair(nanoseconds: 9), .request(number: 1 << 40),
            .passOver(sequenceNumber: 65_535, ssrc: .max), .change(.opus), .lost(3),
            .copy(timestampOffset: 960, sequenceNumber: 1, timestamp: 2, ssrc: 3, format: 4, payload: [10, 0, 255]),
        ]
        for note in notes {
            #expect(CaptureNote(parsing: note.bytes) == note)
            for length in note.bytes.indices { _ = CaptureNote(parsing: Array(note.bytes[..<length])) }
        }
        var generator = SeededGenerator(seed: 3)
        for _ in 0..<20_000 {
            var bytes = notes.randomElement(using: &generator)?.bytes ?? []
            for _ in 0..<4 {
                guard let index = bytes.indices.randomElement(using: &generator) else { continue }
                bytes[index] = UInt8.random(in: 32...127, using: &generator)
            }
            _ = CaptureNote(parsing: bytes)
        }
    }
}
