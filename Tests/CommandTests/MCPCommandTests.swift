import Foundation
import Testing

@Suite("An agent's command")
struct MCPCommandTests {
    private static func request(_ id: Int, _ tool: String, _ arguments: String = "{}") -> String {
        #"{"jsonrpc":"2.0","id":\#(id),"method":"tools/call","params":{"name":"\#(tool)","arguments":\#(arguments)}}"#
            + "\n"
    }

    private static let initialize =
        #"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"# + "\n"

    private static func objects(_ process: HandsetProcess) throws -> [[String: Any]] {
        try process.outputText.split(separator: "\n").map { line in
            try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any], "\(line)")
        }
    }

    @Test(
        "Rubbish and a line of 10 MB are refused, standard output has messages alone, and the end of input ends with 0")
    func rubbish() async throws {
        let site = try Site(isControlled: true)
        defer { site.remove() }
        let input =
            "rubbish\n" + String(repeating: "x", count: 10_000_000) + "\n" + Self.initialize
            + #"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"# + "\n"
        let process = try HandsetProcess(["mcp", "--config", site.deviceConfiguration], input: input)
        #expect(await process.ending() == 0, "\(process.errorText)")
        let codes = try Self.objects(process).map { ($0["error"] as? [String: Any])?["code"] as? Int }
        #expect(codes == [-32_700, -32_600, nil, nil])
    }

    @Test("Without a device a tool says where one was looked for, and what is missing for speech")
    func noDevice() async throws {
        let site = try Site(isControlled: true)
        defer { site.remove() }
        let input =
            Self.initialize + Self.request(1, "list_calls") + Self.request(2, "say", #"{"call":1,"text":"a"}"#)
            + Self.request(3, "hear", #"{"call":1}"#)
        let process = try HandsetProcess(["mcp", "--config", site.deviceConfiguration], input: input)
        #expect(await process.ending() == 0, "\(process.errorText)")
        for text in [site.path("control-http.sock"), "mcp.say", "mcp.hear"] {
            #expect(process.outputText.contains(text), "\(process.outputText)")
        }
        for secret in ["app-secret", "echo-token"] { #expect(!process.outputText.contains(secret)) }
    }

    @Test("A configuration without a socket ends with 3, and both ways to name a device with 2")
    func usage() async throws {
        let site = try Site()
        defer { site.remove() }
        let without = try HandsetProcess(["mcp", "--config", site.deviceConfiguration])
        #expect(await without.ending() == 3)
        let both = try HandsetProcess(["mcp", "--config", site.deviceConfiguration, "--socket", "a.sock"])
        #expect(await both.ending() == 2)
    }

    @Test("A running device is listed, and what it refuses is said as it says it")
    func device() async throws {
        let running = try await RunningSite(try Site(isControlled: true))
        defer { running.site.remove() }
        let input =
            Self.initialize + Self.request(1, "list_calls") + Self.request(2, "hang_up", #"{"call":9}"#)
            + Self.request(3, "press_keys", #"{"call":9,"keys":"1"}"#)
        let process = try HandsetProcess(["mcp", "--socket", running.site.controlSocket], input: input)
        #expect(await process.ending() == 0, "\(process.errorText)")
        let output = process.outputText
        #expect(
            output.contains(#""connection":"connected""#) && output.contains(#""code":"no_such_call""#), "\(output)")
    }
}
