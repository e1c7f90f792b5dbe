package import NIOSSL
internal import Synchronization

/// Whose certificates a client believes.
package final class TLSTrust: Sendable {
    /// The file of additional certificates cannot be read, or has none in PEM form.
    package struct Unreadable: Error, Hashable, Sendable {
        package let path: String
    }

    /// For clients that make their own connections.
    package let configuration: TLSConfiguration
    private let made = Mutex<NIOSSLContext?>(nil)

    /// Trusts what the system trusts, and the certificates of a PEM file if one is given.
    package init(trustRootFile: String?) throws(Unreadable) {
        var configuration = TLSConfiguration.makeClientConfiguration()
        if let trustRootFile {
            do {
                let certificates = try NIOSSLCertificate.fromPEMFile(trustRootFile)
                guard !certificates.isEmpty else { throw NIOSSLError.failedToLoadCertificate }
                configuration.additionalTrustRoots = [.certificates(certificates)]
            } catch {
                throw Unreadable(path: trustRootFile)
            }
        }
        self.configuration = configuration
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
