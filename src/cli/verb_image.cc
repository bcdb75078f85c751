// image: pinned root file systems, made, looked at and removed.
#include <fmt/core.h>

#include "attempt/make_image.h"
#include "base/file.h"
#include "cli/exit_code.h"
#include "cli/host.h"
#include "cli/image_text.h"
#include "cli/verbs.h"
#include "contract/json.h"
#include "image/store.h"

namespace cofferdam::cli {
namespace {

using Action = ImageOptions::Action;

Result<int> made(const ImageOptions& options, const Result<attempt::MadeImage>& image) {
  if (!image) return image.error();
  if (options.json) {
    const contract::Json out = {{"id", image->id}, {"dropped", contract::json_count(image->dropped)}};
    TRY_VOID(print_out(contract::canonical(out) + "\n"));
    return 0;
  }
  TRY_VOID(print_out(image->id + "\n"));
  return 0;
}

Result<int> make(const ImageOptions& options) {
  const Environment environment = read_environment();
  TRY(contract::Config config, load_config(environment, options.config));
  TRY(const attempt::Host host, make_host(environment, std::move(config)));
  if (options.action == Action::import) return made(options, attempt::import_image(host, options.file));
  if (options.action == Action::lock) {
    TRY_VOID(attempt::lock_image(host, options.file));
    return 0;
  }
  TRY(const std::string exe_dir, executable_dir());
  return made(options,
              attempt::build_image(host, options.file.empty() ? default_image_list(exe_dir) : options.file));
}

Result<int> list(const ImageOptions& options) {
  TRY(const std::optional<std::string> state_dir, existing_state_dir(read_environment()));
  std::vector<image::ImageEntry> images;
  if (state_dir) {
    TRY(images, image::list_images(*state_dir));
  }
  TRY_VOID(print_out(options.json ? images_json(images) : images_text(images, now())));
  return 0;
}

// Every one is looked at, whatever the others are.
Result<int> verify(const ImageOptions& options, const std::string& state_dir) {
  std::vector<std::string> ids;
  if (options.id) {
    TRY(std::string id, image::find_image(state_dir, *options.id));
    ids.push_back(std::move(id));
  } else {
    TRY(const std::vector<image::ImageEntry> images, image::list_images(state_dir));
    for (const image::ImageEntry& one : images) ids.push_back(one.id);
  }
  contract::Json rows = contract::Json::array();
  bool intact = true;
  for (const std::string& id : ids) {
    const Status checked = image::verify_image(state_dir, id);
    intact = intact && checked.has_value();
    if (!checked && !options.json) print_error(checked.error());
    if (checked && !options.json) TRY_VOID(print_out(id + " intact\n"));
    constexpr std::size_t kMaxText = 4096;
    rows.push_back({{"id", id},
                    {"intact", checked.has_value()},
                    {"problem", checked ? contract::Json(nullptr)
                                        : contract::json_text(checked.error().what, kMaxText)}});
  }
  if (options.json) TRY_VOID(print_out(contract::canonical(rows) + "\n"));
  return intact ? 0 : 1;
}

}  // namespace

Result<int> image_verb(const ImageOptions& options) {
  if (options.action == Action::list) return list(options);
  if (options.action != Action::verify && options.action != Action::remove) return make(options);
  TRY(const std::string state_dir, prepare_state_dir(read_environment()));
  if (options.action == Action::verify) return verify(options, state_dir);
  TRY(const std::string id, image::find_image(state_dir, *options.id));
  TRY_VOID(image::remove_image(state_dir, id));
  return 0;
}

}  // namespace cofferdam::cli
