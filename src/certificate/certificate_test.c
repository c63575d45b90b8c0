/* Checks that a certificate is made as it was ordered, and that certificates and keys that do not
 * belong together are recognized. */
#include "certificate/certificate.h"

#include "base/testing/test.h"

#include <string.h>

static const int64_t from_ms = INT64_C(1767225600000);
static const int64_t until_ms = INT64_C(1767312000000);

static struct certificate_pair make(bool authority, const char *const *names,
                                    const struct certificate_pair *issuer)
{
    const struct certificate_order order = {
        .subject = authority ? "an authority" : "a server",
        .names = names,
        .authority = authority,
        .from_unix_ms = from_ms,
        .until_unix_ms = until_ms,
        .issuer = issuer,
    };
    struct certificate_pair pair;
    assert_int_equal(certificate_make(&order, &pair, NULL), 0);
    return pair;
}

static void a_server_is_signed_by_its_authority_and_no_other(void **state)
{
    (void)state;
    static const char *const names[] = {"hook.system.svc", "192.0.2.7", "::1", NULL};
    struct certificate_pair first = make(true, NULL, NULL);
    struct certificate_pair second = make(true, NULL, NULL);
    struct certificate_pair server = make(false, names, &first);
    assert_true(certificate_is_signed_by(server.cert_pem, first.cert_pem));
    assert_false(certificate_is_signed_by(server.cert_pem, second.cert_pem));
    assert_false(certificate_is_signed_by(server.cert_pem, "none"));
    assert_true(certificate_has_key(server.cert_pem, server.key_pem));
    assert_false(certificate_has_key(server.cert_pem, first.key_pem));
    assert_false(certificate_has_key(server.cert_pem, "none"));
    assert_true(certificate_names(server.cert_pem, "hook.system.svc"));
    assert_true(certificate_names(server.cert_pem, "192.0.2.7"));
    assert_true(certificate_names(server.cert_pem, "::1"));
    assert_false(certificate_names(server.cert_pem, "hook.other.svc"));
    certificate_pair_done(&server);
    certificate_pair_done(&second);
    certificate_pair_done(&first);
}

/* A server's certificate cannot sign others, although its key can sign. */
static void only_an_authority_signs(void **state)
{
    (void)state;
    static const char *const names[] = {"a.test", NULL};
    struct certificate_pair authority = make(true, NULL, NULL);
    struct certificate_pair server = make(false, names, &authority);
    struct certificate_pair below = make(false, names, &server);
    assert_false(certificate_is_signed_by(below.cert_pem, server.cert_pem));
    certificate_pair_done(&below);
    certificate_pair_done(&server);
    certificate_pair_done(&authority);
}

static void its_time_is_what_was_ordered(void **state)
{
    (void)state;
    struct certificate_pair authority = make(true, NULL, NULL);
    struct certificate_span span;
    struct muster_err err = MUSTER_ERR_INIT;
    assert_int_equal(certificate_span(authority.cert_pem, &span, NULL), 0);
    assert_int_equal(span.from_unix_ms, from_ms);
    assert_int_equal(span.until_unix_ms, until_ms);
    assert_int_equal(certificate_span("", &span, &err), MUSTER_EDATA);
    certificate_pair_done(&authority);
    certificate_pair_done(&authority);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_is_signed_by_its_authority_and_no_other),
        cmocka_unit_test(only_an_authority_signs),
        cmocka_unit_test(its_time_is_what_was_ordered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
