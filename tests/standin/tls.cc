#include "tls.h"

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

namespace cofferdam::standin {
namespace {

template <auto Function>
struct Free {
  template <typename T>
  void operator()(T* object) const {
    Function(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Free<X509_free>>;
using Number = std::unique_ptr<BIGNUM, Free<BN_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Free<X509_EXTENSION_free>>;
using Bio = std::unique_ptr<BIO, Free<BIO_free_all>>;

constexpr long kDay = 24L * 60 * 60;

Error tls_error(const std::string& what) {
  char reason[256] = "";
  ERR_error_string_n(ERR_get_error(), reason, sizeof reason);
  return make_error(Code::internal, what + ": " + reason);
}

Key make_key() {
  return Key(EVP_EC_gen("P-256"));
}

bool add_extension(X509* certificate, X509* issuer, int nid, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  Extension extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

// Everything but the extensions and the signature.
Certificate make_certificate(const char* name, EVP_PKEY* key) {
  Certificate certificate(X509_new());
  Number serial(BN_new());
  if (!certificate || !serial || key == nullptr) return nullptr;
  auto* common_name = reinterpret_cast<const unsigned char*>(name);
  const bool made = X509_set_version(certificate.get(), X509_VERSION_3) == 1 &&
                    BN_rand(serial.get(), 120, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1 &&
                    BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(certificate.get())) != nullptr &&
                    X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -kDay) != nullptr &&
                    X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 7 * kDay) != nullptr &&
                    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate.get()), "CN", MBSTRING_ASC,
                                               common_name, -1, -1, 0) == 1 &&
                    X509_set_pubkey(certificate.get(), key) == 1;
  if (!made) return nullptr;
  return certificate;
}

Certificate make_ca(EVP_PKEY* key) {
  Certificate ca = make_certificate("Cofferdam stand-in CA", key);
  if (!ca) return nullptr;
  X509* self = ca.get();
  const bool made = X509_set_issuer_name(self, X509_get_subject_name(self)) == 1 &&
                    add_extension(self, self, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
                    add_extension(self, self, NID_key_usage, "critical,keyCertSign,cRLSign") &&
                    add_extension(self, self, NID_subject_key_identifier, "hash") &&
                    X509_sign(self, key, EVP_sha256()) > 0;
  if (!made) return nullptr;
  return ca;
}

Certificate make_leaf(EVP_PKEY* key, X509* ca, EVP_PKEY* ca_key) {
  Certificate leaf = make_certificate("Cofferdam stand-in", key);
  if (!leaf) return nullptr;
  X509* self = leaf.get();
  const bool made = X509_set_issuer_name(self, X509_get_subject_name(ca)) == 1 &&
                    add_extension(self, ca, NID_basic_constraints, "critical,CA:FALSE") &&
                    add_extension(self, ca, NID_key_usage, "critical,digitalSignature") &&
                    add_extension(self, ca, NID_ext_key_usage, "serverAuth") &&
                    add_extension(self, ca, NID_authority_key_identifier, "keyid") &&
                    add_extension(self, ca, NID_subject_alt_name, "IP:127.0.0.1,DNS:localhost") &&
                    X509_sign(self, ca_key, EVP_sha256()) > 0;
  if (!made) return nullptr;
  return leaf;
}

Result<std::string> to_pem(X509* certificate) {
  Bio bio(BIO_new(BIO_s_mem()));
  if (!bio || PEM_write_bio_X509(bio.get(), certificate) != 1)
    return tls_error("cannot encode the CA certificate");
  const char* data = nullptr;
  const long length = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<std::size_t>(length));
}

}  // namespace

Result<Identity> make_identity() {
  Key ca_key = make_key();
  Certificate ca = make_ca(ca_key.get());
  Key key = make_key();
  if (!ca) return tls_error("cannot make a certificate authority");
  Certificate leaf = make_leaf(key.get(), ca.get(), ca_key.get());
  if (!leaf) return tls_error("cannot make a server certificate");
  Identity identity;
  identity.context.reset(SSL_CTX_new(TLS_server_method()));
  SSL_CTX* context = identity.context.get();
  if (context == nullptr || SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1 ||
      SSL_CTX_use_certificate(context, leaf.get()) != 1 || SSL_CTX_use_PrivateKey(context, key.get()) != 1) {
    return tls_error("cannot set TLS up");
  }
  TRY(std::string pem, to_pem(ca.get()));
  identity.ca_pem = std::move(pem);
  return identity;
}

}  // namespace cofferdam::standin
