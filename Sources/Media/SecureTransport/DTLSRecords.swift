/// A datagram as a sequence of DTLS 1.2 records (RFC 6347 §4.1).
enum DTLSRecords {
    private static let headerBytes = 13

    /// The records of a datagram that can be the peer's, unchanged.
    ///
    /// Other records are kept from OpenSSL: version 3.0.19 treats a record of the current epoch that is too short to be
    /// decrypted as an internal error that ends the association, also from a stranger. An incomplete record at the end is
    /// dropped too.
    ///
    /// - Parameters:
    ///   - isEstablished: The handshake is complete, after which no unencrypted record of the peer is needed: there is no
    ///     renegotiation, and a retransmitted last flight is recognised by its encrypted end.
    ///   - leastEncryptedBytes: The minimum length of an encrypted record, without its header; nil if there can be
    ///     none.
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
