@testable import BlockingWork
import CallControl
import ExchangeServer
import Foundation
import TestSupport
import Testing

@testable import CallAgent

@Suite("A device whose disk hangs at the start", .timeLimit(.minutes(5)))
struct SlowDiskTests {
    @Test(
        "CONN-6, AUTH-9: A device that is shut down, or logs out, before its disk answers does not log in afterwards",
        arguments: [false, true])
    func endedBeforeConnecting(byLogout: Bool) async throws {
        let site = try await Site()
        let folder = URL.temporaryDirectory.appending(path: "handset-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let gate = Gate()
        let count = BlockingThreads.files.most
        let blocked = (0..<count).map { _ in Task { await BlockingThreads.files.run { gate.pass() } } }
        try await until { gate.arrived == count }
        let handheld = try await site.device("caller", named: "c", connects: false) {
            $0.behaviour.recordingFolder = folder.path
        }
        let device = handheld.device
        let connecting = Task { () -> SignalingError? in
            do throws(SignalingError) { try await device.connect() } catch { return error }
            return nil
        }
        try await until { BlockingThreads.files.waiting > 0 }
        if byLogout { _ = try? await device.logOut() } else { await device.shutDown() }
        gate.open()
        for task in blocked { #expect(await task.value) }
        #expect(await connecting.value?.code == .disconnected)
        #expect(await site.exchange.counters().openSessions == 0)
        try await site.close(handheld)
    }
}
