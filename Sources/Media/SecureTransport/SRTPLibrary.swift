internal import CSRTP

/// The libsrtp that this process runs with.
public enum SRTPLibrary {
    /// Lets the library set itself up and try its ciphers, which takes tens of milliseconds: at start, so that the first
    /// call does not wait for it. Makes and drops a context of each suite.
    public static func prepare() throws(SRTPError) {
        for suite in SRTPSuite.allCases {
            let size = suite.keyBytes + suite.saltBytes
            guard let key = SRTPKey(suite: suite, keyAndSalt: Array(repeating: 0, count: size)) else { continue }
            var context = try SRTPContext(key, .outbound)
            var packet: [UInt8] = [0x80] + Array(repeating: 0, count: 63)
            var elements = packet.mutableSpan
            var bytes = unsafe elements.mutableBytes
            _ = context.protect(&bytes, length: 32)
        }
    }

    /// Its name and version, such as `libsrtp2 2.5.0`.
    public static var version: String { unsafe String(cString: srtp_get_version_string()) }
}
