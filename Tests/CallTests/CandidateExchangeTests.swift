import JSON
import Testing

@testable import Call

@Suite("Candidates on their way")
struct CandidateExchangeTests {
    private static let host = "1 1 udp 2130706431 192.0.2.1 40000 typ host"

    @Test("A local candidate is sent as browsers take it, with the attribute's name in front, and the end is empty")
    func sent() {
        var candidates = CandidateExchange()
        #expect(candidates.found(Self.host, mid: "a").isEmpty, "the peer could not tell whose it is")
        let expected: JSONValue = ["candidate": .string("candidate:" + Self.host), "sdpMid": "a", "sdpMLineIndex": 0]
        #expect(candidates.peerKnowsCall() == [expected])
        #expect(candidates.found(Self.host, mid: "a") == [expected])
        #expect(candidates.found(nil, mid: "a") == [["candidate": "", "sdpMid": "a", "sdpMLineIndex": 0]])
    }

    @Test("A candidate of the peer is kept until the peer's description is known")
    func received() {
        var candidates = CandidateExchange()
        let data: JSONValue = ["candidate": .string("candidate:" + Self.host)]
        #expect(candidates.received(data).isEmpty)
        #expect(candidates.peerIsKnown() == [.candidate("candidate:" + Self.host)])
        #expect(candidates.received(["candidate": ""]) == [.end])
        #expect(candidates.received(["candidate": 1]).isEmpty)
    }
}
