package import NIOSSL
internal import PrivateFiles
internal import Synchronization

/// Whose certificates a client believes.
package final class TLSTrust: Sendable {
    /// The file of additional certificates cannot be read, or has none in PEM form.
    package struct Unreadable: Error, Hashable, Sendable {
        package let path: String
        /// What is wrong with it.
        package let cause: String
    }

    /// For clients that make their own connections.
    package let configuration: TLSConfiguration
    /// A system's whole list of authorities is some 200 KiB.
    private static let maximumBytes = 16 << 20
    private let made = Mutex<NIOSSLContext?>(nil)

    /// What the system trusts.
    package static var system: TLSTrust { TLSTrust(TLSConfiguration.makeClientConfiguration()) }

    private init(_ configuration: TLSConfiguration) { self.configuration = configuration }

    /// Trusts what the system trusts, and the certificates of a PEM file if one is given.
    package init(trustRootFile: String?) throws(Unreadable) {
        var configuration = TLSConfiguration.makeClientConfiguration()
        if let trustRootFile {
            configuration.additionalTrustRoots = [.certificates(try Self.certificates(in: trustRootFile))]
        }
        self.configuration = configuration
    }

    /// Trusts what this certificate has signed, and nothing else.
    package init(only root: NIOSSLCertificate) {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.trustRoots = .certificates([root])
        self.configuration = configuration
    }

    private static func certificates(in path: String) throws(Unreadable) -> [NIOSSLCertificate] {
        let found: [UInt8]?
        do throws(PrivateFileError) {
            found = try PrivateFile.read(path, maximumBytes: maximumBytes)
        } catch {
            throw Unreadable(path: path, cause: "it cannot be read: \(error.cause)")
        }
        guard let bytes = found else { throw Unreadable(path: path, cause: "there is no such file") }
        guard let certificates = try? NIOSSLCertificate.fromPEMBytes(bytes), !certificates.isEmpty else {
            throw Unreadable(path: path, cause: "it holds no certificate in PEM form")
        }
        return certificates
    }

    /// What connections over TLS share. The first one makes it: the system's certificates take 0.8 MB, which a client
    /// that speaks only plain text does without.
    package func context() throws -> NIOSSLContext {
        try made.withLock { made in
            if let made { return made }
            let context = try NIOSSLContext(configuration: configuration)
            made = context
            return context
        }
    }
}
