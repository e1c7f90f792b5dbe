internal import CallControl
internal import ICE
internal import JSON
internal import Logging
internal import MediaEngine
internal import SDP

// A peer that has fallen silent in a call (contract CALL-4): ICE is restarted once over signaling, and if that does not
// help the call ends.
extension Device {
    /// How long a call waits for a peer that has fallen silent.
    private static let silencePatience = Duration.seconds(25)
    /// How much later the side that was called restarts ICE, if the other has not by then.
    private static let inviteeDelay = Duration.seconds(4)

    /// The peer does not answer on any path any more.
    func hearNothing(of id: CallID) {
        guard let call = calls[id], call.machine.isEstablished, call.patience == nil else { return }
        logger.info("The peer has fallen silent; looking for another path", metadata: ["call": "\(id)"])
        let delay = call.machine.isOutgoing ? Duration.zero : Self.inviteeDelay
        calls[id]?.patience = Task { [weak self] in
            try? await Task.sleep(for: delay)
            if !Task.isCancelled { await self?.restartICE(of: id) }
            try? await Task.sleep(for: Self.silencePatience - delay)
            if !Task.isCancelled { await self?.feed(.media(.lost), to: id) }
        }
    }

    /// The peer answers again.
    func hearAgain(of id: CallID) {
        guard let patience = calls[id]?.patience else { return }
        logger.info("The peer is back", metadata: ["call": "\(id)"])
        patience.cancel()
        calls[id]?.patience = nil
    }

    /// Offers the peer new ICE credentials; media goes on by whatever path still works.
    func restartICE(of id: CallID) {
        guard let call = calls[id], let connection = call.connection, var negotiation = call.negotiation,
            !negotiation.hasOffered
        else { return }
        let credentials = media.makeCredentials()
        negotiation.bring(credentials, candidates: [])
        do throws(NegotiationError) {
            let offer = try negotiation.offer()
            engine.restart(connection, with: credentials)
            calls[id]?.negotiation = negotiation
            logger.info("Restarting ICE", metadata: ["call": "\(id)"])
            signal("offer", offer, of: id)
        } catch {
            logger.warning("ICE cannot be restarted", metadata: ["call": "\(id)", "error": "\(error)"])
        }
    }

    /// The peer's answer to an offer that we made in a call that stands.
    func accept(answer: JSONValue, in id: CallID) {
        guard var negotiation = calls[id]?.negotiation, negotiation.hasOffered, let connection = calls[id]?.connection
        else { return }
        do {
            let (audio, changes) = try negotiation.accept(answer)
            calls[id]?.negotiation = negotiation
            if changes.renewsConnection, let remote = try negotiation.remote(for: audio) {
                engine.connect(connection, to: remote.keepingKeys(unless: changes.contains(.keys)))
            }
            try apply(changes, audio, to: id)
        } catch {
            logger.warning(
                "The peer's answer cannot be taken; the call goes on as it was",
                metadata: ["call": "\(id)", "error": "\(error)"])
        }
    }
}
