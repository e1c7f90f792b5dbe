// libspeexdsp for Swift: its resampler, echo canceller and preprocessor.
#pragma once
#include <speex/speex_echo.h>
#include <speex/speex_preprocess.h>
#include <speex/speex_resampler.h>
