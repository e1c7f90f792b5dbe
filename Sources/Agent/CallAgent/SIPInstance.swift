internal import FoundationEssentials
internal import Logging
internal import PrivateFiles

/// By what a registrar knows a device again (RFC 5626 §4.1): a UUID, made at the first start and kept in a file.
struct SIPInstance {
    /// The line of a file and its end.
    private static let maximumBytes = 256

    /// `urn:uuid:…` (RFC 9562).
    let name: String

    /// Reads the name, or makes one and writes it.
    ///
    /// A file that cannot be used is told, and the device starts nevertheless: its earlier binding then stays at the
    /// registrar until that expires.
    /// - Parameter path: nil keeps nothing.
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
                metadata: ["because": "\(error)"])
        }
        name = fresh
    }

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
