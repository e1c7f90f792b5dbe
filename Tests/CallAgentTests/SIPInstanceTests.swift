import Foundation
import Logging
import SIP
import Testing

@testable import CallAgent

@Suite("The instance of a SIP account")
struct SIPInstanceTests {
    private static let quiet = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    private static func isName(_ text: String) -> Bool {
        text.wholeMatch(of: /urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/) != nil
    }

    @Test("It is the same after a restart, in a file that only its owner may read")
    func kept() throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("instance-\(UUID())").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        let first = SIPInstance(keptIn: path, logger: Self.quiet).name
        #expect(Self.isName(first))
        #expect(SIPInstance(keptIn: path, logger: Self.quiet).name == first)
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        #expect(mode == 0o600)
    }

    @Test("Without a file it is another one each time")
    func unkept() {
        let names = (0..<2).map { _ in SIPInstance(keptIn: nil, logger: Self.quiet).name }
        #expect(names[0] != names[1] && names.allSatisfy(Self.isName))
    }

    @Test("RFC 5626 §4.1: An account without a file is the same device each time that its process starts it")
    func ofProcess() async throws {
        let telephone = try await SIPTelephone()
        defer { telephone.close() }
        var instances: [String] = []
        for name in ["work", "work", "home"] {
            let device = try await telephone.device("answer: { mode: ring }", account: name)
            // The end of the earlier one's registration may come late.
            let registration = telephone.requests(.register).last { $0.headers["Expires"] != "0" }
            let contact = try #require(registration?.headers.contacts?.first)
            instances.append(contact.parameters["+sip.instance"] ?? "")
            await device.device.shutDown()
        }
        #expect(instances[0] == instances[1] && instances[0] != instances[2] && !instances[0].isEmpty)
    }

    @Test(
        "A file that holds something else is replaced",
        arguments: ["", "urn:uuid:", "urn:uuid:0-0", "x urn:uuid:F81D4FAE-7DEC-11D0-A765-00A0C91E6BF6", "\u{0}"])
    func damaged(content: String) throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("instance-\(UUID())").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        try Data(content.utf8).write(to: URL(fileURLWithPath: path))
        let name = SIPInstance(keptIn: path, logger: Self.quiet).name
        #expect(Self.isName(name))
        #expect(SIPInstance(keptIn: path, logger: Self.quiet).name == name)
    }

    @Test("One that cannot be kept is made nevertheless; one that somebody wrote is taken, in lower case")
    func foreign() throws {
        #expect(Self.isName(SIPInstance(keptIn: "/nonexistent/instance", logger: Self.quiet).name))
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("instance-\(UUID())").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        try Data("urn:uuid:F81D4FAE-7DEC-11D0-A765-00A0C91E6BF6\r\n".utf8).write(to: URL(fileURLWithPath: path))
        #expect(
            SIPInstance(keptIn: path, logger: Self.quiet).name == "urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6")
    }
}
