import ControlWire
import CallAgent
@testable import ControlPlane
@testable import DeviceControl
import Foundation
import Testing

/// The socket's file: whose it is, and what becomes of what is there before.
struct ControlSocketTests {
    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent("control-\(UUID())").path
    private var path: String { folder + "/control.sock" }

    private func mode(_ path: String) throws -> Int {
        try #require(FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int)
    }

    private func remove() { try? FileManager.default.removeItem(atPath: folder) }

    private func failure(_ path: String) -> ControlSocketError? {
        do throws(ControlSocketError) {
            _ = try ControlSocket(path: path)
            return nil
        } catch {
            return error
        }
    }

    @Test("A user without access by the socket's mode learns of the group, and not of a device that does not run")
    func advice() {
        let forbidden = ControlSocketError(.noDevice, path, "connect", errno: EACCES).description
        #expect(
            forbidden.hasSuffix(
                "Permission denied. Use root or the device's user, or join the socket's group: "
                    + "`usermod -aG handset-control USER`, and a new login."))
        let absent = ControlSocketError(.noDevice, path, "connect", errno: ECONNREFUSED).description
        #expect(absent.contains("Does `handset run` run") && !absent.contains("usermod"))
    }

    @Test("The socket is its owner's alone, so is the folder made for it, and it goes with its device")
    func permissions() throws {
        defer { remove() }
        var socket: ControlSocket? = try ControlSocket(path: path)
        #expect(try mode(path) == 0o600)
        #expect(try mode(folder) == 0o700)
        #expect(socket?.path == path)
        socket = nil
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test("With access: group the group may connect, regardless of the umask, and may enter the folder made for it")
    func group() throws {
        defer { remove() }
        let socket = try ControlSocket(path: path, access: .group)
        #expect(try mode(path) == 0o660)
        #expect(try mode(folder) == 0o750)
        #expect(throws: Never.self) { try ControlClient(path: socket.path) }
    }

    @Test("A socket in use is left alone, and the error names its user")
    func live() throws {
        defer { remove() }
        let first = try ControlSocket(path: path)
        let error = try #require(failure(path))
        #expect(error.code == .inUse)
        #expect(error.description.contains("process \(getpid()) ("), "\(error)")
        #expect(error.description.contains(path))
        // The first is there as before.
        #expect(throws: Never.self) { try ControlClient(path: first.path) }
    }

    @Test("The socket of a process that is gone is replaced")
    func dead() throws {
        defer { remove() }
        let first = try ControlSocket(path: path)
        // As a process leaves it that is killed: closed, and still there.
        close(try #require(first.takeDescriptor()))
        #expect(throws: ControlSocketError.self) { try ControlClient(path: path) }
        let second = try ControlSocket(path: path)
        #expect(throws: Never.self) { try ControlClient(path: second.path) }
    }

    @Test("If the path was removed and another socket is there now, the first one's end leaves it alone")
    func displaced() throws {
        defer { remove() }
        var first: ControlSocket? = try ControlSocket(path: path)
        #expect(first?.path == path)
        try FileManager.default.removeItem(atPath: path)
        let second = try ControlSocket(path: path)
        first = nil
        #expect(throws: Never.self) { try ControlClient(path: second.path) }
    }

    @Test("A file that is no socket is never replaced, and a folder that cannot be made is named")
    func otherFiles() throws {
        defer { remove() }
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        try "precious".write(toFile: path, atomically: true, encoding: .utf8)
        #expect(failure(path)?.description.contains("not a socket") == true)
        #expect(try String(contentsOfFile: path, encoding: .utf8) == "precious")
        let far = folder + "/a/b/control.sock"
        #expect(failure(far)?.description.contains("\(folder)/a/b") == true)
        #expect(failure(folder + "/" + String(repeating: "x", count: 120))?.code == .notUsable)
    }

    @Test("A path without a listener is reported with the path, and with what to try")
    func nobody() throws {
        do throws(ControlSocketError) {
            _ = try ControlClient(path: path)
            Issue.record("somebody is there")
        } catch {
            #expect(error.code == .noDevice)
            #expect(error.description.contains(path) && error.description.contains("handset run"))
        }
    }

    @Test("The socket's usual place is the user's own folder for such things, else the system's")
    func places() {
        #expect(ControlSocketPath.standard { _ in nil } == ["/run/handset/control.sock"])
        #expect(ControlSocketPath.standard { _ in "relative" } == ["/run/handset/control.sock"])
        #expect(
            ControlSocketPath.standard { $0 == "XDG_RUNTIME_DIR" ? "/run/user/7" : nil }
                == ["/run/user/7/handset/control.sock", "/run/handset/control.sock"])
        #expect(ControlSocketPath.listening(ControlConfiguration(socket: .path("/x"))) == "/x")
    }

    @Test("Of a server's URL the status shows host and port, and never what may be secret")
    func hosts() {
        #expect(
            ControlStatus.server(ofURL: "https://alice:secret@calls.example.org:99/path?token=x")
                == "calls.example.org:99")
        #expect(ControlStatus.server(ofURL: "http://127.0.0.1:8555") == "127.0.0.1:8555")
        #expect(ControlStatus.server(ofURL: "wss://[::1]:5/#frag") == "[::1]:5")
    }
}
