import HTTPTransport
import NIOHTTP1
import Testing

@Suite("Pages of other origins")
struct WebOriginTests {
    private static let desk = "https://desk.example.org"
    private let sharing = OriginSharing(
        [WebOriginTests.desk, "http://localhost:8080", "https://plain.example.org:443"], methods: ["GET", "POST"],
        requestHeaders: ["Authorization"], answerHeaders: ["Location"])

    private func head(_ method: HTTPMethod, _ headers: HTTPHeaders) -> HTTPRequestHead {
        HTTPRequestHead(version: .http1_1, method: method, uri: "/v1/status", headers: headers)
    }

    private func fields(_ headers: HTTPHeaders) -> HTTPHeaders {
        var answer = HTTPAnswer(status: .ok, body: [])
        sharing.share(&answer, with: head(.GET, headers))
        return answer.headers
    }

    @Test(
        "An origin is a scheme and a host, perhaps with a port, and nothing else",
        arguments: [
            ("https://desk.example.org", true), ("http://localhost:8080", true), ("https://[::1]:8443", true),
            ("HTTPS://Desk.example.org", true), ("desk.example.org", false), ("https://desk.example.org/", false),
            ("https://desk.example.org/a", false), ("https://", false), ("ftp://desk.example.org", false), ("*", false),
            ("null", false), ("https://desk.example.org:x", false), ("https://desk.example.org:99999", false),
            ("https://*.example.org", false), ("https://user@desk.example.org", false),
        ])
    func origins(text: String, isOrigin: Bool) { #expect(WebOrigin.isOrigin(text) == isOrigin) }

    @Test(
        "Pages of listed origins can read answers, and others cannot; every answer says that it depends on the origin")
    func shared() {
        for origin in [Self.desk, "http://localhost:8080", "https://plain.example.org"] {
            let fields = fields(["Origin": origin])
            #expect(fields["Access-Control-Allow-Origin"] == [origin] && fields["Vary"] == ["Origin"])
            #expect(fields["Access-Control-Expose-Headers"] == ["Location"])
        }
        for origin in ["https://evil.example.org", "http://desk.example.org", "null", "*"] {
            #expect(fields(["Origin": origin])["Access-Control-Allow-Origin"] == [], "\(origin)")
            #expect(fields(["Origin": origin])["Vary"] == ["Origin"])
        }
        #expect(fields([:])["Access-Control-Allow-Origin"] == [])
        #expect(fields(["Origin": Self.desk, "origin": Self.desk])["Access-Control-Allow-Origin"] == [])
        var answer = HTTPAnswer(status: .ok, body: [])
        OriginSharing([], methods: [], requestHeaders: [], answerHeaders: [])
            .share(&answer, with: head(.GET, ["Origin": Self.desk]))
        #expect(answer.headers.isEmpty)
    }

    @Test(
        "A preflight request of a listed origin gets methods, fields and how long they may be kept; no other one is answered"
    )
    func preflight() throws {
        let asks: HTTPHeaders = ["Origin": Self.desk, "Access-Control-Request-Method": "POST"]
        let answer = try #require(sharing.preflight(head(.OPTIONS, asks)))
        #expect(answer.status == .noContent && answer.headers["Access-Control-Allow-Methods"] == ["GET, POST"])
        #expect(answer.headers["Access-Control-Allow-Headers"] == ["Authorization"])
        #expect(answer.headers["Access-Control-Max-Age"] == ["600"])
        #expect(sharing.preflight(head(.GET, asks)) == nil)
        #expect(sharing.preflight(head(.OPTIONS, ["Origin": Self.desk])) == nil)
        let foreign: HTTPHeaders = ["Origin": "https://evil.example.org", "Access-Control-Request-Method": "POST"]
        #expect(sharing.preflight(head(.OPTIONS, foreign)) == nil)
    }
}
