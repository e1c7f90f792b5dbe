// libopusfile for Swift: reading Ogg Opus files.
#pragma once
#include <opusfile.h>
