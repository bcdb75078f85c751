// One login file, shared with the vendor's own CLI and with the brokers of other attempts: refreshed by one
// of us at a time.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "egress/https_post.h"
#include "egress/login.h"

namespace cofferdam::egress {

// Less than this and the token is refreshed. More than the gateway's own margin, so that what it asks for is
// not what it has.
inline constexpr std::int64_t kRefreshAheadMs = 6LL * 60 * 1000;

class LoginFile {
 public:
  LoginFile(LoginShape shape, std::string path, std::string token_url, PostWay way)
      : shape_(shape), path_(std::move(path)), token_url_(std::move(token_url)), way_(std::move(way)) {}

  // A login with a token that is good for some time, and is not `rejected` (empty: any). Refreshed if need
  // be, under the lock and after reading the file again there: whoever comes second finds the first one's
  // token. The new tokens are in the file before they are used. When the endpoint refuses, the file is read
  // once more, since the user's own CLI does not know our lock. Code::denied: the login has expired.
  Result<Login> obtain(std::string_view rejected);

 private:
  Result<Login> read(std::string* bytes) const;
  bool good(const Login& login, std::string_view rejected) const;
  Result<Login> refresh(std::string_view rejected);
  Result<Login> ask_endpoint(const Login& old, const std::string& bytes);
  Error expired(const std::string& why) const;

  LoginShape shape_;
  std::string path_;
  std::string token_url_;
  PostWay way_;
};

}  // namespace cofferdam::egress
