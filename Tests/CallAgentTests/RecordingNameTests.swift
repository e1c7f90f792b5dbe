import AudioKit
import Testing
import Core

@testable import CallAgent

@Suite("What a call's recording is called")
struct RecordingNameTests {
    private func name(_ peer: String, isOutgoing: Bool = false) -> String {
        "\(RecordingName(peer: peer, isOutgoing: isOutgoing, at: WallClock(unixMilliseconds: 1_772_323_199_123), key: "k3x9f2abc"))"
    }

    @Test("It has the time in UTC, who is at the other end, and a key of its own")
    func parts() {
        #expect(name("bob@sip.test") == "2026-02-28T23-59-59.123Z_from_bob@sip.test_k3x9f2")
        #expect(name("+4930", isOutgoing: true) == "2026-02-28T23-59-59.123Z_to_+4930_k3x9f2")
    }

    @Test("What a peer calls itself leads out of no folder, is bounded, and makes no other peer's name")
    func hostile() {
        #expect(name("a/b") != name("a_b") && name("a/b") != name("a%2Fb"))
        for peer in [
            "../../etc/passwd", "a\u{0}b", "\u{202E}wav", "x.part", ".cut", String(repeating: "é", count: 500),
        ] {
            let name = name(peer)
            #expect(!name.contains("/") && name.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F } && name.utf8.count < 110)
            #expect(!PartFile.isReserved("\(name).wav"))
        }
        #expect(name(String(repeating: "a", count: 65)).contains("a~_"))
        #expect(name(String(repeating: "a", count: 64)).contains("a_k"))
    }
}
