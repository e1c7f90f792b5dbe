internal import CSRTP
internal import CSRTPCiphers

/// One direction of a call's protected media: either all packets sent with one key, or all received.
///
/// The only wrapper of libsrtp2 in this project, small so that another library could replace it. Debian builds libsrtp2
/// on NSS, which allocates and locks for each packet; so its ciphers are replaced by the system's OpenSSL
/// (CSRTPCiphers).
@safe
public struct SRTPContext: ~Copyable {
    private let session: srtp_t
    private var sources = SRTPSources()

    /// Which packets a context is for.
    public enum Direction: Sendable {
        /// Our packets, of any SSRC.
        case outbound
        /// Packets of the peer, of any SSRC, but of ``mostSources`` at a time; a replayed one is refused (RFC 3711 §3.3.2).
        case inbound
    }

    /// Why a packet was refused.
    public enum Failure: Error, Sendable {
        /// Its authentication tag is wrong: another key, or bytes changed on the way.
        case authentication
        /// It was received before, or is older than the replay window of 1,024 packets, or its SSRC gave way to others.
        case replay
        /// The peer sends with more new SSRCs than a call may have.
        case tooManySources
        /// It is too short or malformed, or the library refused it for another reason.
        case malformed
    }

    /// SSRCs that an inbound context receives from at a time, those of RTCP included; the one that was silent longest, of those that
    /// are not heard, gives way to a new one, and is refused from then on.
    public static var mostSources: Int {
        @_noAllocation @_noLocks get { SRTPSources.capacity }
    }

    /// SSRCs that an inbound context has now.
    public var sourceCount: Int {
        @_noAllocation @_noLocks get { sources.count }
    }

    /// Makes a context for `key`.
    public init(_ key: SRTPKey, _ direction: Direction) throws(SRTPError) {
        guard Library.status == srtp_err_status_ok else {
            throw SRTPError(doing: "starting libsrtp2 with ciphers of OpenSSL", status: Library.status)
        }
        var keyAndSalt = key.keyAndSalt
        var handle: srtp_t?
        let status = unsafe keyAndSalt.withUnsafeMutableBufferPointer { material in
            var policy = unsafe srtp_policy_t()
            unsafe srtp_crypto_policy_set_from_profile_for_rtp(&policy.rtp, key.suite.profile)
            unsafe srtp_crypto_policy_set_from_profile_for_rtcp(&policy.rtcp, key.suite.profile)
            unsafe policy.ssrc.type = direction == .inbound ? ssrc_any_inbound : ssrc_any_outbound
            unsafe policy.key = material.baseAddress
            unsafe policy.window_size = 1024
            return unsafe srtp_create(&handle, &policy)
        }
        guard status == srtp_err_status_ok, let handle = unsafe handle else {
            throw SRTPError(doing: "making an SRTP context for \(key.suite.rawValue)", status: status)
        }
        unsafe session = handle
    }

    deinit { _ = unsafe srtp_dealloc(session) }

    /// Encrypts the RTP packet in the first `length` bytes of `packet`, in place.
    ///
    /// - Parameter packet: Has at least ``SRTPSuite/maximumOverheadBytes`` of room after the packet.
    /// - Returns: The protected length, or nil if the library refused (its key is used up, RFC 3711 §9.2).
    @_noAllocation @_noLocks
    public mutating func protect(_ packet: inout MutableRawSpan, length: Int) -> Int? {
        guard packet.byteCount >= length + SRTPSuite.maximumOverheadBytes else { return nil }
        let protected = unsafe srtpProtect(session, start(of: &packet), length)
        return protected >= 0 ? protected : nil
    }

    /// As ``protect(_:length:)``, for RTCP.
    @_noAllocation @_noLocks
    public mutating func protectControl(_ packet: inout MutableRawSpan, length: Int) -> Int? {
        guard packet.byteCount >= length + SRTPSuite.maximumOverheadBytes else { return nil }
        let protected = unsafe srtpProtectRTCP(session, start(of: &packet), length)
        return protected >= 0 ? protected : nil
    }

    /// Checks and decrypts an RTP packet in place.
    ///
    /// - Parameter heard: The SSRC of the stream that is heard, which gives way to no other.
    /// - Returns: The length of the plain packet.
    @_noAllocation @_noLocks
    public mutating func unprotect(
        _ packet: inout MutableRawSpan, keeping heard: UInt32? = nil
    ) throws(Failure) -> Int {
        let ssrc = try ssrc(of: &packet, at: 8)
        let source = try judge(ssrc)
        let length = packet.byteCount
        let plain = try Self.check(unsafe srtpUnprotect(session, start(of: &packet), length))
        note(ssrc, source, keeping: heard)
        return plain
    }

    /// As ``unprotect(_:keeping:)``, for RTCP.
    @_noAllocation @_noLocks
    public mutating func unprotectControl(
        _ packet: inout MutableRawSpan, keeping heard: UInt32? = nil
    ) throws(Failure) -> Int {
        let ssrc = try ssrc(of: &packet, at: 4)
        let source = try judge(ssrc)
        let length = packet.byteCount
        let plain = try Self.check(unsafe srtpUnprotectRTCP(session, start(of: &packet), length))
        note(ssrc, source, keeping: heard)
        return plain
    }

    /// The SSRC at an offset of a packet, in host order.
    @_noAllocation @_noLocks
    private func ssrc(of packet: inout MutableRawSpan, at offset: Int) throws(Failure) -> UInt32 {
        guard packet.byteCount >= offset + 4 else { throw .malformed }
        return readUInt32(of: &packet, at: offset)
    }

    /// Finds a packet's SSRC among the known ones, before any work is spent on it.
    @_noAllocation @_noLocks
    private func judge(_ ssrc: UInt32) throws(Failure) -> SRTPSources.Verdict {
        let source = sources.judge(ssrc)
        switch source {
        case .known, .new: return source
        case .removed: throw .replay
        case .tooMany: throw .tooManySources
        }
    }

    /// Whether libsrtp2 keeps state for an SSRC; for tests.
    func isInLibrary(_ ssrc: UInt32) -> Bool {
        var rollovers: UInt32 = 0
        return unsafe srtp_get_stream_roc(session, ssrc, &rollovers) == srtp_err_status_ok
    }

    /// A packet was authenticated: libsrtp2 knows its SSRC from now on.
    @_noAllocation @_noLocks
    private mutating func note(_ ssrc: UInt32, _ source: SRTPSources.Verdict, keeping heard: UInt32?) {
        switch source {
        case .known(let index): sources.note(known: index)
        case .new: if let former = sources.add(ssrc, keeping: heard) { unsafe srtpRemove(session, former) }
        case .removed, .tooMany: break
        }
    }

    @_noAllocation @_noLocks
    private static func check(_ result: Int) throws(Failure) -> Int {
        if result >= 0 { return result }
        switch UInt32(truncatingIfNeeded: -result) {
        case srtp_err_status_auth_fail.rawValue, srtp_err_status_cipher_fail.rawValue: throw .authentication
        case srtp_err_status_replay_fail.rawValue, srtp_err_status_replay_old.rawValue: throw .replay
        default: throw .malformed
        }
    }
}

/// libsrtp2 could not be used.
public struct SRTPError: Error, Sendable, CustomStringConvertible {
    private let action: String
    private let status: srtp_err_status_t

    init(doing action: String, status: srtp_err_status_t) {
        self.action = action
        self.status = status
    }

    /// What was being done and what the library said.
    public var description: String {
        "\(action) failed: libsrtp2 says error \(status.rawValue); it must be version 2.5 or later, built with AES-GCM."
    }
}

private enum Library {
    /// Starts the library at first use, once for the process, and gives it our ciphers, which it tries with test vectors.
    static let status: srtp_err_status_t = {
        let status = srtp_init()
        return status == srtp_err_status_ok ? handset_srtp_use_openssl() : status
    }()
}

// Reads a pointer out of the span, for C to use within the same call.
@_semantics("no_performance_analysis") @inline(__always)
private func start(of packet: inout MutableRawSpan) -> UnsafeMutableRawPointer? {
    unsafe packet.withUnsafeMutableBytes { $0.baseAddress }
}

// Reads four bytes of the span in network order.
@_semantics("no_performance_analysis") @inline(__always)
private func readUInt32(of packet: inout MutableRawSpan, at offset: Int) -> UInt32 {
    UInt32(bigEndian: unsafe packet.bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt32.self))
}

// Frees about 1 KB, which a new SSRC has just allocated: SRTPSources makes both rare.
@_semantics("no_performance_analysis") @inline(__always)
private func srtpRemove(_ session: srtp_t, _ ssrc: UInt32) { _ = unsafe srtp_remove_stream(session, ssrc.bigEndian) }

// libsrtp2 works in place; with our ciphers it neither allocates nor locks, which AllocationTests counts.
@_semantics("no_performance_analysis") @inline(__always)
private func srtpProtect(_ session: srtp_t, _ bytes: UnsafeMutableRawPointer?, _ length: Int) -> Int {
    var count = Int32(truncatingIfNeeded: length)
    let status = unsafe srtp_protect(session, bytes, &count)
    return status == srtp_err_status_ok ? Int(count) : -Int(status.rawValue)
}

// See srtpProtect.
@_semantics("no_performance_analysis") @inline(__always)
private func srtpProtectRTCP(_ session: srtp_t, _ bytes: UnsafeMutableRawPointer?, _ length: Int) -> Int {
    var count = Int32(truncatingIfNeeded: length)
    let status = unsafe srtp_protect_rtcp(session, bytes, &count)
    return status == srtp_err_status_ok ? Int(count) : -Int(status.rawValue)
}

// See srtpProtect.
@_semantics("no_performance_analysis") @inline(__always)
private func srtpUnprotect(_ session: srtp_t, _ bytes: UnsafeMutableRawPointer?, _ length: Int) -> Int {
    var count = Int32(truncatingIfNeeded: length)
    let status = unsafe srtp_unprotect(session, bytes, &count)
    return status == srtp_err_status_ok ? Int(count) : -Int(status.rawValue)
}

// See srtpProtect.
@_semantics("no_performance_analysis") @inline(__always)
private func srtpUnprotectRTCP(_ session: srtp_t, _ bytes: UnsafeMutableRawPointer?, _ length: Int) -> Int {
    var count = Int32(truncatingIfNeeded: length)
    let status = unsafe srtp_unprotect_rtcp(session, bytes, &count)
    return status == srtp_err_status_ok ? Int(count) : -Int(status.rawValue)
}

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
