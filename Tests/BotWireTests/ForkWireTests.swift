import BotWire
import Core
import JSON
import Testing

@Suite("Sound that is forked to a server by Twilio's Media Streams")
struct ForkWireTests {
    private let call = WireCall(
        call: "CA1", stream: "MZ1", account: "AC1", from: "ann", to: "bob", parameters: ["a": "b"])

    private func values(_ messages: [WireMessage]) throws -> [JSONValue] {
        try messages.map { try #require(JSONValue(plain: $0.bytes, nesting: 16)) }
    }

    /// Track, chunk, time and length of each message with sound.
    private func media(_ messages: [WireMessage]) throws -> [String] {
        try values(messages).map { message in
            let media = message["media"]
            let sound = Base64.bytes(of: (media?["payload"]?.string ?? "").utf8)?.count ?? -1
            let parts = ["track", "chunk", "timestamp"].map { media?[$0]?.string ?? "-" }
            return "\(message["sequenceNumber"]?.string ?? "-") \(parts.joined(separator: " ")) \(sound)"
        }
    }

    @Test("Both tracks are numbered together, and of the same chunk and time", arguments: ForkTracks.allCases)
    func tracks(tracks: ForkTracks) throws {
        var wire = ForkWire(tracks)
        let opening = try values(wire.open(call))
        #expect(opening.map { $0["event"]?.string } == ["connected", "start"])
        #expect(opening.last?["start"]?["customParameters"]?["a"]?.string == "b")
        let named = (tracks.hasInbound ? ["inbound"] : []) + (tracks.hasOutbound ? ["outbound"] : [])
        let sound = [UInt8](repeating: 0xFF, count: 160)
        let first = try media(wire.take(inbound: sound, outbound: sound))
        let second = try media(wire.take(inbound: sound, outbound: sound))
        switch tracks {
        case .inbound: #expect(first + second == ["2 inbound 1 0 160", "3 inbound 2 20 160"])
        case .outbound: #expect(first + second == ["2 outbound 1 0 160", "3 outbound 2 20 160"])
        case .both:
            #expect(
                first + second == [
                    "2 inbound 1 0 160", "3 outbound 1 0 160", "4 inbound 2 20 160", "5 outbound 2 20 160",
                ])
        }
        #expect(opening.last?["start"]?["tracks"] == .array(named.map { .string($0) }))
    }

    @Test("Lost sound is a gap in the times; there is nothing before the opening, and nothing behind the stop")
    func gaps() throws {
        var wire = ForkWire(.inbound)
        let sound = [UInt8](repeating: 0xFF, count: 80)
        #expect(wire.take(inbound: sound, outbound: sound).isEmpty && wire.close().isEmpty)
        _ = wire.open(call)
        #expect(wire.open(call).isEmpty)
        wire.skip(samples: 8_000)
        #expect(try media(wire.take(inbound: sound, outbound: sound)).first?.hasSuffix(" 80") == true)
        #expect(try media(wire.take(inbound: sound, outbound: [])).first?.contains(" 1010 ") == true)
        let stop = try values(wire.close())
        #expect(stop.map { $0["event"]?.string } == ["stop"] && stop.first?["sequenceNumber"]?.string == "4")
        #expect(wire.take(inbound: sound, outbound: sound).isEmpty && wire.close().isEmpty)
    }
}
