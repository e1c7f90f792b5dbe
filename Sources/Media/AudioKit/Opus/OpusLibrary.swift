internal import COpus

/// The libopus that this process runs with.
public enum OpusLibrary {
    /// Its name and version, such as `libopus 1.3.1`.
    public static var version: String { unsafe String(cString: opus_get_version_string()) }
}
