import ArgumentParser
import CallAgent
import Testing

@testable import handset

@Suite("The callee of a command, and its server")
struct CalleeAddressTests {
    @Test(
        "A port, or an IP address as the host, names the server and is no part of who is invited",
        arguments: [
            ("echo", nil, "echo"),
            ("echo@localhost", "http://localhost:8555", "echo@localhost"),
            ("echo@localhost:18020", "http://localhost:18020", "echo@localhost"),
            ("echo@127.0.0.1", "http://127.0.0.1:8555", "echo"),
            ("echo@127.0.0.1:18020", "http://127.0.0.1:18020", "echo"),
            ("echo@[::1]", "http://[::1]:8555", "echo"),
            ("echo@[::1]:18020", "http://[::1]:18020", "echo"),
            ("echo@calls.example.org", "https://calls.example.org", "echo@calls.example.org"),
            ("echo@calls.example.org:8443", "https://calls.example.org:8443", "echo@calls.example.org"),
            ("echo@192.0.2.1", "https://192.0.2.1", "echo"),
            ("a@b@calls.example.org:1", "https://calls.example.org:1", "a@b@calls.example.org"),
            ("echo@", nil, "echo@"),
        ])
    func parts(text: String, server: String?, user: UserID) throws {
        let address = try CalleeAddress(text)
        #expect(address.server == server)
        #expect(address.user == user)
    }

    @Test(
        "Who is called has a name that the service takes", arguments: ["", "@localhost", "a\u{202E}b@localhost", "a\n"])
    func refusal(text: String) {
        #expect(throws: ValidationError.self) { try CalleeAddress(text) }
    }
}
