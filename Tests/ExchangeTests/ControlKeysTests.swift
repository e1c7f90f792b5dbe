import ConfigReader
import ControlPlane
import ExchangeServer
import Testing

@Suite("Control in an exchange's configuration") struct ControlKeysTests {
    private static let head = "users: [{ id: alice }]\napps: [{ key: demo, secret_hash: \(hash) }]\n"
    private static let hash = String(repeating: "0", count: 64)

    private func read(_ text: String) throws -> (ExchangeConfiguration, [ConfigProblem]) {
        var problems: [ConfigProblem] = []
        let configuration = ExchangeConfiguration(try ConfigDocument.read(text: Self.head + text), &problems)
        return (configuration, problems)
    }

    @Test(
        "Without the section there is no interface; with a socket alone there is none on TCP, and the owner may connect"
    )
    func defaults() throws {
        #expect(try read("").0.control == nil)
        let (configuration, problems) = try read("control: { socket: default }\n")
        #expect(problems.isEmpty)
        let control = try #require(configuration.control)
        #expect(control.socket == nil && control.access == .owner && control.network == nil)
        #expect(control.historyFolder == nil)
        #expect(try read("control: { socket: /run/x.sock, access: group }\n").0.control?.socket == "/run/x.sock")
    }

    @Test(
        "A wrong value is reported with its line and key",
        arguments: [
            ("control: {}\n", "3 control.socket"),
            ("control: { socket: default, access: all }\n", "3 control.access"),
            ("control: { socket: default, http: {} }\n", "3 control.http"),
            ("control: { socket: default, token_env: X }\n", "3 control.token_env"),
            ("control: { socket: default, listen: 127.0.0.1:0 }\n", "3 control.listen"),
            ("control: { socket: default, listen: 127.0.0.1 }\n", "3 control.listen"),
            ("control: { socket: default, allowed_hosts: [a] }\n", "3 control.allowed_hosts"),
            ("control: { socket: \(String(repeating: "s", count: 120)) }\n", "3 control.socket"),
        ])
    func problems(_ text: String, _ expected: String) throws {
        let found = try read(text).1.map { "\($0.line) \($0.key)" }
        #expect(found.contains(expected), "\(found)")
    }
}
