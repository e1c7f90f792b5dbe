package import NIOSSL
internal import PrivateFiles
internal import Synchronization

/// Whose certificates a client believes, and which one it shows to servers that ask for one.
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
    /// Read again for each connection, because certificates are renewed while a client runs.
    private let shown: CertificateFiles?
    private let made = Mutex<Made?>(nil)

    private struct Made {
        var context: NIOSSLContext
        var shown: CertificateFiles.Pair?
        /// Why later files are not shown.
        var fault: CertificateFault?
    }

    /// What the system trusts.
    package static var system: TLSTrust { TLSTrust(TLSConfiguration.makeClientConfiguration()) }

    private init(_ configuration: TLSConfiguration, showing shown: CertificateFiles? = nil) {
        self.configuration = configuration
        self.shown = shown
    }

    /// Trusts what the system trusts, and the certificates of a PEM file if one is given.
    package convenience init(trustRootFile: String?) throws(Unreadable) {
        var configuration = TLSConfiguration.makeClientConfiguration()
        if let trustRootFile {
            configuration.additionalTrustRoots = [.certificates(try Self.certificates(in: trustRootFile))]
        }
        self.init(configuration)
    }

    /// Trusts what this certificate has signed, and nothing else.
    package convenience init(only root: NIOSSLCertificate) {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.trustRoots = .certificates([root])
        self.init(configuration)
    }

    /// Trusts the same, and shows a certificate besides.
    ///
    /// - Throws: ``CertificateFault`` if the files cannot be used.
    package func showing(_ files: CertificateFiles) throws(CertificateFault) -> TLSTrust {
        let pair = try files.read()
        guard let context = try? Self.makeContext(configuration, showing: pair) else { throw files.mismatch }
        let trust = TLSTrust(configuration, showing: files)
        trust.made.withLock { $0 = Made(context: context, shown: pair) }
        return trust
    }

    /// Trusts the same chains, whatever names their certificates are for: for whoever looks at these.
    package func withoutNames() -> TLSTrust {
        var configuration = configuration
        configuration.certificateVerification = .noHostnameVerification
        return TLSTrust(configuration, showing: shown)
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
    /// that speaks only plain text does without. A certificate to be shown that was replaced makes another one; files that are
    /// of no use any more change nothing.
    package func context() throws -> NIOSSLContext {
        try made.withLock { made in
            var pair: CertificateFiles.Pair?
            var fault: CertificateFault?
            do throws(CertificateFault) { pair = try shown?.read() } catch { fault = error }
            if let known = made, pair == nil || pair == known.shown {
                made?.fault = fault
                return known.context
            }
            do {
                let context = try Self.makeContext(configuration, showing: pair)
                made = Made(context: context, shown: pair, fault: fault)
                return context
            } catch {
                guard let known = made else { throw error }
                made?.fault = shown?.mismatch
                return known.context
            }
        }
    }

    /// Why the files of the certificate to be shown could not be used for the last connection, so that earlier ones were.
    package var fault: CertificateFault? { made.withLock { $0?.fault } }

    private static func makeContext(
        _ configuration: TLSConfiguration, showing pair: CertificateFiles.Pair?
    ) throws -> NIOSSLContext {
        var configuration = configuration
        if let pair {
            configuration.certificateChain = pair.chain.map { .certificate($0) }
            configuration.privateKey = .privateKey(pair.key)
        }
        return try NIOSSLContext(configuration: configuration)
    }
}
