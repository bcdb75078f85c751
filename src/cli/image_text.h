// Images, for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "image/store.h"

namespace cofferdam::cli {

std::string images_text(const std::vector<image::ImageEntry>& images, Timestamp at);
std::string images_json(const std::vector<image::ImageEntry>& images);

}  // namespace cofferdam::cli
