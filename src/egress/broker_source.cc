#include "egress/broker_source.h"

#include <openssl/evp.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include "base/process.h"
#include "base/text.h"
#include "egress/keyring.h"
#include "egress/login_file.h"

namespace cofferdam::egress {
namespace {

constexpr auto kCommandLimit = std::chrono::seconds(30);
constexpr std::size_t kMaxCommandOutput = 64U << 10U;

std::vector<std::string> own_environment() {
  std::vector<std::string> out;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) out.emplace_back(*entry);
  return out;
}

Secret in_base64(std::string_view bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');  // with the NUL that is written behind it
  const void* from = bytes.data();
  void* to = text.data();
  const int size = ::EVP_EncodeBlock(static_cast<unsigned char*>(to), static_cast<const unsigned char*>(from),
                                     static_cast<int>(bytes.size()));
  Secret out(std::string_view(text).substr(0, static_cast<std::size_t>(size)));
  wipe_string(&text);
  return out;
}

}  // namespace

Result<Secret> BrokerSource::from_command() const {
  SpawnOptions options;
  options.program = setup_.command.front();
  options.argv = setup_.command;
  options.env = own_environment();  // what the supervisor let through: no credential is in it
  auto run = run_capture(options, {}, {kMaxCommandOutput, kCommandLimit});
  if (!run) return std::move(run).error().with("credential_command");
  // What it said is not shown: it may be the secret.
  wipe_string(&run->err);
  Secret out(trim(run->out));
  wipe_string(&run->out);
  if (!run->status.success()) {
    return make_error(Code::config, "credential_command ended with " + run->status.describe(),
                      "run it by hand to see why");
  }
  if (out.empty()) return make_error(Code::config, "credential_command printed nothing", "run it by hand");
  return out;
}

Result<VendorCredential> BrokerSource::from_login(bool rejected) {
  LoginFile file(setup_.shape, setup_.file, setup_.token_url, setup_.way);
  TRY(Login login, file.obtain(rejected && last_.has_value() ? last_->token.view() : std::string_view()));
  VendorCredential out;
  out.kind = login.kind;
  out.token = std::move(login.access);
  out.account_id = std::move(login.account_id);
  out.expires_at_ms = login.expires_at_ms;
  return out;
}

Result<VendorCredential> BrokerSource::fetch(bool rejected) {
  if (setup_.source == contract::CredentialSource::file) return from_login(rejected);
  VendorCredential out;
  if (setup_.source == contract::CredentialSource::command) {
    TRY(out.token, from_command());
  } else if (setup_.source == contract::CredentialSource::keyring) {
    TRY(out.token, read_user_key(setup_.keyring));
  } else {
    out.token = Secret(setup_.value.view());
  }
  out.kind = kind_of_key(setup_.shape, setup_.bearer, out.token.view());
  if (setup_.basic && !out.token.empty()) {
    out.kind = CredentialKind::basic;
    out.token = in_base64(out.token.view());
  }
  return out;
}

Result<const VendorCredential*> BrokerSource::next(bool rejected) {
  TRY(VendorCredential fresh, fetch(rejected));
  TRY_VOID(check_credential(fresh));
  if (last_.has_value() && fresh.token.view() == last_->token.view()) {
    return make_error(Code::denied, "there is no newer credential than the one that is in use");
  }
  fresh.seq = last_.has_value() ? last_->seq + 1 : 1;
  last_ = std::move(fresh);
  return &*last_;
}

}  // namespace cofferdam::egress
