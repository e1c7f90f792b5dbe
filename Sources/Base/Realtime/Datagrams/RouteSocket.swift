internal import CRealtime

/// A socket for the kernel's messages about changes of the network.
public enum RouteSocket {
    /// Opens a socket from which the messages for ``NetworkWatch`` are read, without blocking.
    ///
    /// - Returns: The descriptor, which the caller closes.
    public static func open() throws(RealtimeError) -> Int32 {
        let descriptor = handset_routes_open()
        guard descriptor >= 0 else {
            throw RealtimeError(doing: "listening to changes of the network (netlink)", errno: -descriptor)
        }
        return descriptor
    }
}
