import ExchangeServer
import Foundation
import JSON
import SignalWire
import Testing

/// An attacker with an ordinary account who plays with names.
@Suite(.timeLimit(.minutes(5))) struct NameTests {
    /// An exchange that keeps what it knows in a folder of its own.
    private static func withDatabase(_ body: (ExchangeConfiguration) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("names-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        var configuration = ServerFixture.configuration()
        configuration.databasePath = folder.path + "/exchange.sqlite"
        configuration.allowsAnonymous = true
        try await body(configuration)
    }

    /// The code with which a request, given as text, is refused.
    private static func refusal(of method: String, _ params: String, from client: RPCClient) async throws -> Int? {
        client.raw.sendText(#"{"jsonrpc":"2.0","id":99,"method":"\#(method)","params":\#(params)}"#)
        let frame = try #require(await client.raw.frame())
        let answer = try SignalCoding.decode(JSONValue.self, from: frame.payload)
        return answer["error"]?["code"]?.integer.map { Int($0) }
    }

    @Test("No group is stolen or dismissed by a name that is cut off at a zero byte, before a restart or after it")
    func group() async throws {
        try await Self.withDatabase { configuration in
            try await ServerFixture.withServer(configuration) { server in
                let alice = try await ServerFixture.device("a", of: "alice", port: server.port)
                let mallory = try await ServerFixture.device("m", of: "bob", port: server.port)
                _ = try await alice.call(GroupCreate(group: "class-7"))
                for name in [#"class-7\u0000x"#, #"class-7\u0000"#, #"\u0000class-7"#, #"class-7\u200B"#] {
                    for method in ["group.create", "group.join", "group.dismiss"] {
                        let code = try await Self.refusal(of: method, #"{"group":"\#(name)"}"#, from: mallory)
                        #expect(code == -32602, "\(method) \(name)")
                    }
                }
                alice.raw.close()
                mallory.raw.close()
            }
            try await ServerFixture.withServer(configuration) { server in
                let alice = try await ServerFixture.device("a", of: "alice", port: server.port)
                let group = try await alice.call(GroupMembers(group: "class-7"))
                #expect(group.owner == "alice" && group.members == ["alice"])
                alice.raw.close()
            }
        }
    }

    @Test(
        "A stranger gets no name that looks like another user's",
        arguments: [#"ali\u202Ece"#, #"alice\u200B"#, #"alice\u0000"#, #"alic\u0065\u0301"#, #""#, #"\u2066alice"#])
    func anonymous(name: String) async throws {
        try await Self.withDatabase { configuration in
            try await ServerFixture.withServer(configuration) { server in
                let client = try await RawClient.connect(port: server.port)
                defer { client.close() }
                let response = await client.request(
                    "POST", "/v1.1/login/anonymous", ["Authorization": ServerFixture.basic],
                    body: #"{"user_id":"\#(name)"}"#)
                #expect(response.status == 400)
                #expect(response.body.contains("badRequest") && response.body.contains("user_id "))
            }
        }
    }

    @Test("Who takes the path of a stream with a name that cannot be learns nothing else")
    func path() async throws {
        try await Self.withDatabase { configuration in
            try await ServerFixture.withServer(configuration) { server in
                let client = try await RawClient.connect(port: server.port)
                defer { client.close() }
                for name in ["bob%00", "bo%E2%80%AEb", "%ff", String(repeating: "b", count: 257)] {
                    let response = await client.request("POST", "/whip/\(name)")
                    #expect(response.status == 404, "\(name)")
                }
            }
        }
    }
}
