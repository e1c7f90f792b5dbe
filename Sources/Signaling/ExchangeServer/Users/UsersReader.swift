import ConfigReader
import ExchangeCore

/// Looks at a users file again and again, and reads each new version of it once.
///
/// A file that is missing or wrong changes nothing: its users stay. A version is read when two looks have seen it, so
/// that a file that a program is still writing is not.
struct UsersReader: Sendable {
    enum Finding: Equatable {
        case users([Account])
        /// Reported once, until it is another one.
        case problem(String)
    }

    /// Looks from a failed read to the next: what hindered it may change without the file, and reading takes time.
    static let looksBetweenReads = 5

    let file: UsersFile
    /// Whether there was such a file once.
    private var wasThere: Bool
    /// Of the file as its users were read last.
    private var read: FileVersion?
    /// Of the file at the last look; `nil` if it was missing.
    private var seen: FileVersion?
    /// Looks that do not read, because reading failed.
    private var pause = 0
    private var problem: String?

    /// - Parameter wasRead: Whether the configuration has users of the file.
    init(_ file: UsersFile, wasRead: Bool) {
        self.file = file
        wasThere = wasRead
    }

    /// The next look reads the file, although it may be the same.
    mutating func readAgain() {
        read = nil
        pause = 0
    }

    /// - Parameter others: Users whose ids are taken.
    /// - Returns: What is new; nil if nothing is.
    mutating func look(beside others: [Account]) -> Finding? {
        let found: FileVersion?
        do throws(FileChangeError) { found = try file.version } catch {
            seen = nil
            return report(error.description)
        }
        guard let version = found else {
            seen = nil
            return wasThere ? report("\(file.path) is missing. Put it back; one with `users: []` has no users.") : nil
        }
        wasThere = true
        guard version == seen else {
            (seen, pause) = (version, 0)
            return nil
        }
        if version == read {
            problem = nil
            return nil
        }
        guard pause == 0 else {
            pause -= 1
            return nil
        }
        do throws(ConfigError) {
            let users = try file.readExisting(beside: others)
            // The next looks read what has replaced it meanwhile.
            guard FileVersion(of: file.path) == version else { return nil }
            (read, problem) = (version, nil)
            return .users(users)
        } catch {
            pause = Self.looksBetweenReads - 1
            return report(error.problems.map(\.description).joined(separator: "; "))
        }
    }

    private mutating func report(_ text: String) -> Finding? {
        guard text != problem else { return nil }
        problem = text
        return .problem(text)
    }
}
