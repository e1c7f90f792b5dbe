import SignalWire
import Testing

@Suite("The epoch of an exchange that owns a shared database") struct OwnerEpochTests {
    @Test("Its text is read as it was written")
    func text() throws {
        for text in ["00000001.0", "0000000F.17", "FFFFFFFF.9223372036854775807"] {
            #expect(try #require(OwnerEpoch(text)).description == text)
        }
        #expect(try #require(OwnerEpoch(timeline: "0000000a", number: 3)).description == "0000000A.3")
    }

    @Test(
        "A text that is none is refused",
        arguments: [
            "", ".", "1", "1.", ".1", "1.2.3", "g.1", "+1.1", "-1.1", "1.-1", "1.+1", "1. 1", "123456789.1",
            "1.9223372036854775808", "1.0x1",
        ])
    func refused(_ text: String) {
        #expect(OwnerEpoch(text) == nil)
    }

    @Test("Of two, the one of the later timeline is newer, and on one timeline the higher number")
    func order() throws {
        func epoch(_ text: String) throws -> OwnerEpoch { try #require(OwnerEpoch(text)) }
        #expect(try epoch("00000001.9") < epoch("00000001.10"))
        #expect(try epoch("00000001.10") < epoch("00000002.1"))
        #expect(try epoch("0000000F.1") < epoch("00000010.1"))
    }
}
