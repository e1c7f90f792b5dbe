internal import CallControl
internal import CallMedia
internal import Core

// What is sent to a caller without ICE and DTLS before anything has come from where its description wants our sound.
extension Device {
    /// Whether calls come from peers of which nothing vouches for what their descriptions say.
    private var takesStrangers: Bool { configuration.account.sip?.callers == .anybody }

    /// What a call's sound waits for.
    func soundCondition(of id: CallID) -> MediaCallPlan.SoundCondition {
        guard let call = calls[id], !call.machine.isOutgoing, !call.media.isConnectedByHandshake else { return .none }
        if takesStrangers { return .heard }
        return call.acknowledgement == nil ? .confirmed : .none
    }

    /// The caller has our answer.
    func take(_ acknowledgement: Acknowledgement, in id: CallID) {
        calls[id]?.acknowledgement = acknowledgement
        peerIsThere(in: id, at: acknowledgement.host)
        feed(.service(.acknowledged), to: id)
    }

    /// The peer of a call has answered by signaling, with something that only the receiver of our message can know.
    ///
    /// - Parameter host: The source of the answer, if it is known. If strangers may call, it must be where our sound goes.
    func peerIsThere(in id: CallID, at host: String?) {
        guard let call = calls[id], let media = call.media.runningID else { return }
        if takesStrangers {
            guard let remote = call.media.remote, let host = host.flatMap({ SocketAddress(host: $0, port: 0) }),
                host.hasSameHost(as: remote)
            else { return }
        }
        engine.liftSoundLimit(of: media)
    }
}
