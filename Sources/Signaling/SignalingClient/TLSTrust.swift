internal import CallControl
internal import NIOSSL

/// Whose certificates are believed.
struct TLSTrust: Sendable {
    let configuration: TLSConfiguration
    let context: NIOSSLContext

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
        do {
            context = try NIOSSLContext(configuration: configuration)
        } catch {
            throw SignalingError(.internalError, activity: "set up TLS", cause: "\(error)")
        }
    }
}
