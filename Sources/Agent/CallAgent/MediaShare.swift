internal import Logging
internal import MediaEngine
internal import Realtime

/// A device's part in the media that the devices of its process share: the room that its calls claim, and what ends with the device.
struct MediaShare {
    let media: SharedMedia
    /// What the calls of the device are known by there.
    let owner: UInt16
    /// The events of the device's calls.
    let events: AsyncStream<MediaEvent>
    private let isExclusive: Bool

    /// - Parameter isExclusive: Whether no other device has the media, so that it ends with this one.
    init(of media: SharedMedia, isExclusive: Bool) {
        self.media = media
        self.isExclusive = isExclusive
        (owner, events) = media.join()
    }

    /// Opens the media sockets of a device that shares them with no other.
    init(openedFor configuration: DeviceConfiguration, at address: MediaAddress, _ logger: Logger) throws(RealtimeError)
    {
        let media = try SharedMedia([configuration], at: address.bindAddress, isOnly: true, logger: logger)
        self.init(of: media, isExclusive: true)
    }

    /// Whether the machine carries a call of `streams` streams besides those that are admitted.
    ///
    /// - Parameters:
    ///   - unplaced: Streams of the device's other calls that no worker runs yet.
    ///   - isCall: Whether the call is there, and takes the room.
    /// - Returns: That, and whether it is another answer than the last one.
    func hasRoom(streams: Int, besides unplaced: Int, isCall: Bool) -> (hasRoom: Bool, isChange: Bool) {
        media.hasRoom(streams: streams, besides: unplaced, isCall: isCall, of: owner)
    }

    /// Reports to the other devices how many streams this one's calls need that no worker runs yet.
    ///
    /// - Parameter unplaced: Counts them, if there may be other devices.
    func note(unplaced: () -> Int) {
        if !isExclusive { media.note(unplaced: unplaced(), of: owner) }
    }

    /// Ends the device's part.
    ///
    /// - Parameter stopCalls: Stops what runs of the device's calls, if the media does not end with it.
    func leave(stopCalls: () -> Void) {
        if isExclusive {
            media.withCard { $0.cancelFailureTone() }
            media.shutDown()
        } else {
            stopCalls()
        }
        media.leave(owner)
    }

    /// Returns when everything is kept for the next start that ends with the device.
    func close() async {
        if isExclusive { await media.close() }
    }
}
