#include "egress/trust.h"

#include <fmt/core.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <vector>

#include "base/file.h"

namespace cofferdam::egress {
namespace {

constexpr std::size_t kMaxBundleBytes = 16U << 20U;

// Where distributions keep all certificates in one file, OpenSSL's own idea of it first.
std::vector<std::string> system_bundles() {
  return {::X509_get_default_cert_file(), "/etc/ssl/certs/ca-certificates.crt",
          "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"};
}

// Adds every certificate of a PEM text and says how many there were.
int add_certificates(X509_STORE* store, const std::string& pem) {
  BIO* bio = ::BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  int count = 0;
  while (X509* certificate = ::PEM_read_bio_X509(bio, nullptr, nullptr, nullptr)) {
    if (::X509_STORE_add_cert(store, certificate) == 1) ++count;
    ::X509_free(certificate);
  }
  ::BIO_free(bio);
  ::ERR_clear_error();  // the last read ended with "no start line"
  return count;
}

Status add_bundle(X509_STORE* store, const std::string& path) {
  auto pem = read_file(path, kMaxBundleBytes);
  if (!pem) {
    return make_error(Code::config, fmt::format("cannot read the CA bundle {}: {}", path, pem.error().what));
  }
  if (add_certificates(store, *pem) > 0) return {};
  return make_error(Code::config, fmt::format("the CA bundle {} holds no certificate", path),
                    "it must be a PEM file");
}

Status add_system(X509_STORE* store) {
  for (const std::string& path : system_bundles()) {
    auto pem = read_file(path, kMaxBundleBytes);
    if (pem && add_certificates(store, *pem) > 0) return {};
  }
  // A host with a folder of hashed files only.
  auto names = list_dir(::X509_get_default_cert_dir());
  int count = 0;
  for (const std::string& name : names ? *names : std::vector<std::string>()) {
    auto pem = read_file(std::string(::X509_get_default_cert_dir()) + "/" + name, kMaxBundleBytes);
    if (pem) count += add_certificates(store, *pem);
  }
  if (count > 0) return {};
  return make_error(Code::unsupported_host, "the system's certificates cannot be used", "set ca_bundle");
}

}  // namespace

Status prepare_trust(SSL_CTX* context, const std::string& ca_bundle, const std::string& extra_ca_bundle) {
  ::SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  if (::SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1) {
    return make_error(Code::unsupported_host, "OpenSSL cannot be held to TLS 1.2 or later");
  }
  X509_STORE* store = ::SSL_CTX_get_cert_store(context);
  TRY_VOID(ca_bundle.empty() ? add_system(store) : add_bundle(store, ca_bundle));
  if (!extra_ca_bundle.empty()) TRY_VOID(add_bundle(store, extra_ca_bundle));
  return {};
}

bool expect_host(SSL* connection, std::string host) {
  ::SSL_set_hostflags(connection, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  // SSL_set_tlsext_host_name(3), whose macro is a cast of the old style.
  return ::SSL_set1_host(connection, host.c_str()) == 1 &&
         ::SSL_ctrl(connection, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, host.data()) == 1;
}

}  // namespace cofferdam::egress
