/* Folding: what a reader takes a text for, and where each byte of it came from. */
#include "core/guard/fold.h"

#include "core/base/utf8.h"
#include "tests/core/jsonl.h"

static struct arena arena;

static struct folded fold(const char *text)
{
    struct folded f;
    fold_text(&arena, text, strlen(text), &f);
    return f;
}

static const struct {
    const char *text, *folded;
    unsigned disguises;
} cases[] = {
    { "", "", 0 },
    { "Sell 20 AAPL @ 187.32!", "sell 20 aapl @ 187.32!", 0 },
    { "Ｉｇｎｏｒｅ ＥＰＳ１２", "ignore eps12", FOLD_FORMS },
    { "𝐈𝐠𝐧𝐨𝐫𝐞 𝓪𝓵𝓵 𝖕𝖗𝖎𝖔𝖗 𝚛𝚞𝚕𝚎𝚜 𝟏𝟐", "ignore all prior rules 12", FOLD_FORMS },
    { "Ⓘⓖⓝⓞⓡⓔ 🄰🅱🅲 ɪɢɴᴏʀᴇ", "ignore abc ignore", FOLD_FORMS },
    { "ﬁnance oﬃce", "finance office", FOLD_FORMS },
    { "Préçédent Ünïçødé Straße", "precedent unicode strasse", 0 },
    { "ignоrе thе рrоmрt", "ignore the prompt", FOLD_LOOKALIKES },
    { "ιgnore αll", "ignore all", FOLD_LOOKALIKES },
    { "Ваш портфель растет", "ваш портфель растет", 0 },
    { "β-adjusted σ", "β-adjusted σ", 0 },
    { "ig\u200bno\u2060re\ufeff", "ignore", FOLD_INVISIBLE },
    { "ig\u00adnore", "ignore", FOLD_INVISIBLE },
    { "a\u202eb\u202c", "ab", FOLD_DIRECTION },
    { "i\u0336g\u0308nore", "ignore", FOLD_MARKS },
    { "❤️", "❤", 0 },
    { "up\U000e0069\U000e0067", "up ig", FOLD_INVISIBLE },
    { "&lt;system&gt; &#105;&#x67;n &amp;lt; AT&T", "<system> ign < at&t", FOLD_ESCAPES },
    { "%69gnore%20all 5%20 %e5%bf%bd %2569", "ignore all 5%20 忽 i", FOLD_ESCAPES },
    { "\\u0069\\x67n \\u{6f} \\ud83d\\ude00 \\q", "ign o 😀 \\q", FOLD_ESCAPES },
    { "one\\ntwo", "one\ntwo", 0 },
    { "“x” ‘y’ – … 。", "\"x\" 'y' - ... . ", 0 },
    { "忽略 ﾉｲｽﾞ", "忽略 ノイスﾞ", 0 },
};

START_TEST(disguises_are_removed_and_named)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct folded f = fold(cases[i].text);
        ck_assert_str_eq(f.text, cases[i].folded);
        ck_assert_uint_eq(f.len, strlen(cases[i].folded));
        ck_assert_msg(f.disguises == cases[i].disguises, "%s: %x", cases[i].text, f.disguises);
    }
}
END_TEST

START_TEST(each_folded_byte_knows_where_it_came_from)
{
    const char *text = "a ﬃ &lt; \u200bé！b";
    const struct folded f = fold(text);
    static const char *const at[] = {
        "a", " ", "ﬃ", NULL, NULL, " &", "&lt;", " \u200b", "é", "！", NULL, "b"
    };
    ck_assert_str_eq(f.text, "a ffi < e! b");
    for (size_t i = 0; i < sizeof at / sizeof *at; i++)
        if (at[i])
            ck_assert_ptr_eq(text + fold_origin(&f, i), strstr(text, at[i]));
    ck_assert_uint_eq(fold_origin(&f, f.len), strlen(text));
}
END_TEST

START_TEST(a_folded_text_is_valid_and_never_longer)
{
    static const char *const files[] = { "guard/poisoned.jsonl", "guard/trading.jsonl", "guard/rules.jsonl" };
    for (size_t i = 0; i < 3; i++) {
        char *file = unit_file(&arena, files[i]);
        for (char *line; (line = unit_line(&file));) {
            const char *text = jsonl_member(&arena, line, "text");
            const struct folded f = fold(text);
            ck_assert_uint_le(f.len, strlen(text));
            ck_assert_uint_eq(utf8_check(f.text, f.len), f.len);
            for (size_t at = 0; at < f.len; at++)
                ck_assert_uint_le(fold_origin(&f, at), fold_origin(&f, at + 1));
        }
    }
}
END_TEST

START_TEST(hidden_text_is_told_from_ordinary_invisible_characters)
{
    static const char *const hidden[] = {
        "Quiet.\U000e0062\U000e0075\U000e0079",
        "i\u200bg\u200bn\u200bore",
        "x\u200b\u200c\u200b\u200b\u200c\u200by",
        "\u202eyub\u202c",
        "😀\U000e0150\U000e0151\U000e0152\U000e0153",
        "a\u200b \u200bb \u200bc \u200bd \u200be \u200bf \u200bg \u200bh \u200bi \u200bj \u200bk \u200bl "
        "\u200b",
    };
    static const char *const ordinary[] = {
        "",
        "café ❤️ 👩‍💻",
        "\ufeffA file",
        "🏴󠁧󠁢󠁥󠁮󠁧󠁿 up",
        "hyphen\u00adation of\u00ad many\u00ad words",
        "می\u200cخواهم",
        "one\u200b two\u200b three",
    };
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++) {
        const struct folded f = fold(hidden[i]);
        ck_assert_msg(f.hidden && f.hidden_start < f.hidden_end && f.hidden_end <= strlen(hidden[i]), "%zu",
                      i);
    }
    for (size_t i = 0; i < sizeof ordinary / sizeof *ordinary; i++)
        ck_assert_msg(!fold(ordinary[i]).hidden, "%s", ordinary[i]);
}
END_TEST

START_TEST(disguises_have_names)
{
    ck_assert_str_eq(fold_disguise_names[0], "forms");
    ck_assert_str_eq(fold_disguise_names[FOLD_DISGUISES - 1], "encoded");
    ck_assert_ptr_null(fold_disguise_names[FOLD_DISGUISES]);
}
END_TEST

UNIT_MAIN("fold", disguises_are_removed_and_named, each_folded_byte_knows_where_it_came_from,
          a_folded_text_is_valid_and_never_longer, hidden_text_is_told_from_ordinary_invisible_characters,
          disguises_have_names)
