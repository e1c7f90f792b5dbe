import CallAgent
import ConfigReader
import ControlPlane
import Foundation
import Monitoring
import Testing

@testable import TrunkGateway

/// A folder with the three files of a trunk.
private struct TrunkFiles: ~Copyable {
    let folder: String

    init(
        _ trunk: String, exchange: String = "account: { kind: media_token, media_token_file: token }\n",
        network: String = """
        account:
          kind: sip
          password_file: token
          allow_plain_text: true
          sip: { address: 'sip:trunk@sip.test', server: '127.0.0.1:5060' }
        media: { allow_plain_rtp: true }
        answer: { allow: ['bob@sip.test'], transfers: anywhere }

        """
    ) throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "handset-trunk-\(UUID())").path()
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let files = ["trunk.yaml": trunk, "exchange.yaml": exchange, "network.yaml": network, "token": "secret\n"]
        for (name, text) in files { try text.write(toFile: "\(folder)/\(name)", atomically: true, encoding: .utf8) }
    }

    deinit { try? FileManager.default.removeItem(atPath: folder) }

    func read() throws(ConfigError) -> TrunkConfiguration { try TrunkConfiguration.read(path: "\(folder)/trunk.yaml") }

    /// What is wrong, as file, line and key.
    func problems() -> [String] {
        do throws(ConfigError) {
            _ = try read()
            return []
        } catch {
            return error.problems.filter { !$0.isWarning }.map { problem in
                "\(problem.file.split(separator: "/").last ?? ""):\(problem.line) \(problem.key)"
            }
        }
    }
}

@Suite struct TrunkConfigurationTests {
    private static let files = "exchange: exchange.yaml\nnetwork: network.yaml\n"

    @Test(
        "Without routes no call passes; devices of a trunk decide nothing by themselves, and are transferred nowhere")
    func defaults() throws {
        let files = try TrunkFiles(Self.files)
        let configuration = try files.read()
        #expect(configuration.routes.user(of: "200") == nil)
        #expect(configuration.routes.networkName(of: "200") == "200")
        #expect(configuration.callLimit == 10 && configuration.longestCall == .seconds(14_400))
        for device in [configuration.exchange, configuration.network] {
            #expect(device.answer.manner == .ring && device.answer.transfers == .refuse)
            #expect(
                device.answer.inviteLimit == device.answer.ringLimit, "nobody decides about invites that are no calls")
            #expect(device.behaviour.source == .silence && device.behaviour.maximumDuration == .seconds(14_400))
        }
        #expect(configuration.network.account.passesOn)
        #expect(configuration.network.answer.callers == .only(["bob@sip.test"]))
    }

    @Test("Routes are read")
    func routes() throws {
        let files = try TrunkFiles(
            Self.files + """
                incoming:
                  - { number: "2??", user: alice }
                  - { number: "201", user: bob }
                outgoing:
                  - { number: "+49*", strip: 3, prepend: "0" }
                max_calls: 3
                longest_call_s: 60

                """)
        let configuration = try files.read()
        #expect(configuration.routes.user(of: "200") == "alice" && configuration.routes.user(of: "201") == "bob")
        #expect(configuration.routes.networkName(of: "+49301") == "0301")
        #expect(configuration.routes.networkName(of: "+490442071234567") == nil)
        #expect(configuration.callLimit == 3 && configuration.longestCall == .seconds(60))
    }

    @Test("A problem is reported with its file, line and key")
    func problems() throws {
        let routes = try TrunkFiles(
            Self.files + """
                incoming:
                  - { number: "2*2", user: alice }
                  - { number: "200", user: alice }
                  - { number: "200", user: bob }
                outgoing:
                  - { number: "0*", prepend: "a" }
                max_calls: 0
                colour: red

                """)
        #expect(
            Set(routes.problems()) == [
                "trunk.yaml:4 incoming[1].number", "trunk.yaml:6 incoming[3].number",
                "trunk.yaml:8 outgoing[1].prepend",
                "trunk.yaml:9 max_calls", "trunk.yaml:10 colour",
            ])
        let devices = try TrunkFiles(
            Self.files,
            exchange: "account: { kind: media_token, media_token_file: token }\nbehaviour: { source: echo }\n",
            network: "account: { kind: media_token, media_token_file: token }\nmedia: { workers: 0 }\n")
        #expect(devices.problems() == ["exchange.yaml:1 behaviour", "network.yaml:2 media.workers"])
        let misplaced = try TrunkFiles(
            Self.files,
            exchange: "account: { kind: media_token, media_token_file: token }\nmonitoring: { listen: '127.0.0.1:0' }\n"
        )
        #expect(misplaced.problems() == ["exchange.yaml:1 monitoring"])
        let swapped = try TrunkFiles("exchange: network.yaml\nnetwork: exchange.yaml\n")
        #expect(swapped.problems() == ["trunk.yaml:1 exchange", "trunk.yaml:2 network"])
        #expect(try TrunkFiles("max_calls: 2\n").problems().count == 2)
    }

    @Test("A trunk shows metrics where its own file says")
    func monitoring() throws {
        #expect(try TrunkFiles(Self.files).read().monitoring == nil)
        let shown = try TrunkFiles(Self.files + "monitoring: { listen: '127.0.0.1:9472' }\n").read()
        #expect(shown.monitoring?.listen.port == 9_472)
        #expect(
            try TrunkFiles(Self.files + "monitoring: { listen: '0.0.0.0:9472' }\n").problems() == [
                "trunk.yaml:3 monitoring.listen"
            ])
    }

    @Test(
        "An operator acts on a trunk where its own file says, and the section can be read without the two other files")
    func control() throws {
        #expect(try TrunkFiles(Self.files).read().control == nil)
        let files = try TrunkFiles("exchange: none.yaml\nnetwork: none.yaml\ncontrol: { socket: /run/x.sock }\n")
        let section = try #require(try TrunkConfiguration.control(inFile: "\(files.folder)/trunk.yaml"))
        #expect(section.path == "/run/x.sock" && section.access == .owner && section.network == nil)
        for (text, key) in [
            ("control: {}", "control.socket"),
            ("control: { socket: default, listen: '127.0.0.1:0' }", "control.listen"),
            ("control: { socket: default, allowed_hosts: [a] }", "control.allowed_hosts"),
            ("control: { socket: \(String(repeating: "s", count: 120)) }", "control.socket"),
        ] {
            #expect(try TrunkFiles(Self.files + text + "\n").problems() == ["trunk.yaml:3 \(key)"])
        }
    }

    @Test("A file of another machine is checked without those that it names")
    func offline() throws {
        let files = try TrunkFiles("exchange: nowhere.yaml\nnetwork: nothing.yaml\n")
        #expect(throws: ConfigError.self) {
            try TrunkConfiguration.check(path: "\(files.folder)/trunk.yaml", fileChecks: .all)
        }
        #expect(try TrunkConfiguration.check(path: "\(files.folder)/trunk.yaml", fileChecks: .none).isEmpty)
    }
}
