import NIOHTTP1
import Testing

@testable import HTTPTransport

@Suite("The targets of requests")
struct RequestTargetTests {
    @Test(
        "A whole URL is taken as its path, and its host in place of Host (RFC 9112 §3.2.2)",
        arguments: [
            ("http://a.example/v1/x?y=1", "/v1/x?y=1", "a.example"), ("HTTPS://a.example:8443/", "/", "a.example:8443"),
            ("http://[::1]:8080", "/", "[::1]:8080"), ("http://a.example?y", "/?y", "a.example"),
        ])
    func whole(target: String, path: String, host: String) {
        let head = HTTPRequestHead(version: .http1_1, method: .GET, uri: target, headers: ["Host": "other.example"])
        #expect(head.inOriginForm.uri == path && head.inOriginForm.headers["Host"] == [host])
    }

    @Test(
        "Any other target stays as it is",
        arguments: [
            "/v1/x", "*", "http://", "http:///x", "http://user@a.example/x", "ftp://a.example/x", "a.example:80", "",
        ])
    func other(target: String) {
        let head = HTTPRequestHead(version: .http1_1, method: .GET, uri: target, headers: ["Host": "other.example"])
        #expect(head.inOriginForm == head)
    }
}
