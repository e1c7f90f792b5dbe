import Foundation
import TestSupport
import Testing
import Core

@testable import handset

@Suite("The service manager")
struct ServiceManagerTests {
    private static let process: Int32 = 4_711

    private func manager(_ variables: [String: String]) throws(ServiceManagerError) -> ServiceManager? {
        try ServiceManager(environment: { variables[$0] }, process: Self.process)
    }

    @Test("Each notice reaches the socket of NOTIFY_SOCKET, a path or an abstract name, as one datagram")
    func notices() throws {
        let name = "handset-\(UUID().uuidString)"
        for place in [FileManager.default.temporaryDirectory.path + "/" + name, "@" + name] {
            let inbox = try DatagramInbox(place)
            let manager = try #require(try manager(["NOTIFY_SOCKET": place]))
            try manager.notify(.ready, .status("Connected\nas echo"))
            try manager.notify(.reloading(at: Instant(nanoseconds: 1_234_567_890)))
            try manager.notify(.alive)
            try manager.notify(.stopping)
            #expect(
                inbox.texts == [
                    "READY=1\nSTATUS=Connected as echo", "RELOADING=1\nMONOTONIC_USEC=1234567", "WATCHDOG=1",
                    "STOPPING=1",
                ])
        }
    }

    @Test("A service that ends notifies nothing but that it works: not that it is ready, and not of a reload")
    func end() throws {
        let name = "@handset-\(UUID().uuidString)"
        let inbox = try DatagramInbox(name)
        let manager = try #require(try manager(["NOTIFY_SOCKET": name]))
        try manager.notify(.reloading(at: .zero), .status("Reading"))
        try manager.notify(.stopping, .status("Ending"))
        try manager.notify(.ready, .status("Connected"))
        try manager.notify(.reloading(at: .zero))
        try manager.notify(.status("Connected"))
        try manager.notify(.alive)
        #expect(
            inbox.texts == ["RELOADING=1\nMONOTONIC_USEC=0\nSTATUS=Reading", "STOPPING=1\nSTATUS=Ending", "WATCHDOG=1"])
    }

    @Test("Without NOTIFY_SOCKET there is no service manager; with one that is no address, the error says so")
    func absence() throws {
        #expect(try manager([:]) == nil)
        #expect(try manager(["NOTIFY_SOCKET": ""]) == nil)
        for name in ["run/notify", "/" + String(repeating: "a", count: 107), "@", "vsock:2:1234"] {
            do throws(ServiceManagerError) {
                _ = try manager(["NOTIFY_SOCKET": name])
                Issue.record("\(name) was taken")
            } catch {
                #expect("\(error)".hasPrefix("cannot notify the service manager at \(name): "))
            }
        }
    }

    @Test("A name of 107 bytes, the longest that fits, is taken")
    func longest() throws {
        let name = "@" + String(repeating: "n", count: 70) + UUID().uuidString
        #expect(name.utf8.count == 107)
        let inbox = try DatagramInbox(name)
        try #require(try manager(["NOTIFY_SOCKET": name])).notify(.ready)
        #expect(inbox.texts == ["READY=1"])
    }

    @Test("A service manager that is gone is an error, and nothing waits for it")
    func gone() throws {
        let manager = try #require(try manager(["NOTIFY_SOCKET": "@handset-\(UUID().uuidString)"]))
        #expect(throws: ServiceManagerError.self) { try manager.notify(.ready) }
    }

    @Test(
        "The watchdog watches this process for as long as WATCHDOG_USEC says, unless WATCHDOG_PID is another process",
        arguments: [
            (["WATCHDOG_USEC": "30000000"], Duration.seconds(30)),
            (["WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "4711"], .seconds(30)),
            (["WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "4712"], nil),
            (["WATCHDOG_USEC": "0"], nil), (["WATCHDOG_USEC": "-1"], nil), (["WATCHDOG_USEC": "soon"], nil), ([:], nil),
        ] as [([String: String], Duration?)])
    func watchdog(variables: [String: String], limit: Duration?) throws {
        let manager = try manager(variables.merging(["NOTIFY_SOCKET": "@x"]) { $1 })
        #expect(try #require(manager).watchdogLimit == limit)
    }
}
