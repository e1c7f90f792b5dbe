/// A datagram as the records of DTLS 1.2 that it is made of (RFC 6347 §4.1).
enum DTLSRecords {
    private static let headerBytes = 13

    /// The records of a datagram that can be the peer's, as they came.
    ///
    /// What cannot be is kept from OpenSSL, for which a record of our epoch that is too short to be decrypted is a fault of
    /// its own that ends the association (3.0.19), whoever sent it. A rest that is no whole record goes as well.
    ///
    /// - Parameters:
    ///   - isEstablished: The handshake is over, after which no plain record of the peer is needed: there is no
    ///     renegotiation, and a last flight that comes again is known by its encrypted end.
    ///   - leastEncryptedBytes: How long an encrypted record is at the least, without its header; nil if there can be none.
    static func plausible(in datagram: [UInt8], isEstablished: Bool, leastEncryptedBytes: Int?) -> [UInt8] {
        var kept: [UInt8] = []
        var start = 0
        while datagram.count - start >= headerBytes {
            let epoch = UInt16(datagram[start + 3]) << 8 | UInt16(datagram[start + 4])
            let length = Int(datagram[start + 11]) << 8 | Int(datagram[start + 12])
            let end = start + headerBytes + length
            guard end <= datagram.count else { break }
            let isPlausible =
                switch epoch {
                case 0: !isEstablished
                case 1: leastEncryptedBytes.map { length >= $0 } ?? false
                default: false
                }
            if isPlausible { kept += datagram[start..<end] }
            start = end
        }
        return kept
    }
}
