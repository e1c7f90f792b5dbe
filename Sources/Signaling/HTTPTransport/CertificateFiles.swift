package import Glibc
package import NIOSSL

/// The files of a certificate that one end of a connection shows, both in PEM form.
package struct CertificateFiles: Hashable, Sendable {
    package let chainPath: String
    package let keyPath: String

    /// - Parameters:
    ///   - chainPath: The chain, the own certificate first.
    ///   - keyPath: The private key, without a passphrase.
    package init(chainPath: String, keyPath: String) {
        self.chainPath = chainPath
        self.keyPath = keyPath
    }

    /// What the files hold.
    package struct Pair: Hashable, Sendable {
        /// The own certificate first.
        package let chain: [NIOSSLCertificate]
        package let own: NIOSSLCertificate
        package let key: NIOSSLPrivateKey
    }

    /// Reads both files; whether they belong together is not looked at.
    ///
    /// - Parameter now: Seconds since 1970.
    /// - Throws: ``CertificateFault`` if one cannot be read, or the certificate has expired.
    package func read(now: time_t = time(nil)) throws(CertificateFault) -> Pair {
        guard let chain = try? NIOSSLCertificate.fromPEMFile(chainPath), let own = chain.first else {
            throw fault(.chain, "holds no certificate in PEM form, the own one first, that can be read")
        }
        guard own.notValidAfter > now else {
            throw fault(
                .chain,
                "expired \(Self.days(now - own.notValidAfter)) ago, so that the other side refuses it; get a new certificate, or "
                    + "set this machine's clock right")
        }
        guard let key = try? NIOSSLPrivateKey(file: keyPath, format: .pem) else {
            throw fault(.key, "holds no private key in PEM form, without a passphrase, that can be read")
        }
        return Pair(chain: chain, own: own, key: key)
    }

    /// The two do not belong together.
    package var mismatch: CertificateFault {
        fault(.key, "is not the private key of the certificate in \"\(chainPath)\"")
    }

    private func fault(_ part: CertificateFault.Part, _ message: String) -> CertificateFault {
        CertificateFault(part: part, path: part == .chain ? chainPath : keyPath, message: message)
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
