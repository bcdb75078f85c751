// The token endpoint of a login: POST /oauth/token as ChatGPT's logins refresh (access and id tokens are
// unsigned JWTs), and POST /v1/oauth/token as Claude's do (opaque access tokens). A refresh token works once.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "script.h"
#include "vendor_api.h"

namespace cofferdam::standin {

// The tokens of one login. Thread safe.
class TokenBook {
 public:
  explicit TokenBook(OAuthScript script);

  struct Grant {
    std::string access_token;
    std::string refresh_token;
    std::string id_token;  // only with `jwt`
  };
  enum class Outcome { granted, reused, unknown };
  // Uses the refresh token up.
  Outcome refresh(const std::string& refresh_token, bool jwt, Grant* grant);
  // Given out by this book and not expired.
  bool accepts(std::string_view access_token) const;

  const OAuthScript& script() const { return script_; }
  // How often refresh() came to each outcome, encoded as JSON.
  std::string counts() const;

 private:
  std::string jwt(std::uint64_t number) const;

  const OAuthScript script_;
  mutable std::mutex mutex_;
  // Everything below under mutex_.
  std::map<std::string, bool> refresh_tokens_;                                               // true: used
  std::map<std::string, std::chrono::steady_clock::time_point, std::less<>> access_tokens_;  // until when
  std::uint64_t granted_ = 0;
  std::uint64_t reused_ = 0;
  std::uint64_t unknown_ = 0;
};

// `book` is borrowed.
std::unique_ptr<VendorApi> make_oauth_api(TokenBook* book);

// The value of "Authorization: Bearer ..."; empty when there is none.
std::string_view bearer_of(const Request& request);

}  // namespace cofferdam::standin
