internal import CallControl
internal import NIOSSL
internal import Synchronization

/// Whose certificates are believed.
final class TLSTrust: Sendable {
    let configuration: TLSConfiguration
    private let made = Mutex<NIOSSLContext?>(nil)

    /// Trusts what the system trusts, and the certificates of a PEM file if one is given.
    init(trustRootFile: String?) throws(SignalingError) {
        var configuration = TLSConfiguration.makeClientConfiguration()
        if let trustRootFile {
            do {
                let certificates = try NIOSSLCertificate.fromPEMFile(trustRootFile)
                guard !certificates.isEmpty else { throw NIOSSLError.failedToLoadCertificate }
                configuration.additionalTrustRoots = [.certificates(certificates)]
            } catch {
                throw SignalingError(
                    .badConfiguration, activity: "read the trust root file \"\(trustRootFile)\"",
                    cause: "it cannot be read, or holds no PEM certificate",
                    advice: "It should hold the certificate of the authority that signed the exchange's.")
            }
        }
        self.configuration = configuration
    }

    /// What connections over TLS share. The first one makes it: the system's certificates take 0.8 MB, which a device that
    /// speaks to its exchange in plain text does without.
    func context() throws -> NIOSSLContext {
        try made.withLock { made in
            if let made { return made }
            let context = try NIOSSLContext(configuration: configuration)
            made = context
            return context
        }
    }
}
