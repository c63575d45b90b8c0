/* Rotation over years and over seconds, with the time as data. An API server whose list of
 * authorities is not older than the margin never gets a certificate that it does not trust. */
#include "operator/webhook/keyring.h"

#include "base/testing/test_doc.h"

enum { NEWS_MAX = 128 };

static const char *const names[] = {"hook.system.svc", NULL};
static const int64_t start_ms = INT64_C(1767225600000);

/* An earlier state that replicas and API servers may still have. */
struct news {
    int64_t at_ms;
    char *authorities, *serving;
};

struct world {
    struct keyring keyring;
    struct rotation_lives lives;
    struct news news[NEWS_MAX];
    size_t count;
    int done[ROTATION_FORGET + 1];
};

static void remember(struct world *w, int64_t now_ms)
{
    assert_true(w->count < NEWS_MAX);
    w->news[w->count++] =
        (struct news){now_ms, strdup(w->keyring.authorities), strdup(w->keyring.serving.cert_pem)};
}

static void step(struct world *w, int64_t now_ms)
{
    struct rotation_facts facts;
    keyring_look(&w->keyring, names, &facts);
    facts.published = true;
    enum rotation_do what = rotation_step(&facts, &w->lives, now_ms);
    w->done[what]++;
    if (what != ROTATION_NOTHING) {
        assert_int_equal(keyring_change(&w->keyring, what, names, &w->lives, now_ms, NULL), 0);
        remember(w, now_ms);
        keyring_look(&w->keyring, names, &facts);
        assert_true(facts.usable);
    }
}

/* Whether a list of authorities trusts a certificate. */
static bool trusts(const char *authorities, const char *serving)
{
    struct keyring pair = {(char *)authorities, {(char *)authorities, ""}, {(char *)serving, ""}};
    struct keyring copy;
    json_t *secret = json_pack("{s:o}", "data", keyring_data(&pair));
    assert_int_equal(keyring_read(secret, &copy, NULL), 0);
    json_decref(secret);
    bool found = false;
    for (const char *at = copy.authorities; at && !found; at = strstr(at + 1, "-----BEGIN ")) {
        found = certificate_is_signed_by(serving, at);
    }
    keyring_done(&copy);
    return found;
}

/* Checks that all programs that have read a state of the last margin trust each other. */
static void everybody_is_trusted(const struct world *w, int64_t now_ms)
{
    size_t oldest = w->count - 1;
    while (oldest > 0 && w->news[oldest].at_ms > now_ms - w->lives.margin_ms) {
        oldest--;
    }
    for (size_t i = oldest; i < w->count; i++) {
        for (size_t j = oldest; j < w->count; j++) {
            if (!trusts(w->news[i].authorities, w->news[j].serving)) {
                fail_msg("at %+lld s the list of %zu does not trust the certificate of %zu",
                         (long long)(now_ms - start_ms) / 1000, i, j);
            }
        }
    }
}

static void set_up(struct world *w, int64_t serving_ms)
{
    *w = (struct world){.lives = rotation_lives_of(serving_ms)};
    assert_int_equal(keyring_read(NULL, &w->keyring, NULL), 0);
}

static void tear_down(struct world *w)
{
    keyring_done(&w->keyring);
    for (size_t i = 0; i < w->count; i++) {
        free(w->news[i].authorities);
        free(w->news[i].serving);
    }
}

static void live(int64_t serving_ms, int64_t every_ms, int64_t for_ms)
{
    struct world w;
    set_up(&w, serving_ms);
    for (int64_t now_ms = start_ms; now_ms < start_ms + for_ms; now_ms += every_ms) {
        size_t before = w.count;
        step(&w, now_ms);
        if (w.count != before) {
            everybody_is_trusted(&w, now_ms);
        }
    }
    assert_int_equal(w.done[ROTATION_ANEW], 1);
    assert_true(w.done[ROTATION_AUTHORITY] >= 2);
    assert_int_equal(w.done[ROTATION_AUTHORITY], w.done[ROTATION_FORGET]);
    assert_true(w.done[ROTATION_SERVING] > w.done[ROTATION_AUTHORITY]);
    tear_down(&w);
}

static void years(void **state)
{
    (void)state;
    const int64_t hour_ms = INT64_C(3600) * 1000;
    live(90 * 24 * hour_ms, 8 * hour_ms, 2 * 365 * 24 * hour_ms);
}

static void seconds(void **state)
{
    (void)state;
    live(12000, 250, 100000);
}

/* ---- the rules, one by one ---- */

static struct rotation_facts good(const struct rotation_lives *lives, int64_t made_ms)
{
    return (struct rotation_facts){
        .usable = true,
        .published = true,
        .serving_is_of_newest = true,
        .newest = {made_ms - lives->margin_ms, made_ms + lives->authority_ms},
        .serving = {made_ms - lives->margin_ms, made_ms + lives->serving_ms},
    };
}

static void what_cannot_be_used_is_made_anew(void **state)
{
    (void)state;
    const struct rotation_lives lives = rotation_lives_of(90000);
    struct rotation_facts facts = good(&lives, start_ms);
    assert_int_equal(rotation_step(&facts, &lives, start_ms), ROTATION_NOTHING);
    assert_int_equal(rotation_step(&facts, &lives, start_ms + lives.serving_ms), ROTATION_ANEW);
    /* The clock is behind by more than the margin. */
    assert_int_equal(rotation_step(&facts, &lives, start_ms - lives.margin_ms - 1), ROTATION_ANEW);
    facts.usable = false;
    assert_int_equal(rotation_step(&facts, &lives, start_ms), ROTATION_ANEW);
}

static void a_new_authority_signs_once_it_is_known(void **state)
{
    (void)state;
    const struct rotation_lives lives = rotation_lives_of(90000);
    struct rotation_facts facts = good(&lives, start_ms);
    facts.serving_is_of_newest = false;
    facts.has_older = true;
    int64_t known_ms = start_ms + lives.margin_ms + 1000; /* certificates have whole seconds */
    assert_int_equal(rotation_step(&facts, &lives, known_ms - 1), ROTATION_NOTHING);
    assert_int_equal(rotation_step(&facts, &lives, known_ms), ROTATION_SERVING);
    facts.published = false;
    assert_int_equal(rotation_step(&facts, &lives, known_ms), ROTATION_NOTHING);
}

static void a_secret_of_somebody_else_s_is_not_used(void **state)
{
    (void)state;
    static const char *const others[] = {"other.system.svc", NULL};
    struct world w;
    struct rotation_facts facts;
    set_up(&w, 90000);
    keyring_look(&w.keyring, names, &facts);
    assert_false(facts.usable);
    step(&w, start_ms);
    keyring_look(&w.keyring, others, &facts);
    assert_false(facts.usable);
    free(w.keyring.serving.key_pem);
    w.keyring.serving.key_pem = strdup(w.keyring.newest.key_pem); /* not its own key */
    keyring_look(&w.keyring, names, &facts);
    assert_false(facts.usable);
    tear_down(&w);
}

static void a_secret_gives_back_what_was_put_into_it(void **state)
{
    (void)state;
    struct world w;
    struct keyring read;
    set_up(&w, 90000);
    step(&w, start_ms);
    json_t *secret = json_pack("{s:o}", "data", keyring_data(&w.keyring));
    assert_int_equal(keyring_read(secret, &read, NULL), 0);
    assert_string_equal(read.authorities, w.keyring.authorities);
    assert_string_equal(read.newest.key_pem, w.keyring.newest.key_pem);
    assert_string_equal(read.serving.cert_pem, w.keyring.serving.cert_pem);
    assert_string_equal(read.serving.key_pem, w.keyring.serving.key_pem);
    keyring_done(&read);
    json_decref(secret);
    tear_down(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(years),
        cmocka_unit_test(seconds),
        cmocka_unit_test(what_cannot_be_used_is_made_anew),
        cmocka_unit_test(a_new_authority_signs_once_it_is_known),
        cmocka_unit_test(a_secret_of_somebody_else_s_is_not_used),
        cmocka_unit_test(a_secret_gives_back_what_was_put_into_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
