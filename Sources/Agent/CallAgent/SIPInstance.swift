internal import FoundationEssentials
internal import Logging
internal import Files
internal import Synchronization

/// By what a registrar knows a device again (RFC 5626 §4.1): a UUID, made at the first start and kept in a file, or for as long as
/// the process runs.
struct SIPInstance {
    /// The line of a file and its end.
    private static let maximumBytes = 256

    /// `urn:uuid:…` (RFC 9562).
    let name: String

    /// Reads the name, or makes one and writes it.
    ///
    /// A file that cannot be used is logged, and the device starts nevertheless: its earlier binding then stays at the
    /// registrar until that expires.
    /// - Parameter path: nil makes another one each time.
    init(keptIn path: String?, logger: Logger) {
        let fresh = "urn:uuid:\(UUID().uuidString.lowercased())"
        guard let path else {
            name = fresh
            return
        }
        do throws(PrivateFileError) {
            if let bytes = try PrivateFile.read(path, maximumBytes: Self.maximumBytes) {
                if let kept = Self.name(in: bytes) {
                    name = kept
                    return
                }
                logger.warning(
                    "The file of the device's instance holds no urn:uuid:, and is replaced: to the server it is another device",
                    metadata: ["file": "\(path)"])
            }
            try PrivateFile.replace(path, with: Array((fresh + "\n").utf8))
        } catch {
            logger.warning(
                "The device's instance is not kept: after the next start the server takes it for another device",
                metadata: ["error": "\(error)"])
        }
        name = fresh
    }

    /// The name of an account without a file: the same each time in this process.
    ///
    /// - Parameter account: What makes it the same account: its name in the process, and its address of record.
    init(ofAccount account: String) {
        name = Self.ofProcess.withLock { names in
            if let name = names[account] { return name }
            let fresh = "urn:uuid:\(UUID().uuidString.lowercased())"
            names[account] = fresh
            return fresh
        }
    }

    /// As many as there are accounts in the configurations that this process has had.
    private static let ofProcess = Mutex<[String: String]>([:])

    private static func name(in bytes: [UInt8]) -> String? {
        let line =
            String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline).first.map(String.init) ?? ""
        let prefix = "urn:uuid:"
        guard line.hasPrefix(prefix), let uuid = UUID(uuidString: String(line.dropFirst(prefix.count))) else {
            return nil
        }
        return "urn:uuid:\(uuid.uuidString.lowercased())"
    }
}
