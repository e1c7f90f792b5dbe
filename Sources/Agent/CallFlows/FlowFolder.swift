public import CallFlow
internal import Files
internal import FoundationEssentials
internal import Glibc

/// The files of a flow: its first document, and what is in that one's folder and below.
///
/// No name and no symbolic link leads out of the folder. Blocks on the disk.
public struct FlowFolder: Equatable, Sendable {
    /// The flow's first document.
    public let first: FlowFileName
    private let folder: String

    /// - Parameter file: The path of the first document.
    /// - Throws: ``FlowUnusable`` if documents cannot have such a name.
    public init(file: String) throws(FlowUnusable) {
        folder = WritableFolder.parent(of: file)
        do throws(FlowFileName.Fault) {
            first = try FlowFileName(file.split(separator: "/").last.map(String.init) ?? file)
        } catch {
            throw FlowUnusable(error.message)
        }
    }

    /// The path of a file, for messages.
    public func shownPath(of name: FlowFileName) -> String { folder == "." ? name.text : "\(folder)/\(name)" }

    /// The path of a file, from the root and without symbolic links.
    public func path(of name: FlowFileName) throws(FlowUnusable) -> String {
        do throws(RegularFileError) {
            return try RegularFile.path(of: name.text, within: folder)
        } catch {
            throw unreadable(name, error.message, isMissing: error.systemError == ENOENT)
        }
    }

    private func unreadable(_ name: FlowFileName, _ why: String, isMissing: Bool = false) -> FlowUnusable {
        FlowUnusable("cannot read \"\(shownPath(of: name))\": \(why)", isMissing: isMissing)
    }

    /// Reads a document for a call.
    public func load(_ name: FlowFileName) -> Result<FlowDocument, FlowUnusable> {
        do throws(FlowUnusable) {
            let bytes = try bytes(of: name)
            do throws(FlowFaults) {
                return .success(try FlowDocument(parsing: bytes))
            } catch {
                return .failure(FlowUnusable(error.faults.map(\.description).joined(separator: "; ")))
            }
        } catch {
            return .failure(error)
        }
    }

    /// Reads a document.
    ///
    /// - Throws: All that is wrong with it.
    public func document(_ name: FlowFileName) throws(FlowFaults) -> FlowDocument {
        let bytes: [UInt8]
        do throws(FlowUnusable) {
            bytes = try self.bytes(of: name)
        } catch {
            throw FlowFaults(faults: [FlowFault(message: error.message)])
        }
        return try FlowDocument(parsing: bytes)
    }

    private func bytes(of name: FlowFileName) throws(FlowUnusable) -> [UInt8] {
        let path = try path(of: name)
        let file: OpenFile
        do throws(RegularFileError) {
            file = try RegularFile.open(path, O_RDONLY | O_NOFOLLOW)
        } catch {
            throw unreadable(name, error.message)
        }
        do throws(SystemError) {
            if let bytes = try file.readAll(maximumBytes: FlowDocument.longest) { return bytes }
        } catch {
            throw unreadable(name, "\(error)")
        }
        throw unreadable(name, "a document has \(FlowDocument.longest) bytes at most")
    }

    /// Names of files in the folder, and in the folders in it, in order; the first 1,000.
    func names() -> [FlowFileName] {
        var found: [FlowFileName] = []
        var folders = [""]
        while let prefix = folders.popLast() {
            for entry in Self.entries(of: "\(folder)/\(prefix)") where found.count < Self.mostNames {
                guard let name = try? FlowFileName(prefix + entry) else { continue }
                if RegularFile.isThere("\(folder)/\(name)") {
                    found.append(name)
                } else if prefix.isEmpty {
                    folders.append(entry + "/")
                }
            }
        }
        return found.sorted { $0.text < $1.text }
    }

    private static let mostNames = 1_000

    private static func entries(of folder: String) -> [String] {
        Array(((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).sorted().prefix(mostNames))
    }
}
