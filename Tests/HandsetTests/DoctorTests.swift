import CallDiagnosis
import DeviceDiagnosis
import Foundation
import Testing

@testable import handset

@Suite("What `handset doctor` says of itself")
struct DoctorPageTests {
    private static func page() throws -> String {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        return try String(contentsOf: root.appendingPathComponent("docs/doctor.md"), encoding: .utf8)
    }

    @Test("docs/doctor.md lists every finding with its exit code, and no other one")
    func findings() throws {
        let rows = try Self.page().matches(of: /(?m)^\| `([a-z_]+)` \| ([^|]+) \| (\d+) \|/)
        let listed = Dictionary(rows.map { (String($0.1), Int32($0.3)) }) { one, _ in one }
        #expect(rows.count == listed.count)
        let codes = DeviceFinding.Code.allCases.map { ($0.rawValue, Int32?(ExitStatus($0).rawValue)) }
        #expect(listed == Dictionary(uniqueKeysWithValues: codes))
        let sides = Set(rows.flatMap { $0.2.matches(of: /`([a-z_]+)`/).map { String($0.1) } })
        #expect(sides.isSubset(of: Set(Finding.Side.allCases.map(\.rawValue))))
    }

    @Test("docs/doctor.md lists every step in its order")
    func steps() throws {
        let page = try Self.page()
        let steps = try #require(page.range(of: "## The steps")), findings = try #require(page.range(of: "## Findings"))
        let rows = page[steps.upperBound..<findings.lowerBound].matches(of: /(?m)^\| `([a-z]+)` \|/).map {
            String($0.1)
        }
        #expect(rows == DeviceStep.Name.allCases.map(\.rawValue))
    }

    @Test("docs/doctor.md has the bound of each step, and of all together")
    func bounds() throws {
        let page = try Self.page()
        for row in [
            "| `device` | \(DoctorBounds.device) s |", "| `names` | \(DoctorBounds.names) s |",
            "| `connections`: a connection | \(DoctorBounds.connection) s |",
            "and an answer, \(DoctorBounds.answer) s each | \(3 * DoctorBounds.answer) s |",
            "| `login` | \(DoctorBounds.login) s |",
            "| `nat` | \(DoctorBounds.datagrams) s, and \(DoctorBounds.stunNames) s for names",
            "| `relays` | \(DoctorBounds.relay) s |",
            "| `card` | \(DoctorBounds.card) s |", "| all of these together | \(DoctorBounds.all) s |",
            "| `call` | \(DoctorBounds.call) s |",
        ] {
            #expect(page.contains(row), "no \(row)")
        }
    }

    @Test("Work that hangs is not waited for longer than its bound")
    func hanging() async {
        let result = await DoctorBounds.within(0) {
            await withUnsafeContinuation { (_: UnsafeContinuation<Int, Never>) in }
        }
        #expect(result == nil)
        #expect(await DoctorBounds.within(60) { 4 } == 4)
    }
}
