import ConfigReader
import ExchangeCore
import ExchangeServer
import SignalWire
import Testing

@Suite("Trunks in an exchange's configuration") struct TrunkKeysTests {
    private static let users = "users: [{ id: alice }, { id: desk }]\napps: [{ key: demo, secret_hash: \(hash) }]\n"
    private static let hash = String(repeating: "0", count: 64)

    private func read(_ text: String) throws -> (ExchangeConfiguration, [ConfigProblem]) {
        var problems: [ConfigProblem] = []
        let configuration = ExchangeConfiguration(try ConfigDocument.read(text: Self.users + text), &problems)
        return (configuration, problems)
    }

    @Test("Without callers no user may call, and the limits are low")
    func defaults() throws {
        let (configuration, problems) = try read("trunks: [{ user: desk, numbers: ['2??'] }]\n")
        #expect(problems.isEmpty)
        let trunk = try #require(configuration.trunks.first)
        #expect(trunk.user == "desk" && trunk.numbers.map(\.text) == ["2??"])
        #expect(trunk.callers.isEmpty && trunk.callsPerHour == 20 && trunk.callsAtOnce == 2)
        #expect(try read("").0.trunks.isEmpty)
    }

    @Test("A problem is reported with its line and key; a missing account is a warning")
    func problems() throws {
        let (_, problems) = try read(
            """
            trunks:
              - { user: desk, numbers: ['2*2', '+49*'], callers: [desk] }
              - { user: desk, numbers: ['+49*'], calls_at_once: 0 }
              - { numbers: ['3*'], caller: [alice] }
              - { user: fax, numbers: ['4*'], callers: [bob] }

            """)
        let found = problems.map { "\($0.line) \($0.key)\($0.isWarning ? " warning" : "")" }
        #expect(
            Set(found) == [
                "4 trunks[1].numbers", "4 trunks[1].callers", "5 trunks[2].user", "5 trunks[2].numbers",
                "5 trunks[2].calls_at_once", "6 trunks[3].user", "6 trunks[3].caller", "7 trunks[4].user warning",
                "7 trunks[4].callers warning",
            ])
    }
}
