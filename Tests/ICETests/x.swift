import ICE
