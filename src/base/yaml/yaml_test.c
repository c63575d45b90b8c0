/* YAML as people write it, with their mistakes: what is read, which messages there are, and what is
 * refused. */
#include "base/doc.h"
#include "base/testing/test.h"
#include "base/yaml/yaml.h"

#include <stdlib.h>
#include <string.h>

/* Prints documents as JSON, one per line, then the faults as LINE:COLUMN path: message. */
static void describe(const struct yaml_stream *stream, struct buf *out)
{
    for (size_t i = 0; i < stream->document_count; i++) {
        char *json = stream->documents[i].doc ? doc_print(stream->documents[i].doc) : strdup("-");
        buf_format(out, "%s\n", json);
        free(json);
    }
    for (size_t i = 0; i < stream->fault_count; i++) {
        const struct yaml_fault *fault = &stream->faults[i];
        buf_format(out, "%s%d:%d %s: %s\n", fault->fatal ? "FATAL " : "", fault->place.line,
                   fault->place.column, fault->path ? fault->path : "", fault->message);
    }
}

static void expect(const char *text, size_t bytes, const char *expected)
{
    struct yaml_stream stream = {0};
    struct muster_err err = MUSTER_ERR_INIT;
    struct buf out;
    char *exact = malloc(bytes + !bytes); /* nothing after it may be read */
    assert_non_null(exact);
    memcpy(exact, text, bytes);
    buf_init(&out, 65536);
    assert_int_equal(yaml_load(exact, bytes, &yaml_limits_default, &stream, &err), 0);
    free(exact);
    describe(&stream, &out);
    assert_string_equal(buf_str(&out), expected);
    buf_done(&out);
    yaml_done(&stream);
}

struct sample {
    const char *text;
    const char *expected;
};

#define EXPECT_ALL(samples)                                                                        \
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples)[0]; i++) {                            \
        expect((samples)[i].text, strlen((samples)[i].text), (samples)[i].expected);               \
    }

static void scalars_mean_what_they_mean_to_kubernetes(void **state)
{
    (void)state;
    static const struct sample samples[] = {
        {"[yes, No, on, OFF, y, true]", "[true,false,true,false,true,true]\n"},
        {"[012, 0o12, 0x1f, 0b11, 08, 1_000, +5]", "[10,10,31,3,8,1000,5]\n"},
        {"[1.0, 1e3, .5, 1.5e-3]", "[1,1000,0.5,0.0015]\n"},
        {"[~, null, Null, '']", "[null,null,null,\"\"]\n"},
        {"[1:30, 2001-01-01, .inf, 1.2.3, 0x, a-b, 500m]",
         "[\"1:30\",\"2001-01-01\",\".inf\",\"1.2.3\",\"0x\",\"a-b\",\"500m\"]\n"},
        {"['1', \"yes\", !!str 1, !!int '7']", "[\"1\",\"yes\",\"1\",7]\n"},
        {"[9223372036854775807, 99999999999999999999]", "[9223372036854775807,1e20]\n"},
        {"a: |\n  x\n  y\nb: >-\n  x\n  y\n", "{\"a\":\"x\\ny\\n\",\"b\":\"x y\"}\n"},
        {"--- >-\nfoo\n  more\n      \n", "\"foo\\n  more\\n      \"\n"},
        {"1: a\ntrue: b\n", "{\"1\":\"a\",\"true\":\"b\"}\n"},
        {"[é, 'é', \"é\\xe9\", 'it''s é']", "[\"é\",\"é\",\"éé\",\"it's é\"]\n"},
        {"- |-\n  é\n- >-\n  é\n- >-\n  é\n  é\n- é\n  é\n", "[\"é\",\"é\",\"é é\",\"é é\"]\n"},
    };
    EXPECT_ALL(samples);
}

static void json_and_several_documents_are_read(void **state)
{
    (void)state;
    static const struct sample samples[] = {
        {"{\n\t\"a\": [1, 2.5, null],\n\t\"b\": \"\\ud83d\\ude00\\/\"\n}\n",
         "{\"a\":[1,2.5,null],\"b\":\"😀/\"}\n"},
        {"\xef\xbb\xbf"
         "a: 1\r\nb: 2\r\n",
         "{\"a\":1,\"b\":2}\n"},
        {"---\na: 1\n---\n# nothing\n---\nb: 2\n...\n", "{\"a\":1}\n-\n{\"b\":2}\n"},
        {"", ""},
        {"# only a comment\n", ""},
    };
    EXPECT_ALL(samples);
}

static void anchors_and_merges_are_expanded(void **state)
{
    (void)state;
    static const struct sample samples[] = {
        {"a: &x {b: 1}\nc: *x\n", "{\"a\":{\"b\":1},\"c\":{\"b\":1}}\n"},
        {"a: &x {b: 1, c: 2}\nd:\n  <<: *x\n  b: 3\n",
         "{\"a\":{\"b\":1,\"c\":2},\"d\":{\"b\":3,\"c\":2}}\n"},
        {"<<: [{a: 1}, {a: 2, b: 3}]\n", "{\"a\":1,\"b\":3}\n"},
        {"&k a: 1\nb: *k\n*k : 2\n",
         "{\"a\":1,\"b\":\"a\"}\n3:1 a: duplicate key; the first one, in line 1, is used\n"},
        {"<<: 5\n", "{}\n1:1 : << must be followed by a mapping or a list of mappings\n"},
        {"a: &a [*a]\n", "{\"a\":[\"*a\"]}\n1:8 a[0]: the alias *a has no anchor &a above it\n"},
        {"'<<': 1\n", "{\"<<\":1}\n"},
        {"a: &éa 1\nb: &éb 2\nc: *éa\n", "{\"a\":1,\"b\":2,\"c\":1}\n"},
        {"a: &日本 [1]\nb: *日本\n", "{\"a\":[1],\"b\":[1]}\n"},
        {"*é", "\"*é\"\n1:1 : the alias *é has no anchor &é above it\n"},
    };
    EXPECT_ALL(samples);
}

static void faults_are_named_with_their_place_and_reading_goes_on(void **state)
{
    (void)state;
    static const struct sample samples[] = {
        {"a: 1\nb:\n  c: 2\n  c: {d: 4}\na: 5\n",
         "{\"a\":1,\"b\":{\"c\":2}}\n"
         "4:3 b.c: duplicate key; the first one, in line 3, is used\n"
         "5:1 a: duplicate key; the first one, in line 1, is used\n"},
        {"? [a, b]\n: {c: d}\ne: f\n",
         "{\"e\":\"f\"}\n1:3 : a key must be text, not a list or mapping\n"},
        {": 1\na: 2\n", "{\"a\":2}\n1:1 : a key must not be empty or hold a NUL byte\n"},
        {"a: \"x\\0y\"\n", "{\"a\":null}\n1:5 a: text must not hold a NUL byte\n"},
        {"a: !secret x\n",
         "{\"a\":\"x\"}\n1:12 a: unknown tag !secret; the value is read as text\n"},
    };
    EXPECT_ALL(samples);
}

static void what_stands_before_a_syntax_error_is_kept(void **state)
{
    (void)state;
    static const struct sample samples[] = {
        {"a:\n  b: [1, 2]\n  - name: x\n    y: 1\n   image: z\n",
         "{\"a\":{\"b\":[1,2]}}\nFATAL 3:3 : this line is not 'key: value', as its neighbours are\n"},
        {"c:\n  - name: x\n  image: y\n",
         "{\"c\":[{\"name\":\"x\"}]}\nFATAL 3:3 : this line is neither part of the list item above it "
         "nor a new item\n"},
        {"a: 1\n\tb: 2\n", "{}\nFATAL 2:1 : a tab indents this line; YAML allows only spaces\n"},
        {"a: [1, 2\nb: 3\n", "{\"a\":[1,{\"2 b\":3}]}\nFATAL 1:4 : this [ is never closed\n"},
        {"{\"kind\": \"a\"", "{\"kind\":\"a\"}\nFATAL 1:1 : this { is never closed\n"},
        {"a:\n  - b: 1\n - c: 2\n",
         "{\"a\":[{\"b\":1}]}\nFATAL 3:2 : this list item is indented less than the block above it\n"},
        {"a: |b\n", "{}\nFATAL 1:5 : there is text in the line of a | or >\n"},
        {"a: 'x\n", "{}\nFATAL 1:4 : this quote is never closed\n"},
        {"a: b: c\n", "{\"a\":\"b\"}\nFATAL 1:5 : there is a second ': ' in this line\n"},
        {"a: 1\n---\nb: [\n", "{\"a\":1}\n{\"b\":[]}\nFATAL 3:4 : this [ is never closed\n"},
        {"a: 1\n b: 2\n", "{}\nFATAL 1:4 : this value goes on in the next line, which has a key\n"},
        {"a:\n  b: 1\n c: 2\n",
         "{\"a\":{\"b\":1}}\nFATAL 3:2 : this line is indented less than the block above it and "
         "more than the block around that\n"},
        {"a: @x\n", "{}\nFATAL 1:4 : text may not begin with this character\n"},
        {":\r\"\":\"",
         "{}\n1:1 : a key must not be empty or hold a NUL byte\nFATAL 2:3 : ': ' is missing after this key\n"}, /* the library's second line is behind our last one */
    };
    EXPECT_ALL(samples);
}

static void bytes_that_are_no_text_are_refused(void **state)
{
    (void)state;
    expect("a: 1\0b\n", 7, "FATAL 1:5 : the text holds a NUL byte\n");
    expect("a: 1\nb: \x1b[2J\n", 12, "FATAL 2:4 : the text holds a control character\n");
    expect("a: \xff\n", 5, "FATAL 1:4 : invalid UTF-8\n");
    expect("a: \xed\xa0\x80\n", 7, "FATAL 1:4 : invalid UTF-8\n");
    expect("a: \xf0\x9f\x98", 6, "FATAL 1:4 : invalid UTF-8\n");
    expect("\xff\xfe"
           "a\0",
           4, "FATAL 1:1 : the text is UTF-16\n");
    expect("a\0:\0", 4, "FATAL 1:1 : the text looks like UTF-16\n");
    expect("\0a\0:", 4, "FATAL 1:1 : the text looks like UTF-16\n");
    expect("a\0\0\0", 4, "FATAL 1:2 : the text holds a NUL byte\n");
    expect("a\0:b", 4, "FATAL 1:2 : the text holds a NUL byte\n");
}

static int load(const char *text, const struct yaml_limits *limits, char *ret_text)
{
    struct yaml_stream stream = {0};
    struct muster_err err = MUSTER_ERR_INIT;
    int r = yaml_load(text, strlen(text), limits, &stream, &err);
    yaml_done(&stream);
    memcpy(ret_text, err.text, sizeof err.text);
    return r;
}

static void limits_hold(void **state)
{
    (void)state;
    const struct yaml_limits limits = {64, 10, 4, 2};
    char says[MUSTER_ERR_TEXT_BYTES];
    static const struct {
        const char *text;
        const char *says; /* NULL: within the limits */
    } cases[] = {
        {"[[[[]]]]", NULL},
        {"[[[[[]]]]]", "nested deeper than 4 levels"},
        {"[1,2,3,4,5,6,7,8,9]", NULL},
        {"[1,2,3,4,5,6,7,8,9,10]", "more than 10 values"},
        {"a\n---\nb\n", NULL},
        {"a\n---\nb\n---\nc\n", "more than 2 documents"},
        {"a: &x [1,2,3,4]\nb: [*x]\n", "more than 10 values"},
        {"[[[&x [1]], *x]]", NULL},
        {"[[&x [[1]], [*x]]]", "nested deeper than 4 levels"},
        {"[aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa]", "72 bytes"},
        {"[&x aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, *x, *x]", "more text"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int r = load(cases[i].text, &limits, says);
        bool as_expected =
            cases[i].says ? r == MUSTER_ETOOBIG && strstr(says, cases[i].says) : r == 0;
        if (!as_expected) {
            fail_msg("%s: %d %s", cases[i].text, r, says);
        }
    }
}

static void a_billion_laughs_are_refused_at_once(void **state)
{
    (void)state;
    struct buf text;
    char says[MUSTER_ERR_TEXT_BYTES];
    buf_init(&text, 65536);
    buf_text(&text, "a0: &a0 [lol]\n");
    for (int i = 1; i < 30; i++) {
        buf_format(&text, "a%d: &a%d [*a%d,*a%d,*a%d,*a%d]\n", i, i, i - 1, i - 1, i - 1, i - 1);
    }
    assert_int_equal(load(buf_str(&text), &yaml_limits_default, says), MUSTER_ETOOBIG);
    buf_done(&text);
}

static void a_wall_of_brackets_is_refused_at_once(void **state)
{
    (void)state;
    char says[MUSTER_ERR_TEXT_BYTES];
    char *text = malloc(yaml_limits_default.text_bytes_max + 1);
    memset(text, '[', yaml_limits_default.text_bytes_max);
    text[yaml_limits_default.text_bytes_max] = '\0';
    assert_int_equal(load(text, &yaml_limits_default, says), MUSTER_ETOOBIG);
    free(text);
}

static void every_value_has_its_place(void **state)
{
    (void)state;
    const char *text = "spec:\n"
                       "  containers:\n"
                       "  - name: a\n"
                       "    limits: {nvidia.com/gpu: 1}\n"
                       "  - ~\n"
                       "  - image:\n"
                       "  alias: &x {b: 1}\n"
                       "  use: *x\n";
    static const struct {
        const char *path;
        struct yaml_place place;
    } cases[] = {
        {"", {1, 1}},
        {"spec", {1, 1}},
        {"spec.containers", {2, 3}},
        {"spec.containers[0]", {3, 5}},
        {"spec.containers[0].name", {3, 5}},
        {"spec.containers[0].limits[nvidia.com/gpu]", {4, 14}},
        {"spec.containers[2].image", {6, 5}},
        {"spec.containers[1]", {5, 5}},
        {"spec.containers[0].missing.x", {3, 5}}, /* the nearest ancestor */
        {"spec.containers[10]", {2, 3}},
        {"spec.use.b", {8, 3}}, /* a value of an alias has the place of the alias */
        {"specx", {1, 1}},
    };
    struct yaml_stream stream = {0};
    assert_int_equal(yaml_load(text, strlen(text), &yaml_limits_default, &stream, NULL), 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct yaml_place place = yaml_place_of(&stream.documents[0], cases[i].path);
        if (place.line != cases[i].place.line || place.column != cases[i].place.column) {
            fail_msg("%s: %d:%d", cases[i].path, place.line, place.column);
        }
    }
    assert_int_equal(yaml_place_of(NULL, "a").line, 0);
    yaml_done(&stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scalars_mean_what_they_mean_to_kubernetes),
        cmocka_unit_test(json_and_several_documents_are_read),
        cmocka_unit_test(anchors_and_merges_are_expanded),
        cmocka_unit_test(faults_are_named_with_their_place_and_reading_goes_on),
        cmocka_unit_test(what_stands_before_a_syntax_error_is_kept),
        cmocka_unit_test(bytes_that_are_no_text_are_refused),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(a_billion_laughs_are_refused_at_once),
        cmocka_unit_test(a_wall_of_brackets_is_refused_at_once),
        cmocka_unit_test(every_value_has_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
