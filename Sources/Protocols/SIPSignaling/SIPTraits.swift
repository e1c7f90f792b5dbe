public import CallControl

extension SignalingTraits {
    /// How calls over SIP differ from those of other services.
    public static let sip: SignalingTraits = {
        var traits = SignalingTraits()
        traits.acknowledgesAnswers = true
        traits.gathersForAccept = true
        traits.takesOfferWishes = true
        traits.hasEarlyMedia = true
        traits.carriesKeys = true
        traits.ordersOffers = true
        traits.judgesTargets = true
        return traits
    }()
}
