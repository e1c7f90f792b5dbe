internal import Files
internal import Synchronization
package import TLS

/// Whose certificates a client believes, and which one it shows to servers that ask for one.
package final class TLSTrust: Sendable {
    /// The file of additional certificates cannot be read, or has none in PEM form.
    package struct Unreadable: Error, Hashable, Sendable {
        package let path: String
        /// What is wrong with it.
        package let cause: String
    }

    private let roots: TrustRoots
    /// Read again for each connection, because certificates are renewed while a client runs.
    private let shown: CertificateFiles?
    private let made = Mutex<Made?>(nil)

    private struct Made {
        var context: TLSContext
        var shown: TLSIdentity?
        /// Why later files are not shown.
        var fault: CertificateFault?
    }

    /// What the system trusts.
    package static var system: TLSTrust { TLSTrust(.system) }

    private init(_ roots: TrustRoots, showing shown: CertificateFiles? = nil) {
        self.roots = roots
        self.shown = shown
    }

    /// Trusts what the system trusts, and the certificates of a PEM file if one is given.
    package convenience init(trustRootFile: String?) throws(Unreadable) {
        if let trustRootFile {
            self.init(.systemAnd(try Self.certificates(in: trustRootFile)))
        } else {
            self.init(.system)
        }
    }

    /// Trusts what the system trusts, and the certificates of a PEM file if one is given and can be used.
    ///
    /// - Parameter warn: Reports why the file's certificates are not trusted.
    package static func systemAnd(_ trustRootFile: String?, warn: (String) -> Void) -> TLSTrust {
        do throws(Unreadable) {
            return try TLSTrust(trustRootFile: trustRootFile)
        } catch {
            warn("the certificates in \(error.path) are not trusted: \(error.cause)")
            return .system
        }
    }

    /// Trusts what this certificate has signed, and nothing else.
    package convenience init(only root: TLSCertificate) { self.init(.only([root])) }

    /// Trusts the same, and shows a certificate besides.
    ///
    /// - Throws: ``CertificateFault`` if the files cannot be used.
    package func showing(_ files: CertificateFiles) throws(CertificateFault) -> TLSTrust {
        let identity = try files.read()
        let trust = TLSTrust(roots, showing: files)
        guard let context = try? TLSContext.client(trusting: roots, showing: identity) else { throw files.mismatch }
        trust.made.withLock { $0 = Made(context: context, shown: identity) }
        return trust
    }

    private static func certificates(in path: String) throws(Unreadable) -> [TLSCertificate] {
        let found: [UInt8]?
        do throws(PrivateFileError) {
            found = try PrivateFile.read(path, maximumBytes: CertificateFiles.maximumBytes)
        } catch {
            throw Unreadable(path: path, cause: "it cannot be read: \(error.cause)")
        }
        guard let bytes = found else { throw Unreadable(path: path, cause: "there is no such file") }
        guard let certificates = TLSCertificate.list(pem: bytes) else {
            throw Unreadable(path: path, cause: "it holds no certificate in PEM form")
        }
        return certificates
    }

    /// What connections over TLS share. The first one makes it. A certificate to be shown that was replaced makes another one;
    /// files that cannot be used change nothing.
    package func context() throws(TLSError) -> TLSContext {
        let result: Result<TLSContext, TLSError> = made.withLock { made in
            var identity: TLSIdentity?
            var fault: CertificateFault?
            do throws(CertificateFault) { identity = try shown?.read() } catch { fault = error }
            if let known = made, identity == nil || identity == known.shown {
                made?.fault = fault
                return .success(known.context)
            }
            do throws(TLSError) {
                let context = try TLSContext.client(trusting: roots, showing: identity)
                made = Made(context: context, shown: identity, fault: fault)
                return .success(context)
            } catch {
                guard let known = made else { return .failure(error) }
                made?.fault = shown?.mismatch
                return .success(known.context)
            }
        }
        return try result.get()
    }

    /// Why the files of the certificate to be shown could not be used for the last connection, so that earlier ones were.
    package var fault: CertificateFault? { made.withLock { $0?.fault } }
}
