internal import CSRTP

/// The libsrtp that this process runs with.
public enum SRTPLibrary {
    /// Its name and version, such as `libsrtp2 2.5.0`.
    public static var version: String { unsafe String(cString: srtp_get_version_string()) }
}
