import SIP
import Testing
import Core

@testable import SIP

@Suite("Digest")
struct DigestTests {
    private func computation(
        _ algorithm: DigestAlgorithm, realm: String, nonce: String, cnonce: String, uri: String,
        _ quality: DigestComputation.Quality? = .auth, session: Bool = false, body: String = ""
    ) -> DigestComputation {
        DigestComputation(
            algorithm: algorithm, isSession: session, realm: realm, nonce: nonce, quality: quality,
            clientNonce: cnonce, count: 1, method: "GET", uri: uri, body: Array(body.utf8))
    }

    @Test("The responses of RFC 7616 §3.9 and RFC 2617 §3.5 come out")
    func vectors() {
        let nonce = "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v"
        let cnonce = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"
        for (algorithm, expected) in [
            (DigestAlgorithm.md5, "8ca523f5e9506fed4657c9700eebdbec"),
            (.sha256, "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
        ] {
            let realm = "http-auth@example.org"
            let key = DigestComputation.key(algorithm, username: "Mufasa", realm: realm, password: "Circle of Life")
            let response = computation(algorithm, realm: realm, nonce: nonce, cnonce: cnonce, uri: "/dir/index.html")
                .response(key: key)
            #expect(response == expected)
        }
        let realm = "testrealm@host.com"
        let key = DigestComputation.key(.md5, username: "Mufasa", realm: realm, password: "Circle Of Life")
        let old = computation(
            .md5, realm: realm, nonce: "dcd98b7102dd2f0e8b11d0f600bfb0c093", cnonce: "0a4f113b", uri: "/dir/index.html")
        #expect(old.response(key: key) == "6629fae49393a05397450978507c4ef1")
    }

    @Test("SHA-512/256, auth-int, -sess and the form without qop agree with an independent computation")
    func otherForms() {
        // Computed with Python's hashlib.
        let realm = "api@example.org"
        let nonce = "5TsQWLVdgBdmrQ0XsxbDODV+57QdFR34I9HAbC/RVvkK"
        let cnonce = "NTg6RKcb9boFIAS3KrFK9BGeh+niz/sm"
        let key = DigestComputation.key(
            .sha512With256, username: "J\u{E4}s\u{F8}n Doe", realm: realm, password: "Secret, or not?")
        #expect(
            computation(.sha512With256, realm: realm, nonce: nonce, cnonce: cnonce, uri: "/doe.json").response(key: key)
                == "7a4e1192babbba02e91182d2895bfdbf7adafc6e48d4e517ca301974843d840c")
        let forms: [(DigestComputation.Quality?, Bool, String)] = [
            (.authInt, false, "17fa3acb5ccf016e21637813ab69f54fdce51a2045035cc68694d2039302490c"),
            (.auth, true, "5c97fc4054e02320327ab8bbece467aba86b873300c8f4b3be3eeb640d0c3e30"),
            (nil, false, "c64c22e21c09dcd7aa58e230f11cebaf75152de471f89436e3f2d21ce5d37873"),
        ]
        for (quality, session, expected) in forms {
            let key = DigestComputation.key(.sha256, username: "a", realm: "r", password: "p")
            let form = computation(
                .sha256, realm: "r", nonce: "n", cnonce: "c", uri: "sip:b", quality, session: session, body: "body")
            #expect(form.response(key: key) == expected)
        }
    }

    private func challenge(_ status: Int, _ lines: [String], to request: SIPRequest) -> SIPResponse {
        var response = SIPResponse(status, to: request, toTag: "t")
        for line in lines { response.headers.append(status == 401 ? "WWW-Authenticate" : "Proxy-Authenticate", line) }
        return response
    }

    private func client(_ password: String = "secret", weakest: DigestAlgorithm = .md5) -> DigestClient {
        DigestClient(username: "alice", password: password, tokens: Sample.tokens(7), weakest: weakest)
    }

    @Test("Of several challenges of a realm the strongest is met, and unknown ones are passed over")
    func strongest() {
        var client = client()
        var request = Sample.request(.register)
        let response = challenge(
            401,
            [
                "Basic realm=\"r\"", "Digest realm=\"r\", nonce=\"1\", algorithm=MD5, qop=\"auth\"",
                "Digest realm=\"r\", nonce=\"2\", algorithm=SHA-256, qop=\"auth-int,auth\"",
                "Digest realm=\"r\", nonce=\"3\", algorithm=SHA-1024, qop=\"auth\"",
                "Digest realm=\"r\", nonce=\"4\", algorithm=SHA-512-256, qop=\"future\"",
            ], to: request)
        #expect(client.take(response, to: request) == .retry)
        client.authorize(&request)
        let value = request.headers["Authorization"].flatMap(AuthenticationValue.init)
        #expect(value?.parameters["nonce"] == "2")
        #expect(value?.parameters["algorithm"] == "SHA-256")
        #expect(value?.parameters["qop"] == "auth")
        #expect(value?.parameters["nc"] == "00000001")
        #expect(request.headers.count("Authorization") == 1)
        var second = Sample.request(.register, number: 2)
        client.authorize(&second)
        let again = second.headers["Authorization"].flatMap(AuthenticationValue.init)
        #expect(again?.parameters["nc"] == "00000002")
        #expect(!"\(client)".contains("secret"))
    }

    @Test("Server and proxy are answered side by side, and schemes that we do not have are reported")
    func severalRealms() {
        var client = client()
        var request = Sample.request(.invite)
        let digest = { (realm: String) in "Digest realm=\"\(realm)\", nonce=\"1\", qop=\"auth\"" }
        #expect(client.take(challenge(407, [digest("p")], to: request), to: request) == .retry)
        client.authorize(&request)
        #expect(client.take(challenge(401, [digest("s")], to: request), to: request) == .retry)
        client.authorize(&request)
        #expect(request.headers.count("Authorization") == 1)
        #expect(request.headers.count("Proxy-Authorization") == 1)
        #expect(client.take(challenge(401, ["NoOneKnowsThisScheme x=y"], to: request), to: request) == .unsupported)
        var strict = self.client(weakest: .sha256)
        #expect(strict.take(challenge(401, [digest("s")], to: request), to: request) == .unsupported)
    }

    @Test("A wrong password is found at the second challenge, and a stale nonce is replaced, not without end")
    func staleAndWrong() {
        var client = client()
        var request = Sample.request(.register)
        let digest = { (nonce: String, more: String) in "Digest realm=\"r\", nonce=\"\(nonce)\", qop=\"auth\"" + more }
        #expect(client.take(challenge(401, [digest("1", "")], to: request), to: request) == .retry)
        client.authorize(&request)
        var wrong = client
        #expect(wrong.take(challenge(401, [digest("2", "")], to: request), to: request) == .rejected)
        // The nonce was good twice; then the server forgot it without the word stale.
        client.succeeded()
        client.authorize(&request)
        #expect(client.take(challenge(401, [digest("3", "")], to: request), to: request) == .retry)
        for nonce in 4..<6 {
            client.authorize(&request)
            #expect(
                client.take(challenge(401, [digest("\(nonce)", ", stale=TRUE")], to: request), to: request) == .retry)
        }
        client.authorize(&request)
        #expect(client.take(challenge(401, [digest("9", ", stale=true")], to: request), to: request) == .rejected)
    }

    @Test(
        "Client and server agree with each algorithm; a wrong password, a repeated count and an old nonce fail",
        arguments: DigestAlgorithm.allCases)
    func clientAndServer(algorithm: DigestAlgorithm) throws {
        var server = DigestServer(realm: "r \"q\"", key: [UInt8](repeating: 9, count: 16), algorithms: [algorithm])
        var now = Instant.zero
        var client = client()
        var request = Sample.request(.register)
        request.body = Array("body".utf8)
        guard case .missing = server.credentials(request, at: now) else { throw TestFailure("no credentials") }
        #expect(client.take(server.challenge(request, toTag: "t", at: now), to: request) == .retry)
        let key = server.key(algorithm, username: "alice", password: "secret")
        for _ in 0..<3 {
            client.authorize(&request)
            guard case .claimed(let claim) = server.credentials(request, at: now) else { throw TestFailure("a claim") }
            #expect(claim.username == "alice")
            let wrong = server.key(algorithm, username: "alice", password: "x")
            let verdicts = [wrong, key, key].map { server.verify(claim, key: $0, at: now) }
            #expect(verdicts == [false, true, false])
            guard case .stale = server.credentials(request, at: now) else { throw TestFailure("a repeated count") }
        }
        now = now.advanced(by: .seconds(301))
        client.authorize(&request)
        guard case .stale = server.credentials(request, at: now) else { throw TestFailure("an old nonce") }
        #expect(client.take(server.challenge(request, isStale: true, toTag: "t", at: now), to: request) == .retry)
        client.authorize(&request)
        guard case .claimed(let claim) = server.credentials(request, at: now) else { throw TestFailure("a claim") }
        let isTrue = server.verify(claim, key: key, at: now)
        #expect(isTrue)
        var moved = request
        moved.uri = Sample.uri("sip:eve@b.example")
        guard case .missing = server.credentials(moved, at: now) else {
            throw TestFailure("credentials of another URI")
        }
    }

    @Test("A nonce of another server's making is stale")
    func foreignNonce() throws {
        let server = DigestServer(realm: "r", key: [UInt8](repeating: 1, count: 16), algorithms: [.sha256])
        let other = DigestServer(realm: "r", key: [UInt8](repeating: 2, count: 16), algorithms: [.sha256])
        var client = client()
        var request = Sample.request(.register)
        _ = client.take(other.challenge(request, toTag: "t", at: .zero), to: request)
        client.authorize(&request)
        guard case .stale = server.credentials(request, at: .zero) else { throw TestFailure("a stale nonce") }
    }

    @Test("The unknown scheme in RFC 4475's regaut01 is answered with a challenge")
    func torture() throws {
        guard case .request(let request) = try SIPMessage(parsing: try vector("rfc4475/regaut01.dat")) else {
            throw TestFailure("a request")
        }
        let server = DigestServer(realm: "r", key: [UInt8](repeating: 1, count: 16))
        guard case .missing = server.credentials(request, at: .zero) else { throw TestFailure("no credentials") }
        let response = server.challenge(request, toTag: "t", at: .zero)
        #expect(response.status == 401)
        #expect(response.headers.lines("WWW-Authenticate").count == 2)
    }
}
