#include "egress/keyring.h"

#include <linux/keyctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace cofferdam::egress {
namespace {

constexpr std::size_t kMaxPayload = 32'767;  // of a "user" key: user-keyring(7)

long keyctl(int operation, long first, long second, long third = 0) {
  return ::syscall(SYS_keyctl, operation, first, second, third);
}

}  // namespace

Result<Secret> read_user_key(const std::string& description) {
  // Reading needs possession, which a key in the user's keyring has only through one of our own.
  (void)keyctl(KEYCTL_LINK, KEY_SPEC_USER_KEYRING, KEY_SPEC_PROCESS_KEYRING);
  const long key = ::syscall(SYS_request_key, "user", description.c_str(), nullptr, 0);
  if (key < 0 && (errno == ENOSYS || errno == EPERM)) {
    return make_error(Code::unsupported_host, "the kernel's keyring cannot be used here",
                      "choose another source with `credential` in the configuration");
  }
  if (key < 0) {
    return make_error(Code::not_found, "the kernel's keyring holds no key of the configured description",
                      "add it with: keyctl padd user NAME @u");
  }
  std::string buffer(kMaxPayload, '\0');
  const long size = ::syscall(SYS_keyctl, KEYCTL_READ, key, buffer.data(), buffer.size());
  if (size < 0) return sys_error("cannot read the key in the kernel's keyring", errno);
  Secret out(std::string_view(buffer).substr(0, static_cast<std::size_t>(size)));
  wipe_string(&buffer);
  return out;
}

}  // namespace cofferdam::egress
