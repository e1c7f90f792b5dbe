import Cryptography
public import Enrollment
internal import FoundationEssentials
import HTTPTransport
import Files
import Core

/// The exchange as its own authority: a root certificate that is made once, and certificates that it signs.
///
/// The folder has `authority.pem`, the private key and the certificate (mode 0600), `root.pem`, the certificate alone, and
/// `authority.lock`, so that two exchanges that start for the first time make one root.
/// What the root signs is never on disk.
public struct OwnAuthority: Hashable, Sendable {
    /// Where it is kept.
    public let folder: String
    /// What clients call the exchange by.
    public let names: [String]

    /// Names the folder, which need not be there yet.
    public init(folder: String, names: [String]) {
        self.folder = folder
        self.names = names
    }

    /// How long what it signs is good, and how long before its end there is another.
    static let (lifetime, renewal): (Int64, Int64) = (90 * 86_400, 30 * 86_400)
    /// How far clients' clocks may be behind.
    private static let patience: Int64 = 86_400
    /// From 2025 to the end of 2049, independent of this machine's clock when the root is made.
    private static let (rootStart, rootEnd): (Int64, Int64) = (1_735_689_600, 2_524_607_999)
    private static let maximumBytes = 65_536

    var secretPath: String { "\(folder)/authority.pem" }
    /// The file of the root certificate, which clients install to trust it.
    public var rootPath: String { "\(folder)/root.pem" }

    /// A certificate, and until when it should be used.
    struct Issued: Sendable {
        let identity: ServerIdentity
        /// Seconds since 1970: what is issued outside of this is issued again.
        let good: ClosedRange<Int64>
        /// In PEM form.
        let root: [UInt8]
    }

    /// Makes a certificate, and the root if there is none.
    func issue(at now: WallClock) throws(ExchangeError) -> Issued {
        let authority: CertifiedKey
        if let kept = try read(at: now) { authority = kept } else { authority = try make(at: now) }
        let now = now.unixMilliseconds / 1_000
        let (start, end) = (now - Self.patience, min(now + Self.lifetime, Self.rootEnd))
        let leaf: CertifiedKey
        do throws(CertificateError) {
            leaf = try CertificateAuthority.issue(for: names, from: Int(start), to: Int(end), by: authority)
        } catch {
            throw ExchangeError(
                .certificateNotUsable, "cannot make a certificate: \(error). Check certificate.names.")
        }
        guard let identity = ServerTLS.identity(chain: leaf.certificate + authority.certificate, key: leaf.key) else {
            throw ExchangeError(.certificateNotUsable, "cannot use a certificate that was just made for TLS.")
        }
        return Issued(identity: identity, good: start...max(start, end - Self.renewal), root: authority.certificate)
    }

    /// Finds out whether what is kept can be used.
    func check(at now: WallClock) throws(ExchangeError) { _ = try read(at: now) }

    private func read(at now: WallClock) throws(ExchangeError) -> CertifiedKey? {
        let bytes: [UInt8]?
        do throws(PrivateFileError) {
            bytes = try PrivateFile.read(secretPath, maximumBytes: Self.maximumBytes)
        } catch {
            throw ExchangeError(.certificateNotUsable, "\(error)")
        }
        guard let bytes else { return nil }
        let authority = CertifiedKey(certificate: bytes, key: bytes)
        if let fault = CertificateAuthority.fault(in: authority, at: Int(now.unixMilliseconds / 1_000)) {
            throw ExchangeError(
                .certificateNotUsable,
                "\"\(secretPath)\" \(fault). Restore it from a backup; or remove it, and the exchange makes another "
                    + "authority, which every device and browser has to trust again.")
        }
        let certificate: [UInt8]
        do { certificate = try CertificateAuthority.certificate(in: bytes) } catch {
            throw ExchangeError(.certificateNotUsable, "\"\(secretPath)\": \(error)")
        }
        // A crash may have come between the two files.
        if (try? PrivateFile.read(rootPath)) != certificate { try? PrivateFile.replace(rootPath, with: certificate) }
        return CertifiedKey(certificate: certificate, key: bytes)
    }

    /// How long another process may take to make the root, in hundredths of a second: milliseconds of work, and a slow disk.
    private static let lockPatience = 500

    /// Makes the root, unless another process that starts at the same time does so first: two would undo each other's.
    private func make(at now: WallClock) throws(ExchangeError) -> CertifiedKey {
        do {
            try WritableFolder.make(folder)
            let lock = try LockFile("\(folder)/authority.lock", patience: Self.lockPatience)
            defer { withExtendedLifetime(lock) {} }
            if let kept = try read(at: now) { return kept }
            let name = "Handset exchange \(names.first ?? "")"
            let authority = try CertificateAuthority.make(
                name: String(name.prefix(64)), from: Int(Self.rootStart), to: Int(Self.rootEnd))
            // The secret first: what is trusted can be made from it again.
            try PrivateFile.replace(secretPath, with: authority.key + authority.certificate)
            try PrivateFile.replace(rootPath, with: authority.certificate)
            return authority
        } catch let error as ExchangeError {
            throw error
        } catch {
            throw ExchangeError(.certificateNotUsable, "cannot make an authority in \"\(folder)\": \(error)")
        }
    }
}

extension ExchangeConfiguration {
    /// Default host names of an exchange without configured names.
    static func ownNames(listen host: String) -> [String] {
        guard let name = HostName(host) else { return [host] }
        guard name.isWildcard else { return name.text == "localhost" ? [name.text] : [name.text, "localhost"] }
        let machine = ProcessInfo.processInfo.hostName.lowercased()
        return (machine != "localhost" && HostName(machine) != nil ? [machine] : []) + ["localhost"]
    }

    /// By what devices are to call the exchange; `nil` if the configuration does not show it.
    public var enrollmentHost: String? {
        let names = ownAuthority?.names ?? ServerTLS.names(of: serverCertificate)
        let own = HostName(host).flatMap { $0.isWildcard ? nil : host }
        return names.first { !$0.hasPrefix("*") } ?? own
    }

    /// The fingerprint of the authority that devices are to check; `nil` without TLS.
    ///
    /// - Throws: ``ExchangeError`` if there is no certificate yet, or none that can be read.
    public func authorityFingerprint() throws(ExchangeError) -> AuthorityFingerprint? {
        guard let (path, chain) = try presentedChain() else { return nil }
        guard let authority = ServerTLS.authority(ofChain: chain),
            let fingerprint = AuthorityFingerprint(digest: Digest.sha256(authority))
        else {
            throw ExchangeError(.certificateNotUsable, "\"\(path)\" holds no certificate in PEM form.")
        }
        return fingerprint
    }

    /// What a device must trust besides the system's certificates, in PEM form: the exchange's own authority, or a root at the end
    /// of its chain. `nil` without TLS, and if the system's certificates include the signer.
    ///
    /// - Throws: ``ExchangeError`` if there is no certificate yet, or none that can be read.
    public func trustRoots() throws(ExchangeError) -> [UInt8]? {
        guard let (path, chain) = try presentedChain() else { return nil }
        guard let authority = ServerTLS.authorityText(ofChain: chain) else {
            throw ExchangeError(.certificateNotUsable, "\"\(path)\" holds no certificate in PEM form.")
        }
        return CertificateAuthority.isSelfIssued(authority) ? authority : nil
    }

    private func presentedChain() throws(ExchangeError) -> (path: String, bytes: [UInt8])? {
        guard let path = ownAuthority?.rootPath ?? certificate?.chainPath else { return nil }
        let bytes: [UInt8]?
        do throws(PrivateFileError) { bytes = try PrivateFile.read(path) } catch {
            throw ExchangeError(.certificateNotUsable, "\(error)")
        }
        guard let bytes else {
            throw ExchangeError(
                .certificateNotUsable,
                "there is no \"\(path)\" yet: start the exchange once, and it makes its authority.")
        }
        return (path, bytes)
    }
}
