internal import CallControl
internal import NIOSSL
internal import PrivateFiles
internal import Synchronization

/// Whose certificates are believed.
final class TLSTrust: Sendable {
    let configuration: TLSConfiguration
    /// A system's whole list of authorities is some 200 KiB.
    private static let maximumBytes = 16 << 20
    private let made = Mutex<NIOSSLContext?>(nil)

    /// Trusts what the system trusts, and the certificates of a PEM file if one is given.
    package init(trustRootFile: String?) throws(Unreadable) {
        var configuration = TLSConfiguration.makeClientConfiguration()
        if let trustRootFile {
            func failure(_ cause: String) -> SignalingError {
                SignalingError(
                    .badConfiguration, activity: "read the trust root file \"\(trustRootFile)\"", cause: cause,
                    advice: "It should hold the certificate of the authority that signed the exchange's.")
            }
            let found: [UInt8]?
            do throws(PrivateFileError) {
                found = try PrivateFile.read(trustRootFile, maximumBytes: Self.maximumBytes)
            } catch {
                throw failure("it cannot be read: \(error.cause)")
            }
            guard let bytes = found else { throw failure("there is no such file") }
            guard let certificates = try? NIOSSLCertificate.fromPEMBytes(bytes), !certificates.isEmpty else {
                throw failure("it holds no certificate in PEM form")
            }
            configuration.additionalTrustRoots = [.certificates(certificates)]
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
