package import Glibc
internal import Files
package import TLS

/// The files of a certificate that one end of a connection shows, both in PEM form.
package struct CertificateFiles: Hashable, Sendable {
    package let chainPath: String
    package let keyPath: String

    /// A system's whole list of authorities is some 200 KiB.
    static let maximumBytes = 16 << 20

    /// - Parameters:
    ///   - chainPath: The chain, the own certificate first.
    ///   - keyPath: The private key, without a passphrase.
    package init(chainPath: String, keyPath: String) {
        self.chainPath = chainPath
        self.keyPath = keyPath
    }

    /// Reads both files.
    ///
    /// - Parameter now: Seconds since 1970.
    /// - Throws: ``CertificateFault`` if one cannot be read, the certificate is not valid now, or the key is another one's.
    package func read(now: time_t = time(nil)) throws(CertificateFault) -> TLSIdentity {
        guard let chain = Self.certificates(in: chainPath), let own = chain.first else {
            throw fault(.chain, "holds no certificate in PEM form, the own one first, that can be read")
        }
        guard own.notAfter > now else {
            throw fault(
                .chain,
                "expired \(Self.days(now - own.notAfter)) ago, so that the other side refuses it; get a new certificate, or "
                    + "set this machine's clock right")
        }
        guard own.notBefore <= now else {
            throw fault(
                .chain,
                "is not valid yet, but in \(Self.days(own.notBefore - now)), so that the other side refuses it; use the "
                    + "certificate that is valid now, or set this machine's clock right")
        }
        guard let key = Self.contents(of: keyPath).flatMap(TLSPrivateKey.init(pem:)) else {
            throw fault(.key, "holds no private key in PEM form, without a passphrase, that can be read")
        }
        guard let identity = TLSIdentity(chain: chain, key: key) else { throw mismatch }
        return identity
    }

    /// The certificates of a file; `nil` if it holds none that can be read.
    static func certificates(in path: String) -> [TLSCertificate]? {
        contents(of: path).flatMap(TLSCertificate.list(pem:))
    }

    private static func contents(of path: String) -> [UInt8]? {
        (try? PrivateFile.read(path, maximumBytes: maximumBytes)) ?? nil
    }

    /// The two do not belong together.
    package var mismatch: CertificateFault {
        fault(.key, "is not the private key of the certificate in \"\(chainPath)\"")
    }

    private func fault(_ part: CertificateFault.Part, _ message: String) -> CertificateFault {
        CertificateFault(part: part, path: part == .chain ? chainPath : keyPath, message: message)
    }

    /// How soon before its end a certificate is warned of: two weeks, in seconds.
    package static let warningTime: time_t = 14 * 86_400

    /// Warns of a certificate that ends soon, to be read after its name; nil if it is valid for longer.
    ///
    /// - Parameters:
    ///   - end: When it ends: seconds since 1970.
    ///   - now: Seconds since 1970.
    package static func warning(end: time_t, now: time_t = time(nil)) -> String? {
        guard end - now <= warningTime else { return nil }
        let when = end > now ? "ends in \(days(end - now))" : "expired \(days(now - end)) ago"
        return "\(when), and peers refuse it then; replace it before that: it is read again automatically"
    }

    /// A time in whole days, in words.
    static func days(_ seconds: time_t) -> String {
        switch seconds / 86_400 {
        case 0: "less than a day"
        case 1: "a day"
        case let days: "\(days) days"
        }
    }
}

/// Why a certificate, or its key, cannot be used.
package struct CertificateFault: Error, Hashable, Sendable {
    /// One of the two files.
    package enum Part: Sendable {
        case chain, key
    }

    /// The file at fault.
    package let part: Part
    package let path: String
    /// What is wrong with the file and what to try; to be read after its name.
    package let message: String
}
