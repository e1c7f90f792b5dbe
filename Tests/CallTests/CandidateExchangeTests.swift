import CallControl
import Testing

@testable import Call

@Suite("Candidates on their way")
struct CandidateExchangeTests {
    private static let host = "1 1 udp 2130706431 192.0.2.1 40000 typ host"

    @Test(
        "A local candidate is sent as browsers take it, with the attribute's name in front, once the peer knows the call"
    )
    func sent() {
        var candidates = CandidateExchange()
        #expect(candidates.found(Self.host, mid: "a").isEmpty, "the peer could not tell whose it is")
        let expected = CallCandidate.candidate("candidate:" + Self.host, mid: "a")
        #expect(candidates.peerKnowsCall() == [expected])
        #expect(candidates.found(Self.host, mid: "a") == [expected])
        #expect(candidates.found(nil, mid: "a") == [.end(mid: "a")])
    }

    @Test("A candidate of the peer is kept until the peer's description is known")
    func received() {
        var candidates = CandidateExchange()
        let candidate = CallCandidate.candidate("candidate:" + Self.host)
        #expect(candidates.received(candidate).isEmpty)
        #expect(candidates.peerIsKnown() == [candidate])
        #expect(candidates.received(.end()) == [.end()])
    }
}
