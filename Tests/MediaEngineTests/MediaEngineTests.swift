import AudioKit
import Realtime
import Foundation
import CallMedia
import MediaEngine
import Core
import Playout
import SecureTransport
import TestSupport
import Testing

@Suite("Media engine on the loopback", .witnessed, .timeLimit(.minutes(5)))
struct MediaEngineTests {
    private func temporaryPath(_ name: String) -> String {
        FileManager.default.temporaryDirectory.appending(path: "handset-\(UUID().uuidString)-\(name)").path()
    }

    private func writeWAV(_ samples: [Int16], _ path: String) throws {
        var writer = try WAVWriter(path: path)
        try writer.append(samples.span)
        try writer.finish()
    }

    @Test("CALL-2: A played file comes back from an echo and is recorded, and both sides count what they did")
    func echo() async throws {
        let pair = try EnginePair()
        let (spoken, kept) = (temporaryPath("spoken.wav"), temporaryPath("kept.wav"))
        defer { [spoken, kept].forEach { try? FileManager.default.removeItem(atPath: $0) } }
        var tone = ToneGenerator(frequencyHz: 440, levelDBFS: -12)
        var samples = [Int16](repeating: 0, count: 48_000)
        var span = samples.mutableSpan
        tone.fill(&span)
        try writeWAV(samples, spoken)

        let call = try pair.call(
            callerAudio: AudioBehaviour(source: .file(path: spoken, loops: false), recording: kept),
            deviceAudio: AudioBehaviour(source: .echo))
        try await pair.callerEvents.flowing(call.caller)
        try await pair.deviceEvents.flowing(call.device)
        _ = try await pair.callerEvents.first {
            if case .playbackEnded(call.caller) = $0 { true } else { false }
        }
        let live = try #require(await pair.caller.report(on: call.caller))
        #expect(live.peer.packetsSent >= 50)
        pair.caller.stop(call.caller)
        let report = try await pair.callerEvents.ended(call.caller)
        _ = try await pair.deviceEvents.first {
            if case .goodbyeReceived(call.device) = $0 { true } else { false }
        }
        pair.device.stop(call.device)
        let deviceReport = try await pair.deviceEvents.ended(call.device)
        pair.shutdown()

        #expect(report.peer.dropped.total == 0 && deviceReport.peer.dropped.total == 0)
        #expect(deviceReport.peer.packetsReceived >= 50)
        #expect(report.peer.packetsReceived >= 45)
        let heard = try AudioFileReader.samples(ofFile: kept)
        var meter = LevelMeter()
        meter.add(heard.span)
        #expect(heard.count >= 45_000)
        #expect(meter.peakDBFS > -16, "the tone at -12 dBFS came back")
        #expect(await pair.caller.report(on: call.caller) == nil, "a call that has ended has no report")
    }

    @Test("Packets under another key are counted and dropped, and never make a call")
    func wrongKey() async throws {
        let pair = try EnginePair()
        let call = try pair.call(
            callerAudio: AudioBehaviour(source: .silence), deviceAudio: AudioBehaviour(source: .echo),
            deviceReceiveKeySeed: 99)
        // The device starts by itself after its patience, so the caller hears it although it is not heard.
        _ = try await pair.callerEvents.first { if case .mediaReceived(call.caller, _) = $0 { true } else { false } }
        pair.device.stop(call.device)
        let report = try await pair.deviceEvents.ended(call.device)
        pair.shutdown()
        #expect(report.peer.dropped.unauthenticated > 0)
        #expect(report.peer.packetsReceived == 0)
        #expect(!pair.deviceEvents.all.contains { if case .flowing = $0 { true } else { false } })
    }

    @Test("Twenty calls between two sockets find each other by SSRC, and end one by one", arguments: SRTPSuite.allCases)
    func manyCalls(suite: SRTPSuite) async throws {
        let pair = try EnginePair()
        let calls = try (1...20).map { number in
            try pair.call(
                number: UInt32(number), suite: suite,
                callerAudio: AudioBehaviour(source: .tone(frequencyHz: 300 + 20 * Double(number), levelDBFS: -10)),
                deviceAudio: AudioBehaviour(source: .echo))
        }
        for call in calls {
            try await pair.callerEvents.flowing(call.caller)
            try await pair.deviceEvents.flowing(call.device)
        }
        for call in calls {
            pair.device.stop(call.device)
            pair.caller.stop(call.caller)
            let report = try await pair.callerEvents.ended(call.caller)
            #expect(report.peer.packetsReceived > 0)
            // The last packets of calls that ended before may be tried on a call that is left, and fail there.
            #expect(report.peer.dropped.total == report.peer.dropped.unauthenticated)
            _ = try await pair.deviceEvents.ended(call.device)
        }
        pair.shutdown()
    }

    @Test("Formats that change in a running call are heard on without a gap, over sockets too")
    func formats() async throws {
        let pair = try EnginePair()
        var plans: [MediaCallPlan] = []
        let call = try pair.call(
            callerAudio: AudioBehaviour(source: .tone(frequencyHz: 440, levelDBFS: -12)),
            deviceAudio: AudioBehaviour(source: .echo)
        ) { plans.append($0) }
        try await pair.callerEvents.flowing(call.caller)
        try await pair.deviceEvents.flowing(call.device)
        for (codec, number) in [(SoundCodec.opus, UInt8(96)), (.pcmu, 0), (.pcma, 8), (.opus, 111)] {
            for index in plans.indices {
                plans[index].codec = codec
                plans[index].peer.clockRate = codec == .opus ? 48_000 : 8_000
                plans[index].peer.sendPayloadType = number
                plans[index].peer.receivePayloadType = number
            }
            try pair.device.change(call.device, to: plans[0])
            try pair.caller.change(call.caller, to: plans[1])
            let (caller, device) = (
                try #require(await pair.caller.report(on: call.caller)),
                try #require(await pair.device.report(on: call.device))
            )
            // Both go on to hear each other: bounded by the suite's time limit.
            for (engine, id, sent) in [
                (pair.caller, call.caller, caller.peer.packetsReceived),
                (pair.device, call.device, device.peer.packetsReceived),
            ] {
                try await until { try #require(await engine.report(on: id)).peer.packetsReceived >= sent + 12 }
            }
        }
        pair.caller.stop(call.caller)
        pair.device.stop(call.device)
        let reports = [
            try await pair.callerEvents.ended(call.caller), try await pair.deviceEvents.ended(call.device),
        ]
        try pair.caller.change(call.caller, to: plans[1])
        pair.shutdown()
        for report in reports {
            #expect(report.playout.resets == 0 && report.call.encodeErrors == 0)
            // The first of the two is told a moment earlier than the other, and drops what comes in a format that it has given up.
            #expect(report.peer.dropped.total <= 8)
            #expect(report.playout.packetsLost <= report.peer.dropped.total)
        }
    }

    @Test("New keys in the descriptions take over in the running call", arguments: SRTPSuite.allCases)
    func keys(suite: SRTPSuite) async throws {
        let pair = try EnginePair()
        let call = try pair.call(
            callerAudio: AudioBehaviour(source: .tone(frequencyHz: 440, levelDBFS: -12)),
            deviceAudio: AudioBehaviour(source: .echo))
        try await pair.callerEvents.flowing(call.caller)
        try await pair.deviceEvents.flowing(call.device)
        var generator = SeededGenerator(seed: 5)
        let (there, back) = (SRTPKey.random(suite, using: &generator), SRTPKey.random(suite, using: &generator))
        try pair.device.rekey(call.device, send: back, receive: there)
        try pair.caller.rekey(call.caller, send: there, receive: back)
        for (engine, id) in [(pair.caller, call.caller), (pair.device, call.device)] {
            let before = try #require(await engine.report(on: id)).peer.packetsReceived
            try await until { try #require(await engine.report(on: id)).peer.packetsReceived >= before + 20 }
        }
        pair.caller.stop(call.caller)
        let report = try await pair.callerEvents.ended(call.caller)
        pair.shutdown()
        // What the device sent with its new key before the caller had it.
        #expect(report.peer.dropped.unauthenticated <= 4)
    }

    @Test("A file that cannot be played is an error before the call starts, with its path")
    func missingFile() throws {
        let pair = try EnginePair()
        let error = #expect(throws: MediaStartError.self) {
            _ = try pair.call(
                callerAudio: AudioBehaviour(source: .file(path: "/nowhere/speech.wav", loops: false)),
                deviceAudio: AudioBehaviour(source: .echo))
        }
        pair.shutdown()
        #expect(error?.file?.code == .notFound)
        #expect(error?.description.contains("/nowhere/speech.wav") == true)
    }

    @Test("Garbage, truncated and oversized datagrams do not disturb a call")
    func garbage() async throws {
        let pair = try EnginePair()
        let call = try pair.call(
            callerAudio: AudioBehaviour(source: .tone(frequencyHz: 440, levelDBFS: -12)),
            deviceAudio: AudioBehaviour(source: .echo))
        try await pair.deviceEvents.flowing(call.device)
        let loopback = try #require(SocketAddress(host: "127.0.0.1", port: 0))
        let attacker = try UDPSocket(boundTo: loopback)
        var batch = DatagramBatch()
        for length in 0..<60 {
            var slot = batch.freeSlot()
            for index in 0..<length {
                slot.storeBytes(of: UInt8(truncatingIfNeeded: index &* 37 &+ 128), toByteOffset: index, as: UInt8.self)
            }
            // A length as if it were the call's own SSRC in an RTP packet, and cut anywhere.
            if length >= 12 { slot.storeBytes(of: UInt32(2).bigEndian, toByteOffset: 8, as: UInt32.self) }
            batch.commit(byteCount: length, by: DatagramPath(to: pair.device.place().localAddress))
        }
        _ = attacker.send(&batch)
        _ = try #require(await pair.device.report(on: call.device))
        pair.device.stop(call.device)
        let report = try await pair.deviceEvents.ended(call.device)
        pair.shutdown()
        #expect(report.peer.dropped.total > 0)
        #expect(report.peer.packetsReceived > 0)
    }
}
