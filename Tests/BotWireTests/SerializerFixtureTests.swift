import BotWire
import Foundation
import JSON
import Testing

/// The stock serializers of Pipecat 1.14.0 are held to the same files by Tests/Bots/serializers.py.
@Suite("Messages between the wires and Pipecat's stock serializers")
struct SerializerFixtureTests {
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Fixtures")

    private func lines(_ path: String) throws -> [String] {
        try String(contentsOf: Self.folder.appending(path: path), encoding: .utf8).split(separator: "\n").map(
            String.init)
    }

    /// A call from beginning to end: sound, a gap, keys, marks that are played and discarded, a clear.
    private func call(_ name: String) -> [String] {
        var bench = WireBench(name, isOpen: false)
        var sent = bench.feed(.connected(WireBench.facts(of: name))).texts
        let isLinear = name == "exotel"
        // A ramp, and the same one from the other side.
        let ramp = (0..<160).map { Int16(truncatingIfNeeded: ($0 % 40 - 20) * 400 + 2_000) }
        func bytes(_ samples: [Int16]) -> [UInt8] {
            isLinear
                ? samples.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)] }
                : samples.map { UInt8(truncatingIfNeeded: ($0 < 0 ? 0x10 : 0x90) + $0 / 400) }
        }
        sent += bench.feed(.sound(bytes(ramp))).texts
        sent += bench.feed(.missed(samples: 320)).texts
        sent += bench.feed(.digit("5", heldMilliseconds: 120)).texts
        sent += bench.feed(.sound(bytes(ramp.map { -$0 }))).texts
        sent += bench.feed(.digit("#", heldMilliseconds: 80)).texts
        for mark in ["heard", "not heard"] { _ = bench.say(bench.mark(mark)) }
        sent += bench.feed(.markPlayed("heard")).texts
        sent += bench.feed(.markDiscarded("not heard")).texts
        sent += bench.feed(.cleared).texts
        sent += bench.feed(.ended(.callOver)).texts
        return sent
    }

    @Test(
        "A call is described in the words that the stock serializer was seen to understand", arguments: WireBench.texts)
    func toBot(name: String) throws {
        let path = "to-bot/\(name).jsonl"
        if ProcessInfo.processInfo.environment["HANDSET_RENEW"] != nil {
            let file = Self.folder.appending(path: path)
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try call(name).map { $0 + "\n" }.joined().write(to: file, atomically: true, encoding: .utf8)
        }
        #expect(try call(name) == lines(path))
    }

    @Test(
        "What the stock serializer sends is understood, and its own messages are counted and passed over",
        arguments: WireBench.texts)
    func fromBot(name: String) throws {
        var bench = WireBench(name)
        var orders: [WireOutput] = []
        for line in try lines("from-bot/\(name).jsonl") { orders += bench.say(line).orders }
        let sounds = orders.compactMap { order -> Int? in
            guard case .play(let bytes, let format) = order else { return nil }
            #expect(format == (name == "exotel" ? .linear(8_000) : .mulaw))
            return bytes.count / format.sampleBytes
        }
        #expect(sounds.first == 160 && sounds.count == orders.count - 2)
        #expect(orders.contains(.clear) && orders.faults == [.unknownEvent] && orders.failure == nil)
        #expect(bench.wire.counts.messages == orders.count && bench.wire.counts.faults == [.unknownEvent: 1])
    }

    @Test("The requests by which the stock serializers end a call are understood, and so are their credentials")
    func hangUps() throws {
        let data = try Data(contentsOf: Self.folder.appending(path: "requests.json"))
        guard case .array(let requests) = try JSONDecoder().decode(JSONValue.self, from: data) else {
            Issue.record("there are no requests")
            return
        }
        let read = try requests.map { value in
            try BotRequest(
                ServiceRequest(
                    method: #require(value["method"]?.string), target: #require(value["target"]?.string),
                    authorization: value["authorization"]?.string, contentType: value["contentType"]?.string,
                    body: Array(#require(value["body"]?.string).utf8)))
        }
        #expect(read.map(\.service) == [.twilio, .telnyx, .plivo])
        #expect(read.map(\.account) == ["AC00000000000000000000000000000003", nil, "auth-id"])
        #expect(read[0].credentials.match(user: "AC00000000000000000000000000000003", password: "token"))
        #expect(read[1].credentials.match(key: "key"))
        #expect(read[2].credentials.match(user: "auth-id", password: "token"))
        let orders = try read.map { try $0.order() }
        let calls = ["CA00000000000000000000000000000001", "v3:call", "call-uuid"]
        #expect(orders == calls.map { BotRequest.Order.end(call: $0, onlyUnanswered: false) })
    }
}
