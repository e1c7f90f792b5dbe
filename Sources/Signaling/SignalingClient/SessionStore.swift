public import CallControl
internal import Files
internal import SignalWire

/// Keeps a login on disk, so that a device that starts again needs no secret (contract AUTH-10).
///
/// The file is its owner's alone and replaced at once; it belongs to one application at one server, and that of another
/// counts as none (AUTH-8).
public struct SessionStore: Hashable, Sendable {
    /// Where it is kept.
    public let path: String
    /// The application that it belongs to.
    public let application: String
    /// The server that it belongs to, as its address is configured.
    public let server: String

    /// What is kept.
    struct Kept: Codable, Equatable, Sendable {
        /// Of this layout.
        var version = 1
        var application: String
        var server: String
        var device: DeviceID
        var user: String?
        var token: Redacted<String>
        var refreshToken: Redacted<String>?
        /// In milliseconds since 1970, by this machine's clock.
        var expiresAt: Int64?
        var publicIDs: [String]

        private enum CodingKeys: String, CodingKey {
            case version, application, server, device, user, token
            case refreshToken = "refresh_token"
            case expiresAt = "expires_at_ms"
            case publicIDs = "public_ids"
        }
    }

    /// The file's content, with its owner.
    public enum Content: Hashable, Sendable {
        /// There is none, or it is empty.
        case nothing
        /// A login that this device can resume, made by the device of this id.
        case login(device: DeviceID, user: UserID?)
        /// A login of another application or at another server.
        case foreign
    }

    /// Makes a store; the file need not be there yet, its folder must.
    public init(path: String, application: String, server: String) {
        self.path = path
        self.application = application
        self.server = server
    }

    /// Looks at what is kept.
    ///
    /// - Throws: ``SignalingError`` if there is a file that cannot be read, or that is something else than a login.
    public func look() throws(SignalingError) -> Content {
        guard let kept = try read() else { return .nothing }
        guard belongs(kept) else { return .foreign }
        return .login(
            device: kept.device,
            user: try kept.user.map { text throws(SignalingError) in
                try UserID(text, of: "the user's id", doing: "read the login kept in \"\(path)\"")
            })
    }

    /// Forgets the login.
    public func clear() throws(SignalingError) {
        do throws(PrivateFileError) {
            try PrivateFile.remove(path)
        } catch {
            throw Self.failure("forget the login kept in \"\(path)\"", error)
        }
    }

    /// The login kept for this application at this server, if there is one.
    func load() throws(SignalingError) -> Kept? {
        guard let kept = try read(), belongs(kept) else { return nil }
        return kept
    }

    func save(_ kept: Kept) throws(SignalingError) {
        let activity = "keep the login in \"\(path)\""
        let bytes: [UInt8]
        do throws(SignalCodingError) {
            bytes = try SignalCoding.encode(kept)
        } catch {
            throw SignalingError(.internalError, activity: activity, cause: "\(error)")
        }
        do throws(PrivateFileError) {
            try PrivateFile.replace(path, with: bytes)
        } catch {
            throw Self.failure(activity, error)
        }
    }

    private func read() throws(SignalingError) -> Kept? {
        let activity = "read the login kept in \"\(path)\""
        let bytes: [UInt8]
        do throws(PrivateFileError) {
            guard let found = try PrivateFile.read(path, maximumBytes: SignalLimits.messageBytes) else { return nil }
            bytes = found
        } catch {
            throw Self.failure(activity, error)
        }
        if bytes.isEmpty { return nil }
        guard let kept = try? SignalCoding.decode(Kept.self, from: bytes), kept.version == 1 else {
            // The next login would overwrite the file's content.
            throw SignalingError(
                .badConfiguration, activity: activity, cause: "its content is not a login that this version keeps",
                advice: "Give the path of a file that does not exist yet, or remove this one if it is not needed.")
        }
        return kept
    }

    private func belongs(_ kept: Kept) -> Bool { kept.application == application && kept.server == server }

    private static func failure(_ activity: String, _ error: PrivateFileError) -> SignalingError {
        SignalingError(
            .badConfiguration, activity: activity, cause: error.cause,
            advice: "Check the file's owner and its folder.")
    }
}
