import SDP
import Testing

@Suite("Limits of b= lines")
struct BandwidthTests {
    private static func answer(session: String = "", section: String = "") throws -> NegotiatedAudio {
        let text =
            "v=0\no=- 1 1 IN IP4 192.0.2.9\nc=IN IP4 192.0.2.9\n\(session)t=0 0\n"
            + "m=audio 7000 RTP/AVP 120\n\(section)a=rtpmap:120 opus/48000/2\na=ptime:20\n"
        var side = OfferAnswer(
            LocalMedia(
                address: "192.0.2.1", port: 5_000, ssrc: 77, canonicalName: "us", sessionID: 1, keying: [.plain]))
        return try side.makeAnswer(to: SessionDescription(parsing: text)).audio
    }

    @Test(
        "TIAS counts as it is, AS without headers and RTCP, and TIAS before AS",
        arguments: [
            ("", nil), ("b=TIAS:64000\n", 64_000), ("b=AS:64\n", 44_800), ("b=AS:16\nb=TIAS:64000\n", 64_000),
            ("b=TIAS:64000\nb=AS:16\n", 64_000), ("b=TIAS:64000\nb=TIAS:32000\n", 32_000), ("b=AS:10\n", 1),
            ("b=AS:100000000\n", 94_999_984_000),
        ] as [(String, Int?)])
    func kinds(lines: String, bitrate: Int?) throws {
        #expect(try Self.answer(section: lines).remoteMaximumBitrate == bitrate)
        #expect(try Self.answer(session: lines).remoteMaximumBitrate == bitrate)
    }

    @Test("Of the session's limit and the section's, the lower counts")
    func levels() throws {
        let both = { try Self.answer(session: $0, section: $1).remoteMaximumBitrate }
        #expect(try both("b=TIAS:20000\n", "b=TIAS:30000\n") == 20_000)
        #expect(try both("b=AS:64\n", "b=TIAS:30000\n") == 30_000)
        #expect(try both("b=AS:40\n", "b=TIAS:30000\n") == 22_000)
    }

    @Test(
        "What is no number, beyond all sense or of another kind limits nothing",
        arguments: [
            "b=AS", "b=AS:", "b=AS:-1", "b=AS: 64", "b=AS:64.5", "b=as:64", "b=TIAS:99999999999999999999999", "b=:64",
            "b=AS:100000001", "b=CT:64", "b=RS:800", "b=RR:2400", "b=X-YZ:128", "b=", "b=AS:64:64",
        ])
    func unusable(line: String) throws {
        let audio = try Self.answer(session: line + "\n", section: line + "\n")
        #expect(audio.remoteMaximumBitrate == nil && audio.direction == .sendrecv)
    }

    @Test("Zero stops what we send, and not what the peer sends (RFC 3264 §5.1)", arguments: ["AS", "TIAS"])
    func zero(kind: String) throws {
        let audio = try Self.answer(section: "b=\(kind):0\n")
        #expect(audio.direction == .recvonly && audio.remoteMaximumBitrate == 0)
    }
}
