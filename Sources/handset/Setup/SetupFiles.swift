internal import Glibc
internal import Files

/// The files of a plan, in its folder: all by descriptors, because root writes here, perhaps into folders that others may write to
/// as well.
struct SetupFiles {
    typealias File = (path: String, text: String)

    let plan: SetupPlan
    /// The unit's user and its group.
    let group: String

    static func isThere(_ path: String) -> Bool { (try? RegularFile.checkAccess(path, F_OK)) != nil }

    /// Reads a file that an earlier run may have left in the plan's folder.
    func read(_ path: String) throws -> [UInt8]? {
        guard Self.isThere(path) else { return nil }
        do throws(PrivateFileError) {
            return try HeldFolder(making: plan.folder).read(Self.name(path), maximumBytes: 4_096)
        } catch {
            throw CommandFailure(.failed, "\(error)")
        }
    }

    /// Writes files, and makes the folder of the state.
    ///
    /// - Parameter progress: Where a folder is reported in which other users may replace what is there.
    func write(_ files: [File], _ undo: inout SetupUndo, _ progress: ProgressLines? = nil) throws {
        do throws(PrivateFileError) {
            let folder = try HeldFolder(making: plan.folder, mode: 0o755)
            Self.note(folder.made, &undo)
            let state = try HeldFolder(making: plan.state, parents: 0o755)
            Self.note(state.made, &undo)
            // The unit's user, who has its group's name, owns the state's folder after the first time.
            for place in Set(folder.exposed + state.exposed.filter { $0 != plan.state }).sorted() {
                progress?.warn(
                    "other users may replace what is in \(place), and so the device's files; `chmod go-w` it as root's, or "
                        + "choose another --folder or --state")
            }
            try state.hand(toUser: group)
            for (path, text) in files {
                // A link is replaced, and is no file to come back.
                let earlier = (try? folder.read(Self.name(path), maximumBytes: 1_048_576)) ?? nil
                try folder.replace(Self.name(path), with: Array(text.utf8), for: reader(of: path))
                if earlier != Array(text.utf8) { note(path, earlier, &undo) }
            }
        } catch {
            throw CommandFailure(.failed, "\(error)")
        }
    }

    /// Removes a file of the plan's folder, if it is there.
    func remove(_ path: String) { try? HeldFolder(making: plan.folder).remove(Self.name(path)) }

    private func note(_ path: String, _ earlier: [UInt8]?, _ undo: inout SetupUndo) {
        let (folder, name, reader) = (plan.folder, Self.name(path), reader(of: path))
        undo.add(earlier == nil ? path : "the new \(path); the earlier one is back") {
            let held = try HeldFolder(making: folder)
            if let earlier { try held.replace(name, with: earlier, for: reader) } else { try held.remove(name) }
        }
    }

    private static func note(_ made: [String], _ undo: inout SetupUndo) {
        for path in made {
            undo.add(path) {
                let parent = path.dropLast(name(path).count + 1)
                try HeldFolder(making: parent.isEmpty ? "/" : String(parent)).removeFolder(name(path))
            }
        }
    }

    private func reader(of path: String) -> HeldFolder.Reader {
        // A key is for the unit's user alone.
        if path.hasSuffix(".key") { return .user(group) }
        return path == plan.draftKeyPath ? .owner : .group(group)
    }

    private static func name(_ path: String) -> String { path.split(separator: "/").last.map(String.init) ?? path }
}

/// What a run of `handset setup` has changed so far, and how to take each of it back.
struct SetupUndo: ~Copyable {
    private var steps: [(name: String, takeBack: () throws -> Void)] = []

    /// Notes a change that was made.
    ///
    /// - Parameter name: What was made, to be read after "removed again:".
    mutating func add(_ name: String, _ takeBack: @escaping () throws -> Void) { steps.append((name, takeBack)) }

    /// Notes a change that is taken back after all others.
    mutating func addForLast(_ name: String, _ takeBack: @escaping () throws -> Void) {
        steps.insert((name, takeBack), at: 0)
    }

    /// Takes everything back, the newest first. A step that fails does not keep the others from it.
    mutating func takeBack(_ progress: ProgressLines) {
        for step in steps.reversed() {
            do {
                try step.takeBack()
                progress.say("Removed again: \(step.name)")
            } catch {
                progress.warn("Not removed: \(step.name): \(error)")
            }
        }
        steps = []
    }

    /// Keeps what was made until now, also after later failures.
    mutating func keep() { steps = [] }
}
