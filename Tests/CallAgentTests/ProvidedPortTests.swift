import AudioKit
import AudioPort
import BotCalls
import BotWire
import CallAgent
import CallControl
import CallMedia
import CallPrograms
import Foundation
import TestSupport
import Testing

@Suite("Ports of this process in calls", .witnessed, .timeLimit(.minutes(2)))
struct ProvidedPortTests {
    private let answering = AnswerPolicy(manner: .answer(after: .zero), callLimit: .calls(4))

    private static func tone(_ seconds: Double) -> [Int16] {
        (0..<Int(seconds * 16_000)).map { Int16(8_000 * sin(2 * .pi * 500 * Double($0) / 16_000)) }
    }

    private func temporaryFile() -> String {
        FileManager.default.temporaryDirectory.appending(path: "handset-port-\(UUID()).wav").path()
    }

    @Test(
        "A call gets its port at once, although a bot can be attached; the port receives keys, and ends with the call")
    func provided() async throws {
        let site = try await Site()
        // Nothing listens there.
        let address = try #require(WebAddress("ws://127.0.0.1:9/bot", [.ws]))
        let device = try await site.device("echo", named: "device", answer: answering) {
            $0.behaviour.source = .program
            $0.behaviour.attachment = .bot(BotPlan(address: address, wire: .twilio))
        }
        let (events, sink) = AsyncStream.makeStream(of: PortEvent.self)
        await device.device.providePorts(PortPlan(rate: .hz16000)) { port in
            for await event in port.events { sink.yield(event) }
            sink.finish()
        }
        let caller = try await site.device("caller", named: "mobile")
        let id = await caller.device.call("echo", audio: AudioBehaviour(source: .silence))
        _ = try await caller.flowing()
        try await caller.device.press("5", on: id)
        var iterator = events.makeAsyncIterator()
        let first = await iterator.next()
        guard case .digit("5", _)? = first else {
            Issue.record("\(String(describing: first))")
            return
        }
        await caller.device.hangUp(id)
        #expect(try await caller.ended().record.reason == .completed)
        #expect(await iterator.next() == nil)
        try await site.close(caller, device)
    }

    @Test("A port that leaves a call ends, the next one is heard, and then a program can be attached")
    func attached() async throws {
        let kept = temporaryFile()
        defer { try? FileManager.default.removeItem(atPath: kept) }
        let site = try await Site()
        let device = try await site.device("echo", named: "device", answer: answering) {
            $0.behaviour.source = .silence
            $0.behaviour.attachment = .exec(ProgramPlan(command: ["cat"]))
        }
        let caller = try await site.device("caller", named: "mobile")
        _ = await caller.device.call("echo", audio: AudioBehaviour(source: .silence, recording: kept))
        let call = try await device.incoming()
        _ = try await device.flowing()
        for _ in 1...2 {
            let port = try await device.device.attachPort(PortPlan(rate: .hz16000), to: call)
            #expect(port.call == call)
            try await port.write(Self.tone(0.4))
            await port.drain()
            try await device.device.detach(from: call)
            for await _ in port.frames {}
        }
        try await device.device.attach(to: call)
        try await device.device.detach(from: call)
        await device.device.hangUp(call)
        #expect(try await caller.ended().record.reason == .completed)
        let heard = try await secondsOfTone(in: kept)
        #expect((0.75...0.85).contains(heard), "two tones of 0.4 s, of which \(heard) s were heard")
        try await site.close(caller, device)
    }

    @Test("A call of the longest duration ends once all is played that its port was given")
    func longest() async throws {
        let kept = temporaryFile()
        defer { try? FileManager.default.removeItem(atPath: kept) }
        let site = try await Site()
        let device = try await site.device("echo", named: "device", answer: answering) {
            $0.behaviour.source = .program
            $0.behaviour.maximumDuration = .seconds(1)
        }
        await device.device.providePorts(PortPlan(rate: .hz16000)) { port in try? await port.write(Self.tone(1.6)) }
        let caller = try await site.device("caller", named: "mobile")
        _ = await caller.device.call("echo", audio: AudioBehaviour(source: .silence, recording: kept))
        let record = try await device.ended().record
        #expect(record.hangUpCause == .maximumDuration && record.duration < .seconds(10))
        #expect(try await caller.ended().record.reason == .completed)
        let heard = try await secondsOfTone(in: kept)
        #expect((1.5...1.7).contains(heard), "of 1.6 s \(heard) s were heard")
        try await site.close(caller, device)
    }
}
