internal import CallAgent
internal import Files

/// Keeps a second process away from what makes a device this one at its service: two that are the same device there end each
/// other's sessions, again and again.
///
/// That is the login in `account.session_file`, the key in `account.key_file`, the instance in `account.sip.instance_file`, and,
/// without a kept login, `device.id` in the configuration itself. A device with none of them is another one at each start, and may
/// run any number of times.
/// They are held as long as this lives.
final class DeviceLocks: Sendable {
    private final class Held: Sendable {
        private let lock: LockFile

        init(_ lock: consuming LockFile) { self.lock = lock }
    }

    private let held: [Held]

    /// Locks the login, the key and the instance of an account.
    ///
    /// - Throws: ``CommandFailure`` that names the file if another process has one of them.
    init(_ configuration: DeviceConfiguration) throws {
        let account = configuration.account
        var held: [Held] = []
        if let file = account.sessionFile {
            held.append(
                try Self.lock("Each running device needs an account.session_file of its own") {
                    () throws(PrivateFileError) in try Held(LockFile(file + ".lock"))
                })
        }
        if let file = account.keyFile {
            held.append(
                try Self.lock("A key is one device's: another one joins by a code of its own") {
                    () throws(PrivateFileError) in try Held(LockFile(existing: file))
                })
        }
        if let file = account.instanceFile {
            held.append(
                try Self.lock("Each running device needs an account.sip.instance_file of its own") {
                    () throws(PrivateFileError) in try Held(LockFile(file + ".lock"))
                })
        }
        self.held = held
    }

    /// Locks the configuration itself, which alone has an account's id.
    ///
    /// - Throws: ``CommandFailure`` that names the file if another process has it.
    init(idInFile path: String) throws {
        held = [
            try Self.lock("Each running device needs a device.id of its own, or none") {
                () throws(PrivateFileError) in try Held(LockFile(existing: path))
            }
        ]
    }

    /// Finds out whether a process runs that is the same device, without making a file.
    ///
    /// - Parameter path: The configuration's file.
    /// - Returns: The files that would be locked, and whether another process has locked each; files that are not there are left out.
    static func look(_ configuration: DeviceConfiguration, inFile path: String) -> [(file: String, isHeld: Bool)] {
        let account = configuration.account
        let made = [account.sessionFile, account.instanceFile].compactMap { $0.map { $0 + ".lock" } }
        let isFileLocked = configuration.device.id != nil && account.sessionFile == nil
        let files = made + [account.keyFile, isFileLocked ? path : nil].compactMap(\.self)
        return files.compactMap { file in
            do throws(PrivateFileError) {
                _ = try LockFile(existing: file)
                return (file, false)
            } catch {
                return error.isLockedElsewhere ? (file, true) : nil
            }
        }
    }

    private static func lock(_ rule: String, _ take: () throws(PrivateFileError) -> Held) throws -> Held {
        do throws(PrivateFileError) {
            return try take()
        } catch {
            throw CommandFailure(.failed, "\(error) \(rule); is this one running?")
        }
    }
}
