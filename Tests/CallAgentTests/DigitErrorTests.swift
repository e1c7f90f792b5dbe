import SDP
import Testing

@testable import CallAgent

@Suite("Keys that a peer takes")
struct DigitErrorTests {
    private static func reason(_ digits: String, _ list: String?) -> String? {
        let events = list.map {
            NegotiatedTelephoneEvents(
                clockRate: 48_000, payloadTypes: PayloadTypes(send: 110, receive: 110), remoteEvents: $0)
        }
        do throws(DigitError) {
            try DigitError.check(digits, against: events)
            return nil
        } catch {
            return error.description
        }
    }

    @Test("All that the peer lists can be pressed")
    func listed() {
        #expect(Self.reason("0123456789*#ABCDabcd", "0-15") == nil)
        #expect(Self.reason("!f", "0-16") == nil)
        #expect(Self.reason("1!", "0-11,16") == nil)
        #expect(Self.reason("", "1") == nil)
    }

    @Test("A key that it does not list is refused, with those that it takes (RFC 4733 §2.5.1.1)")
    func notListed() throws {
        let reason = try #require(Self.reason("12A3", "0-11"))
        #expect(reason.contains("the key A ") && reason.contains("it takes 0123456789*#"))
        #expect(!reason.contains("ABCD"))
        let flash = try #require(Self.reason("!", "0-15"))
        #expect(flash.contains("the key ! ") && flash.contains("it takes 0123456789*#ABCD"))
        #expect(Self.reason("1", "66-70")?.contains("it takes none of ours") == true)
    }

    @Test("What is no key, and a peer that takes none, are told apart")
    func others() {
        #expect(Self.reason("12x", "0-11")?.contains("is not made of") == true)
        #expect(Self.reason("1", nil)?.contains("takes no telephone events") == true)
    }
}
